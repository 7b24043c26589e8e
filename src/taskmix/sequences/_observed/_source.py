"""Sequences that are not held in memory but read again, batch by batch, in every pass."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol, runtime_checkable

from taskmix.sequences._observed._sequences import Sequences


@runtime_checkable
class SequenceSource(Protocol):
    """What `SequenceMixture.fit` can learn from without holding it; `SequenceStream` reads files.

    >>> isinstance(["a list"], SequenceSource)
    False
    """

    @property
    def symbols(self) -> tuple[str, ...]:
        """The alphabet, in the order of the codes."""
        ...

    @property
    def longest(self) -> int:
        """Observations of the longest sequence."""
        ...

    def __len__(self) -> int:
        """Sequences of a pass."""
        ...

    def batches(self, size: int) -> Iterator[tuple[Sequences, list[str]]]:
        """About so many sequences at a time, with the task of each; the same ones in every pass."""
        ...


@runtime_checkable
class SourceWithSample(SequenceSource, Protocol):
    """A source that holds a few sequences as well, from which tasks get a part of their own.

    >>> isinstance(["a list"], SourceWithSample)
    False
    """

    def sample(self) -> tuple[Sequences, list[str]]:
        """Some of what the batches have, drawn evenly from a task, with the task of each."""
        ...

    def set_aside(self) -> tuple[Sequences, list[str]]:
        """Sequences that are in no batch, to learn from how much the sample should count."""
        ...

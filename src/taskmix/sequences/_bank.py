"""All generators of a mixture: blocks of one kind each, as one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from operator import add
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from taskmix.errors import OptionError
from taskmix.sequences._generator import Floats, Generator, Next, check_whole, dense, prefix_rows
from taskmix.sequences._sequences import Observed, Sequences

Result = TypeVar("Result")


@dataclass(frozen=True, eq=False)
class Chunk:
    """Some of the sequences, as each block wants them."""

    rows: slice
    prepared: tuple[Any, ...]


@dataclass(frozen=True, eq=False)
class Bank:
    """Generators of one kind or of several; their parameters are a tuple, one item a block."""

    blocks: tuple[Generator, ...]
    counts: tuple[int, ...]

    @property
    def count(self) -> int:
        """The paper's K."""
        return sum(self.counts)

    @property
    def observes(self) -> Observed:
        return self.blocks[0].observes

    @property
    def halting(self) -> bool:
        return self.blocks[0].halting

    @property
    def places(self) -> list[slice]:
        """Where the generators of each block stand among all."""
        ends = np.cumsum(self.counts)
        return [
            slice(int(end - size), int(end)) for end, size in zip(ends, self.counts, strict=True)
        ]

    def prepare(self, sequences: Sequences, workers: int = 1) -> list[Chunk]:
        """In as many parts as there are workers, of about equally many observations."""
        wanted = np.linspace(0, sequences.starts[-1], workers + 1)
        marks = np.unique(np.searchsorted(sequences.starts, wanted))
        marks = np.unique(np.concatenate([[0], marks[1:-1], [len(sequences)]]))
        chunks = []
        for low, high in pairwise(marks):
            part = sequences
            if high - low < len(sequences):
                part = sequences.select(np.arange(low, high))
            rows = slice(int(low), int(high))
            chunks.append(Chunk(rows, tuple(block.prepare(part) for block in self.blocks)))
        return chunks

    def start(
        self, sequences: Sequences, weights: Floats, generator: np.random.Generator
    ) -> tuple[Any, ...]:
        return tuple(
            dense(block.start(block.prepare(sequences), weights[:, place], generator))
            for block, place in zip(self.blocks, self.places, strict=True)
        )

    def log_likelihood(self, parameters: Sequence[Any], chunks: Sequence[Chunk]) -> Floats:
        """[sequence, generator]"""

        def work(chunk: Chunk) -> Floats:
            parts = zip(self.blocks, parameters, chunk.prepared, strict=True)
            return np.concatenate(
                [block.log_likelihood(own, prepared) for block, own, prepared in parts], axis=1
            )

        return np.concatenate(_in_threads(work, chunks))

    def expect(
        self, parameters: Sequence[Any], chunks: Sequence[Chunk], weights: Floats
    ) -> tuple[tuple[Any, ...], Floats | None]:
        """Statistics of each block, and log-likelihoods where all blocks gave them."""

        def work(chunk: Chunk) -> list[Any]:
            parts = zip(self.blocks, parameters, chunk.prepared, self.places, strict=True)
            return [
                block.expect(own, prepared, np.ascontiguousarray(weights[chunk.rows, place]))
                for block, own, prepared, place in parts
            ]

        found = _in_threads(work, chunks)
        statistics = tuple(
            reduce(add, (each[place].statistics for each in found))
            for place in range(len(self.blocks))
        )
        if any(part.log_likelihood is None for each in found for part in each):
            return statistics, None
        rows = [np.concatenate([part.log_likelihood for part in each], axis=1) for each in found]
        return statistics, np.concatenate(rows)

    def maximise(self, parameters: Sequence[Any], statistics: Sequence[Any]) -> tuple[Any, ...]:
        parts = zip(self.blocks, parameters, statistics, strict=True)
        return tuple(dense(block.maximise(own, sums)) for block, own, sums in parts)

    @property
    def learns_strengths(self) -> bool:
        """Whether several generators of a kind learn how strongly they are held to their prior."""
        return any(self._holds(place) for place in range(len(self.blocks)))

    def hold(self, parameters: Sequence[Any], statistics: Sequence[Any]) -> tuple[Any, ...]:
        """Parameters held to their priors as strongly as the statistics of several generators say."""
        found = list(parameters)
        for place in range(len(self.blocks)):
            if self._holds(place):
                kind: Any = self.blocks[place]
                found[place] = dense(kind.hold(parameters[place], statistics[place]))
        return tuple(found)

    def _holds(self, place: int) -> bool:
        return self.counts[place] > 1 and getattr(self.blocks[place], "learns_strengths", False)

    def log_prior(self, parameters: Sequence[Any]) -> float:
        parts = zip(self.blocks, parameters, strict=True)
        return float(sum(block.log_prior(own).sum() for block, own in parts))

    def follow(self, parameters: Sequence[Any], sequences: Sequences) -> Next:
        parts = [
            block.follow(own, block.prepare(sequences))
            for block, own in zip(self.blocks, parameters, strict=True)
        ]

        def joined(name: str) -> Floats | None:
            found = [getattr(part, name) for part in parts]
            return None if found[0] is None else np.concatenate(found, axis=1)

        log_prefix = joined("log_prefix")
        assert log_prefix is not None
        return Next(log_prefix, joined("log_probabilities"), joined("mean"), joined("covariance"))

    def trace(self, parameters: Sequence[Any], sequences: Sequences) -> tuple[Floats, Floats]:
        """Of sequences of symbols, the log-probabilities of every prefix [prefix, generator] and of the
        end after each sequence [sequence, generator]."""
        last = prefix_rows(sequences)[0][1:] - 1
        prefixes, ends = [], []
        for block, own in zip(self.blocks, parameters, strict=True):
            prepared = block.prepare(sequences)
            short = getattr(block, "trace", None)  # where it costs less than all that may follow
            if short is not None:
                prefix, end = short(own, prepared)
            else:
                ahead = block.follow(own, prepared)
                assert ahead.log_probabilities is not None
                prefix, end = ahead.log_prefix, ahead.log_probabilities[last][..., -1]
            prefixes.append(prefix)
            ends.append(end)
        return np.concatenate(prefixes, axis=1), np.concatenate(ends, axis=1)

    def sample(
        self,
        parameters: Sequence[Any],
        which: int,
        prefix: NDArray[Any],
        length: int | None,
        generator: np.random.Generator,
    ) -> NDArray[Any]:
        for block, own, place in zip(self.blocks, parameters, self.places, strict=True):
            if place.start <= which < place.stop:
                return block.sample(own, which - place.start, prefix, length, generator)
        raise IndexError(which)


def make_bank(generator: Generator | Sequence[Generator], counts: int | Sequence[int]) -> Bank:
    """Generators of one kind, or of several with a number for each.

    >>> make_bank(Markov(), 4).count, make_bank([Markov(), HiddenMarkov()], [2, 3]).count
    (4, 5)
    """
    blocks = tuple(generator) if isinstance(generator, list | tuple) else (generator,)
    numbers = tuple(counts) if isinstance(counts, list | tuple) else (counts,)
    if not blocks or len(numbers) != len(blocks):
        raise OptionError(
            "There should be one number of generators for each kind. Found "
            f"{len(numbers)} for {len(blocks)}."
        )
    for number in numbers:
        check_whole(n_generators=number)
    for name, meaning in (
        ("observes", "read the same kind of sequences"),
        ("halting", "halt, or none"),
    ):
        found = {getattr(block, name) for block in blocks}
        if len(found) > 1:
            kinds = ", ".join(f"{type(b).__name__} ({getattr(b, name)})" for b in blocks)
            raise OptionError(
                f"Generators of one mixture should all {meaning}, or their probabilities cannot be "
                f"compared. Found {kinds}. Change `{name}` of one of them."
            )
    return Bank(blocks, numbers)


def _in_threads(work: Callable[[Chunk], Result], chunks: Sequence[Chunk]) -> list[Result]:
    if len(chunks) == 1:
        return [work(chunks[0])]
    with ThreadPoolExecutor(len(chunks)) as pool:
        return list(pool.map(work, chunks))

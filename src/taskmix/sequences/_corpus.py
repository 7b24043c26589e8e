"""Tasks with their sequences, each distinct sequence once.

Generators see every distinct sequence once; an *entry* says that a task has a distinct sequence so
many times. In LDA's terms a task is a document, a distinct sequence a word type, an entry a cell of
the table of counts. Entries lie task by task.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from taskmix.errors import InputError, ShapeError
from taskmix.sequences._sequences import Sequences


@dataclass(frozen=True, eq=False)
class Corpus:
    """Who has which sequence how often."""

    sequences: Sequences  # [distinct]
    tasks: tuple[Hashable, ...]  # names, in the order of first appearance
    starts: NDArray[np.int64]  # [task + 1], where a task's entries begin
    item: NDArray[np.int64]  # [entry], the distinct sequence
    weight: NDArray[np.float64]  # [entry]
    entry_of: NDArray[np.int64]  # [sequence as given], its entry

    @property
    def task_of(self) -> NDArray[np.int64]:
        """[entry]"""
        return np.repeat(np.arange(len(self.tasks)), np.diff(self.starts))

    @property
    def total(self) -> float:
        """Sequences, each counted by its weight."""
        return float(self.weight.sum())

    def weight_of_tasks(self) -> NDArray[np.float64]:
        """[task], its sequences counted by their weights."""
        return np.add.reduceat(self.weight, self.starts[:-1])


def gather_corpus(
    sequences: Sequences,
    tasks: Sequence[Hashable] | NDArray[Any],
    sample_weight: ArrayLike | None = None,
) -> Corpus:
    """Sequences of tasks, in any order; a weight of w counts as w copies.

    >>> corpus = gather_corpus(flatten_sequences([[0, 1], [0, 1], [1]]), ["x", "x", "y"])
    >>> len(corpus.sequences), corpus.tasks, corpus.weight.tolist()
    (2, ('x', 'y'), [2.0, 1.0])
    """
    count = len(sequences)
    if count == 0:
        raise InputError("There should be at least one sequence. Found none.")
    if len(tasks) != count:
        raise ShapeError(
            f"`tasks` should name the task of each of the {count} sequences. Found {len(tasks)}."
        )
    weights = _checked_weights(sample_weight, count)
    names, codes = number_tasks(tasks)
    lacking = np.flatnonzero(np.bincount(codes, weights, minlength=len(names)) == 0)
    if len(lacking):
        raise InputError(
            "Every task should have sequences that count. Found that all those of task "
            f"{names[lacking[0]]!r} have weight zero. Leave the task out."
        )
    first, item = distinct_sequences(sequences)
    keys = codes * len(first) + item
    cells, entry_of = np.unique(keys, return_inverse=True)
    owner = cells // len(first)
    return Corpus(
        sequences=sequences if len(first) == count else sequences.select(first),
        tasks=names,
        starts=np.searchsorted(owner, np.arange(len(names) + 1)),
        item=cells % len(first),
        weight=np.bincount(entry_of, weights, minlength=len(cells)).astype(np.float64),
        entry_of=entry_of,
    )


def number_tasks(
    tasks: Sequence[Hashable] | NDArray[Any],
) -> tuple[tuple[Hashable, ...], NDArray[np.int64]]:
    """Distinct names in the order of first appearance, and the number of each row's task."""
    names = tasks.tolist() if isinstance(tasks, np.ndarray) else list(tasks)
    places = {name: place for place, name in enumerate(dict.fromkeys(names))}
    return tuple(places), np.fromiter((places[name] for name in names), np.int64, len(names))


def distinct_sequences(
    sequences: Sequences,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The first of each kind [distinct], and which kind a sequence is [sequence].

    Vectors are all taken as distinct. Symbols are told apart by a hash of the codes and their places
    that is then checked: sequences that are not equal to the first of their hash stay on their own.
    """
    count = len(sequences)
    if not sequences.symbols or not (sequences.lengths > 0).all():
        every = np.arange(count)
        return every, every
    values, starts, lengths = sequences.values, sequences.starts, sequences.lengths
    places = np.arange(len(values)) - np.repeat(starts[:-1], lengths)
    mixed = _mix(values.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + _mix(places))
    keys = np.add.reduceat(mixed, starts[:-1]) + _mix(lengths)
    _, first, kind = np.unique(keys, return_index=True, return_inverse=True)
    model = first[kind]
    same_length = lengths == lengths[model]
    checked = np.repeat(starts[model], lengths) + np.where(
        np.repeat(same_length, lengths), places, 0
    )
    differs = np.add.reduceat(values != values[checked], starts[:-1]) > 0
    model = np.where(same_length & ~differs, model, np.arange(count))
    kept, kind = np.unique(model, return_inverse=True)
    return kept, kind


def _mix(values: NDArray[Any]) -> NDArray[np.uint64]:
    """Scatters whole numbers over 64 bits (the finaliser of SplitMix64)."""
    bits = values.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(bits ^ (bits >> np.uint64(31)))


def _checked_weights(sample_weight: ArrayLike | None, count: int) -> NDArray[np.float64]:
    if sample_weight is None:
        return np.ones(count)
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != (count,) or not np.isfinite(weights).all() or (weights < 0).any():
        raise ShapeError(
            f"`sample_weight` should be one number that is not negative for each of the {count} "
            f"sequences. Found shape {weights.shape}."
        )
    return weights

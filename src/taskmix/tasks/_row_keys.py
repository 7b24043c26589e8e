"""Rows as numbers of 64 bits, equal where the rows say the same: what is compared by the million.

Numbers are equal by value, so 1, 1.0 and true are one; NaN equals NaN and nothing equals nothing. A
text is hashed once, however often it occurs. Two different rows share a key with a chance of about one
in 2⁶⁴, over a million rows one in thirty million. Keys hold in one process only.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from taskmix.tasks._reading import WITHOUT_TARGETS
from taskmix.tasks._task import MISSING, Split, Task

Keys = NDArray[np.uint64]
_NOTHING, _NOT_A_NUMBER = np.uint64(0x5851F42D4C957F2D), np.uint64(0x14057B7EF767814F)
_KEYED_ROWS = 2**18  # at a time: keys take several times their memory while they are made
_EXACT = 2**53  # beyond it a float64 stands for several whole numbers


class RowKeys:
    """The keys of tables; those that tasks share are read once."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[pa.Table, Keys]] = {}
        self._distinct: dict[int, Keys] = {}

    def __call__(self, split: Split) -> Keys:
        """[row], of the inputs."""
        place = id(split.inputs)
        if place not in self._known:
            self._known[place] = (split.inputs, table_keys(split.inputs))
        return self._known[place][1]

    def distinct(self, split: Split) -> Keys:
        """The keys without repetition, in their order."""
        place = id(split.inputs)
        if place not in self._distinct:
            self._distinct[place] = distinct_keys(self(split))
        return self._distinct[place]

    def share_of(self, split: Split, other: Split) -> float:
        """Of the rows of a split, those that another has too."""
        known = self.distinct(other)
        rows = np.sort(self(split))
        places = np.minimum(np.searchsorted(known, rows), len(known) - 1)
        return float((known[places] == rows).mean()) if len(known) and len(rows) else 0.0


def distinct_keys(keys: Keys) -> Keys:
    """In their order, each once; several times as fast as `np.unique`."""
    keys = np.sort(keys)
    is_first = np.ones(len(keys), dtype=np.bool_)
    is_first[1:] = keys[1:] != keys[:-1]
    return keys[is_first]


def table_keys(table: pa.Table) -> Keys:
    """[row]; an answer is what is to be learned, and not a part of the row that is asked."""
    names = table.column_names
    if "prompt" in names:
        names = [name for name in names if name != "answer"]
    parts = [np.zeros(0, dtype=np.uint64)]
    for start in range(0, table.num_rows, _KEYED_ROWS):
        some = table.slice(start, _KEYED_ROWS)
        keys = np.zeros(some.num_rows, dtype=np.uint64)
        for name in names:
            keys = _mixed(keys * np.uint64(0x9E3779B97F4A7C15) + column_keys(some.column(name)))
        parts.append(keys)
    return np.concatenate(parts)


def column_keys(column: pa.ChunkedArray | pa.Array) -> Keys:
    """[cell], equal where the cells are."""
    if isinstance(column, pa.ChunkedArray):  # chunk by chunk: each takes several times its size
        none = np.zeros(0, dtype=np.uint64)
        return np.concatenate([none, *(column_keys(chunk) for chunk in column.chunks)])
    kind = column.type
    if pa.types.is_dictionary(kind):
        column = column.cast(kind.value_type)
        kind = column.type
    missing = np.asarray(column.is_null().to_numpy(zero_copy_only=False), dtype=np.bool_)
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind):
        keys = _number_keys(column)
    elif pa.types.is_string(kind) or pa.types.is_large_string(kind):
        encoded = column.dictionary_encode()
        words = _hashes(encoded.dictionary.to_pylist())
        keys = np.append(words, _NOTHING)[encoded.indices.fill_null(len(words)).to_numpy()]
    elif pa.types.is_list(kind) and not pa.types.is_nested(kind.value_type):
        keys = _list_keys(column)
    else:
        keys = _hashes([repr(_plain(cell)) for cell in column.to_pylist()])
    return np.where(missing, _NOTHING, keys)


def target_keys(targets: NDArray[Any]) -> Keys:
    """[row], of targets, which may be several for a row."""
    values = np.asarray(targets)
    if values.ndim == 1:
        return _number_keys(pa.array(values))
    keys = np.zeros(len(values), dtype=np.uint64)
    for column in range(values.shape[1]):
        own = _number_keys(pa.array(values[:, column]))
        keys = _mixed(keys * np.uint64(0x9E3779B97F4A7C15) + own)
    return keys


def group_keys(keys: Keys, lengths: NDArray[np.int64]) -> Keys:
    """One key for so many of them at a time, in their order."""
    starts = np.concatenate(([0], np.cumsum(lengths)))
    places = np.arange(len(keys)) - np.repeat(starts[:-1], lengths)
    parts = _mixed(keys + _mixed(places.astype(np.uint64) + np.uint64(1)))
    sums = np.concatenate((np.zeros(1, np.uint64), np.cumsum(parts, dtype=np.uint64)))
    return _mixed(sums[starts[1:]] - sums[starts[:-1]] + lengths.astype(np.uint64))


def _list_keys(column: pa.Array) -> Keys:
    lengths = np.asarray(column.value_lengths().fill_null(0).to_numpy(), dtype=np.int64)
    return group_keys(column_keys(column.flatten()), lengths)


def _number_keys(column: pa.Array) -> Keys:
    values = np.asarray(column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False))
    values = np.where(values == 0, 0.0, values)  # minus nothing is nothing
    keys = np.where(np.isnan(values), _NOT_A_NUMBER, values.view(np.uint64))
    if pa.types.is_integer(column.type) and (np.abs(values) >= _EXACT).any():
        exact = column.fill_null(0).to_numpy(zero_copy_only=False).astype(np.uint64)
        keys = np.where(np.abs(values) >= _EXACT, exact, keys)
    return _mixed(keys)


def _hashes(words: list[str]) -> Keys:
    return _mixed(np.array([hash(word) for word in words], dtype=np.int64).view(np.uint64))


def _plain(value: Any) -> Hashable:
    """Lists and messages as tuples; numbers as floats, which are equal by value."""
    if isinstance(value, dict):
        return tuple(_plain(part) for part in value.items())
    if isinstance(value, list | tuple):
        return tuple(_plain(part) for part in value)
    return float(value) if isinstance(value, int | float) else value


def _mixed(keys: Keys) -> Keys:
    """SplitMix64's last steps (Steele et al., 2014): every bit depends on all."""
    keys = (keys ^ (keys >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    keys = (keys ^ (keys >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(keys ^ (keys >> np.uint64(31)), dtype=np.uint64)


@dataclass(frozen=True, eq=False)
class Labelled:
    """Inputs with a label; those that occur several times once."""

    keys: Keys  # [input], in their order
    first: NDArray[np.int64]  # [input], the first row of train that has it
    contradicted: NDArray[np.bool_]  # [input], whether it has different labels
    rows: NDArray[np.int64]  # [labelled row], their places in train
    inputs: NDArray[np.int64]  # [labelled row], into `keys`


def labelled(task: Task, keys: RowKeys) -> Labelled:
    """The inputs to train on that have a label."""
    train = task.splits["train"]
    labels, known = row_labels(task, train)
    rows = np.flatnonzero(known)
    own, labels = keys(train)[rows], labels[rows]
    found, first, inputs = np.unique(own, return_index=True, return_inverse=True)
    contradicted = np.zeros(len(found), dtype=np.bool_)
    contradicted[inputs[labels != labels[first][inputs]]] = True
    return Labelled(found, rows[first], contradicted, rows, inputs)


def row_labels(task: Task, split: Split) -> tuple[Keys, NDArray[np.bool_]]:
    """[row], a key for the label, of a sentence for all of its tags; and whether there is one."""
    nothing = np.zeros(len(split), dtype=np.uint64)
    if task.kind == "generation":
        answers = column_keys(split.inputs.column("answer"))
        return answers, np.ones(len(split), dtype=np.bool_)
    if task.kind in WITHOUT_TARGETS:
        return nothing, np.zeros(len(split), dtype=np.bool_)
    targets: NDArray[Any] = np.asarray(split.targets)
    if task.kind == "tagging":
        lengths = token_counts(split)
        return group_keys(target_keys(targets), lengths), np.ones(len(split), dtype=np.bool_)
    flat = targets.reshape(len(targets), -1)
    missing = np.isnan(flat) if flat.dtype.kind == "f" else flat == MISSING
    return target_keys(targets), ~missing.all(axis=1) if len(flat) else np.zeros(0, np.bool_)


def token_counts(split: Split) -> NDArray[np.int64]:
    """[row], how many words a sentence has."""
    lists = split.inputs.column("tokens").combine_chunks()
    return np.asarray(lists.value_lengths().to_numpy(zero_copy_only=False), dtype=np.int64)

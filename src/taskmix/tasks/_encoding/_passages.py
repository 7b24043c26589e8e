"""Passages as rows of equal length, each place with what comes next: bytes, or a tokenizer's pieces.

The passages of a split follow one another, a begin before each, and are cut into rows of `context`
places. So no place is padding but some of the last row, and every byte is predicted once. A begin is
never predicted: where passages end is not learned.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import torch
from numpy.typing import NDArray

from taskmix.tasks._encoding._assemble import at_least, distinct_tables, source_split
from taskmix.tasks._encoding._inputs import DenseInputs, EncodedSplit, EncodedTask, EncodedTasks
from taskmix.tasks._encoding._pretrained import reading_model
from taskmix.tasks._encoding._subwords import load_tokenizer
from taskmix.tasks._task import MISSING, KeptByTable, TaskSet

BYTES = 256

_rows: KeptByTable[EncodedSplit] = KeptByTable()  # so that subsets of tasks share their rows


@dataclass(frozen=True, kw_only=True)
class PassageEncoding:
    """Passages as `DenseInputs` of ids [row, place], with the next id as the target of each place.

    Ids are bytes of UTF-8, or a tokenizer's pieces; the begin of a passage is the id after them, and
    `extra["ids"]` counts it. `target_bytes` is the number of bytes that each row's targets spell.

    >>> import pyarrow as pa
    >>> split = Split(pa.table({"text": ["Hi", "you"]}), np.empty(0))
    >>> kind = {"kind": "language", "inputs": "passage", "labels": (), "metric": "bits_per_byte"}
    >>> tasks = TaskSet((Task(name="a", source="a", splits={"train": split}, **kind),))
    >>> rows = PassageEncoding(context=4).encode(tasks)["a"].splits["train"]
    >>> rows.inputs.values.tolist(), rows.targets.tolist()
    ([[256, 72, 105, 256], [121, 111, 117, 256]], [[72, 105, -100, 121], [111, 117, -100, -100]])
    """

    context: int = 128
    tokenizer: str | None = None  # a folder, or a name on the hub; None: bytes

    def __post_init__(self) -> None:
        at_least("context", self.context, 2)

    def encode(self, tasks: TaskSet, *, cache: Path | None = None) -> EncodedTasks:
        """The tasks as tensors; quicker made than read, so nothing is kept in `cache`."""
        return self._encode(tasks, packed=True)

    def encode_with(self, learned: Mapping[str, Any], tasks: TaskSet) -> EncodedTasks:
        """Passages that come after training: each in rows of its own."""
        return self._encode(tasks, packed=False)

    def _encode(self, tasks: TaskSet, *, packed: bool) -> EncodedTasks:
        tables = distinct_tables(
            tasks,
            "PassageEncoding",
            lambda task: task.kind == "language",
            advice="Use `WordEncoding` for texts with labels.",
            needs_train=False,
        )
        tokenizer = None if self.tokenizer is None else load_tokenizer(self.tokenizer)
        pieces = BYTES if tokenizer is None else len(tokenizer)
        splits = {
            key: self._split(table, tokenizer, pieces, packed=packed)
            for key, table in tables.items()
        }
        encoded = tuple(
            EncodedTask.of(
                task, {name: splits[source_split(task, name)] for name in task.splits}, pieces
            )
            for task in tasks
        )
        return EncodedTasks(encoded, extra={"ids": pieces + 1, "tokenizer": self.tokenizer})

    def _split(self, table: pa.Table, tokenizer: Any, pieces: int, *, packed: bool) -> EncodedSplit:
        known = _rows.get(table, (self, packed))
        if known is not None:
            return known
        texts = [text or "" for text in table.column("text").to_pylist()]
        read = partial(_of_pieces, tokenizer=tokenizer) if tokenizer is not None else _of_bytes
        groups = [texts] if packed else [[text] for text in texts]
        parts = [_cut(*read(group), self.context, begin=pieces) for group in groups]
        begins = torch.tensor([0, *(len(part.values) for part in parts)]).cumsum(0)
        values, targets, sizes = (
            torch.from_numpy(np.concatenate([getattr(part, name) for part in parts]))
            if parts
            else torch.empty(0, self.context, dtype=torch.long)
            for name in ("values", "targets", "sizes")
        )
        split = EncodedSplit(
            DenseInputs(values), targets, None if packed else begins, sizes.sum(dim=1)
        )
        return _rows.put(table, (self, packed), split)


# The ids of all passages one after another, the bytes that each spells, and ids in each passage.
_Ids = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]


def _of_bytes(texts: Sequence[str]) -> _Ids:
    encoded = [text.encode("utf-8", errors="replace") for text in texts]
    ids = np.frombuffer(b"".join(encoded), dtype=np.uint8).astype(np.int64)
    return ids, np.ones_like(ids), np.array([len(text) for text in encoded], dtype=np.int64)


def _of_pieces(texts: Sequence[str], *, tokenizer: Any) -> _Ids:
    if not texts:  # tokenizers refuse to be given nothing
        return _of_bytes(texts)
    with reading_model(tokenizer.name_or_path):
        batch = tokenizer(list(texts), add_special_tokens=False, return_offsets_mapping=True)
    ids = [np.array(row, dtype=np.int64) for row in batch["input_ids"]]
    spelt = []
    for text, spans in zip(texts, batch["offset_mapping"], strict=True):
        lengths = [len(character.encode("utf-8", errors="replace")) for character in text]
        ends = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        # A piece spells what is new since the piece before: characters may lie in two of them.
        reached = np.maximum.accumulate(np.array([end for _, end in spans], dtype=np.int64))
        reached[-1:] = len(text)
        spelt.append(np.diff(ends[reached], prepend=0))
    return np.concatenate(ids), np.concatenate(spelt), np.array([len(row) for row in ids])


class _Rows(NamedTuple):
    """Each is [row, place]."""

    values: NDArray[np.int32]
    targets: NDArray[np.int64]
    sizes: NDArray[np.int64]  # bytes that a target spells


def _cut(
    ids: NDArray[np.int64],
    spelt: NDArray[np.int64],
    lengths: NDArray[np.int64],
    context: int,
    *,
    begin: int,
) -> _Rows:
    """Passages one after another, in rows."""
    stream = np.full(len(ids) + len(lengths), begin, dtype=np.int64)
    bytes_of = np.zeros_like(stream)
    inside = np.ones(len(stream), dtype=np.bool_)
    inside[np.cumsum(lengths + 1) - lengths - 1] = False  # where passages begin
    stream[inside], bytes_of[inside] = ids, spelt
    rows = max(1, -(-(len(stream) - 1) // context)) if len(stream) else 0
    values = np.full(rows * context, begin, dtype=np.int32)
    targets = np.full(rows * context, MISSING, dtype=np.int64)
    sizes = np.zeros(rows * context, dtype=np.int64)
    places = min(len(stream), len(values))
    values[:places] = stream[:places]
    following = stream[1:]
    targets[: len(following)] = np.where(following == begin, MISSING, following)
    sizes[: len(following)] = bytes_of[1:]
    shape = (rows, context)
    return _Rows(values.reshape(shape), targets.reshape(shape), sizes.reshape(shape))

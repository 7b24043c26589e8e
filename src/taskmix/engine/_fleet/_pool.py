"""The rows of all members' tasks in one place on the device, so that one gather serves them all.

A row has one number in the whole pool: `starts` of its inputs, plus its own. Word ids of members with
different vocabularies are shifted apart where the vectors are frozen; 0 is padding everywhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from taskmix.tasks import (
    DenseInputs,
    EncodedTasks,
    Inputs,
    PairInputs,
    RaggedInputs,
    WindowInputs,
)


class Numbering:
    """Which inputs the pool has, each once, and the number of their first row."""

    def __init__(self, encodings: Iterable[EncodedTasks]) -> None:
        self.inputs: list[Inputs] = []
        self.encodings: list[EncodedTasks] = []  # that of each inputs
        self._starts: dict[int, int] = {}
        self.rows = 0
        for tasks in encodings:
            for task in tasks:
                for split in task.splits.values():
                    if id(split.inputs) not in self._starts:
                        self._starts[id(split.inputs)] = self.rows
                        self.inputs.append(split.inputs)
                        self.encodings.append(tasks)
                        self.rows += len(split.inputs)

    def start(self, inputs: Inputs) -> int:
        return self._starts[id(inputs)]


class DensePool:
    """Vectors; those of fewer features are filled up with zeros."""

    def __init__(self, numbering: Numbering, device: torch.device) -> None:
        parts: list[Any] = numbering.inputs
        width = max(part.values.shape[1] for part in parts)
        padded = [_filled(part.values, width) for part in parts]
        values = padded[0] if len(padded) == 1 else torch.cat(padded)
        self.values = values.to(device)

    def gather(self, rows: Tensor) -> Tensor:
        """[..., feature]"""
        found = self.values.index_select(0, rows.flatten()).view(*rows.shape, -1)
        # Vectors that are kept as halves stay so in the pool: only what a step reads is widened.
        return found.float() if found.dtype == torch.float16 else found


def _filled(values: Tensor, width: int) -> Tensor:
    """Padding by nothing would copy the rows, which may lie in a mapped file."""
    missing = width - values.shape[1]
    return functional.pad(values, (0, missing)) if missing else values


class WordTables:
    """The word vectors of all vocabularies, where they do not train: one table, each vector once."""

    def __init__(self, encodings: Sequence[EncodedTasks], *, frozen: bool) -> None:
        self.shifts: dict[int, int] = {}
        self.table: Tensor | None = None
        parts: list[Tensor] = []
        size = 1
        for tasks in encodings:
            if id(tasks) in self.shifts:
                continue
            self.shifts[id(tasks)] = size - 1 if frozen else 0
            if frozen and tasks.vectors is not None:
                parts.append(tasks.vectors[1:])  # their 0 is the padding of all
                size += len(tasks.vectors) - 1
        if parts:
            self.table = torch.cat([torch.zeros(1, parts[0].shape[1]), *parts])

    def shift(self, ids: Tensor, tasks: EncodedTasks) -> Tensor:
        shift = self.shifts[id(tasks)]
        return torch.where(ids == 0, 0, ids + shift) if shift else ids


class WindowPool:
    """Windows of word ids, cut on demand."""

    def __init__(self, numbering: Numbering, words: WordTables, device: torch.device) -> None:
        parts: list[Any] = numbering.inputs
        self.width: int = parts[0].width
        places, centres, begin = [], [], 0
        for part, tasks in zip(parts, numbering.encodings, strict=True):
            places.append(words.shift(part.padded, tasks))
            centres.append(part.centres + begin)
            begin += len(part.padded)
        self._padded = torch.cat(places).to(device)
        self._centres = torch.cat(centres).to(device)
        self._around = torch.arange(-self.width, self.width + 1, device=device)

    def gather(self, rows: Tensor) -> Tensor:
        """[place of the window, member, row]: a recurrent cell reads place after place."""
        centres = self._centres[rows.flatten(1)]
        return self._padded[centres + self._around[:, None, None]]


class TextPool:
    """Texts of word ids, gathered one after another with gaps between them."""

    def __init__(
        self,
        texts: Sequence[RaggedInputs | None],  # None: these inputs have no such text
        lengths: Sequence[int],  # rows of each inputs
        encodings: Sequence[EncodedTasks],
        words: WordTables,
        device: torch.device,
    ) -> None:
        ids, starts, sizes, begin = [torch.zeros(1, dtype=torch.long)], [], [], 1
        for text, count, tasks in zip(texts, lengths, encodings, strict=True):
            if text is None:
                starts.append(torch.zeros(count, dtype=torch.long))
                sizes.append(torch.zeros(count, dtype=torch.long))
                continue
            ids.append(words.shift(text.ids, tasks))
            starts.append(text.offsets[:-1] + begin)
            sizes.append(text.offsets[1:] - text.offsets[:-1])
            begin += len(text.ids)
        self._ids = torch.cat(ids).to(device)
        self._starts = torch.cat(starts).to(device)
        self.sizes = torch.cat(sizes).to(device)

    def gather(self, rows: Tensor, gap: int, places: int) -> tuple[Tensor, Tensor]:
        """Ids [member, place], and where each row's text ends, its gap included, [member, row].

        The places before the first text and after the last are padding, and so are `gap` places
        after every text: a filter that looks over the edge of a text sees zeros, as in a batch of
        its own.
        """
        rows = rows.flatten(1)
        sizes = self.sizes[rows]
        ends = (sizes + gap).cumsum(dim=1)
        place = torch.arange(places, device=rows.device).expand(len(rows), -1).contiguous()
        text = torch.searchsorted(ends, place, right=True).clamp_(max=rows.shape[1] - 1)
        within = place - (ends - sizes - gap).gather(1, text)
        inside = within < sizes.gather(1, text)
        tokens = torch.where(inside, self._starts[rows].gather(1, text) + within, 0)
        return self._ids[tokens], ends

    def places(self, rows: Tensor, gap: int) -> int:
        """How many places the fullest member of any step needs; rows are [step, member, ...]."""
        sizes = self.sizes[rows.flatten(2)] + gap
        return int(sizes.sum(dim=2).max())


def text_pools(
    numbering: Numbering, words: WordTables, device: torch.device
) -> tuple[TextPool, TextPool | None, Tensor]:
    """The first texts, the second ones where any row is a pair, and which rows are, [row]."""
    inputs = numbering.inputs
    first = [part.first if isinstance(part, PairInputs) else part for part in inputs]
    second = [part.second if isinstance(part, PairInputs) else None for part in inputs]
    lengths = [len(part) for part in inputs]
    made: Any = [
        TextPool(side, lengths, numbering.encodings, words, device)  # type: ignore[arg-type]
        for side in ([first, second] if any(part is not None for part in second) else [first])
    ]
    pairs = torch.cat(
        [torch.full((len(part),), isinstance(part, PairInputs)) for part in inputs]
    ).to(device)
    return made[0], made[1] if len(made) > 1 else None, pairs


READABLE = (DenseInputs, WindowInputs, RaggedInputs, PairInputs)

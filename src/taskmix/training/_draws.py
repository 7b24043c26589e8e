"""The number of a draw travels with the rows that it brought, through any loader to the loss.

A batch sampler gives row numbers to a loader that may read ahead, leave out batches, cut them up, or
give every second one to another process. What order the batches arrive in says nothing then, so every
row number carries the draw it belongs to (`DrawnRow`), a data set hands it on with the row
(`DrawnRows`), and a collate function puts it into the batch (`DrawnCollate`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils.data import Dataset, Sampler, default_collate

from taskmix.errors import InputError, OptionError
from taskmix.policies import Choice

KEY = "draw"  # of a batch that is a dictionary


class DrawnRow(int):
    """A row number that knows the draw it belongs to; everything else takes it for a number.

    >>> row = DrawnRow.of(7, draw=3)
    >>> row == 7, row.draw
    (True, 3)
    """

    draw: int

    @classmethod
    def of(cls, row: int, *, draw: int) -> DrawnRow:
        made = cls(row)
        made.draw = draw
        return made


@dataclass(frozen=True, slots=True)
class Draw:
    """A batch that was drawn, and how: enough to hand it out again and to learn from its loss."""

    number: int  # from 1
    task: int
    probabilities: NDArray[np.float64]  # [task]
    probability: float
    rows: NDArray[np.int64]  # [row], of all tasks' rows one after another

    @property
    def choice(self) -> Choice:
        return Choice(self.task, self.probability)

    def numbered_rows(self) -> list[int]:
        return [DrawnRow.of(row, draw=self.number) for row in self.rows.tolist()]


class DrawnRows(Dataset[tuple[Any, int]]):
    """A data set whose items are pairs of a row and the number of its draw.

    >>> DrawnRows(["a", "b"])[DrawnRow.of(1, draw=5)]
    ('b', 5)
    """

    def __init__(self, rows: Any) -> None:
        self.rows = rows  # anything with `len` and numbered items
        # Data sets of Hugging Face fetch all rows of a batch at once.
        self._many = getattr(rows, "__getitems__", None)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> tuple[Any, int]:
        return self.rows[int(index)], _draw_of(index)

    def __getitems__(self, indices: Sequence[int]) -> list[tuple[Any, int]]:
        numbers = [int(index) for index in indices]
        rows = self._many(numbers) if self._many else [self.rows[number] for number in numbers]
        return [(row, _draw_of(index)) for row, index in zip(rows, indices, strict=True)]


class DrawnCollate:
    """Makes a batch of what `DrawnRows` gives, with the draw of every row in it.

    A batch that is a dictionary gets the key `draw`, [row]; any other becomes `(batch, draw)`.

    >>> batch = DrawnCollate()([({"values": 1.5}, 3), ({"values": 2.5}, 3)])
    >>> batch["draw"].tolist()
    [3, 3]
    """

    def __init__(self, collate: Callable[[list[Any]], Any] = default_collate) -> None:
        self._collate = collate

    def __call__(self, items: Sequence[tuple[Any, int]]) -> Any:
        batch = self._collate([row for row, _ in items])
        draws = torch.tensor([draw for _, draw in items], dtype=torch.int64)
        if not isinstance(batch, MutableMapping):
            return batch, draws
        if KEY in batch:
            raise InputError(
                f"A batch should have no key `{KEY}` of its own: the number of its draw goes there. "
                "Rename that column."
            )
        batch[KEY] = draws
        return batch


class Shard(Sampler[list[int]]):
    """One process's batches; each round is drawn whole, so that all processes have drawn the same."""

    def __init__(self, sampler: Any, process: int, count: int) -> None:
        if not 0 <= process < count:
            raise OptionError(
                f"`process` should be from 0 to `count` - 1. Found {process} of {count}."
            )
        self._sampler, self._process, self._count = sampler, process, count

    def __len__(self) -> int:
        return len(self._sampler) // self._count

    def __iter__(self) -> Iterator[list[int]]:
        """What is left after the last whole round stays pending: it would be nobody's in the others."""
        waiting: list[list[int]] = []
        for rows in self._sampler:
            waiting.append(rows)
            if len(waiting) == self._count:
                yield waiting[self._process]
                waiting = []


def draw_numbers(draw: Any) -> list[int]:
    """The draw of every row, from a tensor, an array, a list or one number."""
    if isinstance(draw, torch.Tensor):
        draw = draw.detach().cpu().numpy()
    return [int(number) for number in np.atleast_1d(np.asarray(draw)).ravel()]


def _draw_of(index: int) -> int:
    if not isinstance(index, DrawnRow):
        raise InputError(
            "The rows should be asked for by a `PolicyBatchSampler`, whose row numbers know their "
            f"draw. Found {type(index).__name__} {index}. Give the loader `batch_sampler=sampler`."
        )
    return index.draw

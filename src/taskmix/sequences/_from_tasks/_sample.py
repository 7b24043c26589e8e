"""Some sequences of every task, drawn while all of them go by once.

Each sequence gets a random number, and a task keeps those whose number is below its bar. Where all tasks
together hold too many symbols, the tasks with the most lower their bars until they hold equally many:
what a task holds is at any time an even draw from its sequences, and a task that is small is held whole.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from taskmix.sequences._observed import Sequences

_SLACK = (
    1.25  # how far above its limit a sample may grow before it is cut: cutting sorts all it holds
)


@dataclass
class SequenceSample:
    """Up to `limit` symbols of the sequences that were added."""

    limit: int
    random: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))
    codes: dict[str, int] = field(default_factory=dict)  # of symbols, in the order they came
    held: dict[str, list[tuple[float, Any]]] = field(default_factory=dict)  # numbers, and codes
    bars: dict[str, float] = field(default_factory=dict)  # of tasks that were cut
    size: int = 0  # symbols

    def add(self, tasks: list[str], lists: Any) -> None:
        """A block of sequences, as an Arrow array of lists of symbols."""
        if not self.limit:
            return
        numbers = self.random.random(len(tasks)).tolist()
        rows = [
            row
            for row, (task, number) in enumerate(zip(tasks, numbers, strict=True))
            if number < self.bars.get(task, 1.0)
        ]
        chosen = lists.take(pa.array(rows, pa.int64())).to_pylist()
        for row, words in zip(rows, chosen, strict=True):
            codes = [self.codes.setdefault(word, len(self.codes)) for word in words]
            mine = self.held.setdefault(tasks[row], [])
            mine.append((numbers[row], np.array(codes, np.int32)))
            self.size += len(codes)
        if self.size > _SLACK * self.limit:
            self.cut()

    def cut(self) -> None:
        """Down to the limit."""
        sizes = {task: sum(len(codes) for _, codes in mine) for task, mine in self.held.items()}
        level = _level(np.array(list(sizes.values())), self.limit)
        for task, mine in self.held.items():
            if sizes[task] > level:
                mine.sort(key=lambda each: each[0])
                ends = np.cumsum([len(codes) for _, codes in mine])
                kept = int(np.searchsorted(ends, level, side="right"))
                self.bars[task] = mine[kept][0]
                self.size -= int(ends[-1] - (ends[kept - 1] if kept else 0))
                del mine[kept:]

    def sequences(self, symbols: tuple[str, ...]) -> tuple[Sequences, list[str]]:
        """What is held, in the codes of an alphabet, and the task of each."""
        places = pc.index_in(
            pa.array(list(self.codes), pa.string()), pa.array(symbols, pa.string())
        )
        table = places.to_numpy(zero_copy_only=False).astype(np.int32)
        rows = [codes for mine in self.held.values() for _, codes in mine]
        values = np.concatenate([*rows, np.empty(0, np.int32)])
        starts = np.concatenate([[0], np.cumsum([len(codes) for codes in rows])]).astype(np.int64)
        owners = [task for task, mine in self.held.items() for _ in mine]
        return Sequences(table[values], starts, len(symbols)), owners


def _level(sizes: np.ndarray[Any, np.dtype[np.int64]], limit: int) -> float:
    """What each may hold at most, so that all together hold no more than the limit."""
    ordered = np.sort(sizes)
    before = np.concatenate([[0], np.cumsum(ordered)[:-1]])
    left = (limit - before) / np.arange(len(ordered), 0, -1)  # for each from this one on, if alike
    above = np.flatnonzero(left < ordered)
    return float(left[above[0]]) if len(above) else np.inf

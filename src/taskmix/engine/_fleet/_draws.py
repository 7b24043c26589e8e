"""Which slot each of a member's steps draws, and its rows, decided in blocks.

Asking a policy and twenty streams for four steps costs as much as asking them for hundreds, and a fleet
asks for a few at a time, for hundreds of members, while its device waits. What is decided ahead and not
yet taken does not show: generator and streams are told as they stand after the steps that were.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from taskmix.policies import draw_many
from taskmix.training import Stream

BLOCK = 256  # steps: 8 rows of each of 512 members are 8 MB


class Draws:
    """The draws of a policy that learns nothing, and the rows of the streams that they are from."""

    def __init__(
        self,
        streams: Sequence[Stream],  # [slot]
        shares: NDArray[np.float64],  # [slot]
        generator: np.random.Generator,
        *,
        ahead: bool,  # whether nobody else draws from the generator
    ) -> None:
        self._streams = streams
        self._shares = shares
        self._generator = generator
        self._block = BLOCK if ahead else 0
        self._slots: NDArray[np.int64] = np.empty(0, dtype=np.int64)  # [step], of the block
        self._rows = torch.empty(0, 0, dtype=torch.long)  # [step, row], -1 where there is none
        self._taken = 0  # steps of the block
        self._before: tuple[Any, list[tuple[int, int]]] = (None, [])  # the state before the block

    def take(self, count: int, rows: Tensor) -> NDArray[np.int64]:
        """The slots of the next steps [step]; their rows go into `rows` [step, row]."""
        parts, done = [], 0
        while done < count:
            if self._taken == len(self._slots):
                self._decide(max(self._block, count - done))
            size = min(count - done, len(self._slots) - self._taken)
            here = slice(self._taken, self._taken + size)
            rows[done : done + size, : self._rows.shape[1]] = self._rows[here]
            parts.append(self._slots[here])
            done, self._taken = done + size, self._taken + size
        return np.concatenate(parts) if parts else self._slots[:0]

    def _decide(self, count: int) -> None:
        self._before = (self._generator.bit_generator.state, self._at_end())
        self._slots, self._taken = draw_many(self._shares, self._generator, count), 0
        widest = max(stream.batch_size for stream in self._streams)
        self._rows = torch.full((count, widest), -1)
        for slot in np.unique(self._slots).tolist():
            steps, stream = np.flatnonzero(self._slots == slot), self._streams[slot]
            self._rows[torch.from_numpy(steps), : stream.batch_size] = stream.take_many(len(steps))

    def _at_end(self) -> list[tuple[int, int]]:
        return [stream.position for stream in self._streams]

    @property
    def positions(self) -> list[tuple[int, int]]:
        """[slot], of the streams after the steps that were taken."""
        if self._taken == len(self._slots):
            return self._at_end()
        visits = np.bincount(self._slots[: self._taken], minlength=len(self._streams)).tolist()
        return [
            stream.after(position, batches)
            for stream, position, batches in zip(
                self._streams, self._before[1], visits, strict=True
            )
        ]

    @property
    def generator_state(self) -> Any:
        """Of the generator after the steps that were taken."""
        if self._taken == len(self._slots):
            return self._generator.bit_generator.state
        again = type(self._generator.bit_generator)()
        again.state = self._before[0]
        draw_many(self._shares, np.random.Generator(again), self._taken)
        return again.state

    def move_to(self, positions: Sequence[Sequence[int]], generator_state: Any) -> None:
        """Goes on from there; what was decided ahead is forgotten."""
        self._generator.bit_generator.state = generator_state
        for stream, (number, place) in zip(self._streams, positions, strict=True):
            stream.move_to((number, place))
        self._slots, self._taken = self._slots[:0], 0

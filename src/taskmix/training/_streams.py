"""Rows in an order that depends on the seed and on how many were taken, and on nothing else.

Each pass over the rows has its own shuffle, made from (seed, stream, pass). The place in a stream is
two integers, so resuming needs no random state, and the order does not depend on what else drew
random numbers.
"""

from __future__ import annotations

import torch
from torch import Tensor

_64_BITS = (1 << 64) - 1


def mixed_seed(*numbers: int) -> int:
    """One well-spread 63-bit seed from several numbers (the finaliser of SplitMix64, Steele 2014).

    >>> mixed_seed(0, 1) == mixed_seed(0, 1), mixed_seed(0, 1) == mixed_seed(1, 0)
    (True, False)
    """
    value = 0
    for number in numbers:
        value = (value + number + 0x9E3779B97F4A7C15) & _64_BITS
        value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _64_BITS
        value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & _64_BITS
        value ^= value >> 31
    return value >> 1


class Stream:
    """Batches of row numbers, pass after pass without end; every batch is full.

    >>> rows = Stream(torch.arange(5), 2, seed=0, number=0, device=torch.device("cpu"))
    >>> taken = torch.cat([rows.take(), rows.take(), rows.take()])
    >>> sorted(taken[:5].tolist()), rows.position  # a whole pass, and one row of the next
    ([0, 1, 2, 3, 4], (1, 1))
    """

    def __init__(
        self, rows: Tensor, batch_size: int, *, seed: int, number: int, device: torch.device
    ) -> None:
        self._rows = rows
        self._batch_size = min(batch_size, len(rows))
        self._seed = seed
        self._number = number
        self._device = device
        self._pass = 0
        self._place = 0
        # Shuffled when the first batch is asked for: a swarm has thousands of streams, many never read.
        self._shuffled: Tensor | None = None

    @property
    def _order(self) -> Tensor:
        if self._shuffled is None:
            self._shuffled = self._shuffle()
        return self._shuffled

    def take(self) -> Tensor:
        """The next batch of row numbers, on the device of the data."""
        end = self._place + self._batch_size
        if end <= len(self._order):
            batch = self._order[self._place : end]
            self._place = end
            return batch
        rest = self._order[self._place :]
        self._next_pass()
        self._place = self._batch_size - len(rest)
        return torch.cat([rest, self._order[: self._place]])

    def take_many(self, count: int) -> Tensor:
        """The next `count` batches at once, [batch, row]; what as many calls of `take` give."""
        wanted = count * self._batch_size
        parts = [self._order[self._place :]]
        found = len(parts[0])
        while found < wanted:
            self._next_pass()
            parts.append(self._order)
            found += len(self._order)
        self._place = len(self._order) - (found - wanted)
        rows = parts[0] if len(parts) == 1 else torch.cat(parts)
        return rows[:wanted].view(count, self._batch_size)

    @property
    def batch_size(self) -> int:
        """Rows in a batch: those asked for, or all there are."""
        return self._batch_size

    @property
    def position(self) -> tuple[int, int]:
        """Pass and place: all the state there is."""
        return self._pass, self._place

    def after(self, position: tuple[int, int], batches: int) -> tuple[int, int]:
        """The position that many batches after another one."""
        number, place = position
        taken = place + batches * self._batch_size
        passes = max(taken - 1, 0) // len(self._rows)  # a pass ends when the next row is asked for
        return number + passes, taken - passes * len(self._rows)

    @property
    def completed(self) -> int:
        """How many passes have been taken to their last row."""
        return self._pass + (self._place == len(self._rows))

    def __len__(self) -> int:
        """Rows in a pass."""
        return len(self._rows)

    def move_to(self, position: tuple[int, int]) -> None:
        """Goes on from there."""
        self._pass, self._place = position
        self._shuffled = None

    def _next_pass(self) -> None:
        self._pass += 1
        self._shuffled = None

    def _shuffle(self) -> Tensor:
        generator = torch.Generator().manual_seed(mixed_seed(self._seed, self._number, self._pass))
        order = torch.randperm(len(self._rows), generator=generator)
        return self._rows[order].to(self._device)

"""Whole sequences as outcomes, what begins like what, and a plain distribution over all others."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from taskmix.sequences._generator import Floats, safe_log
from taskmix.sequences._observed import Sequences


@dataclass(frozen=True, eq=False)
class Outcomes:
    """Distinct sequences, and B: even symbols and a length that is geometric."""

    sequences: Sequences
    going_on: float  # the probability of B that a sequence goes on after a symbol

    def __len__(self) -> int:
        return len(self.sequences)

    @cached_property
    def place(self) -> dict[bytes, int]:
        return {self.sequences[row].tobytes(): row for row in range(len(self))}

    def rows(self, sequences: Sequences) -> NDArray[np.int64]:
        """Which outcome each sequence is; -1 where it is none."""
        keys = (sequences[row].tobytes() for row in range(len(sequences)))
        return np.fromiter((self.place.get(key, -1) for key in keys), np.int64, len(sequences))

    def plain(self, lengths: NDArray[np.int64]) -> Floats:
        """Logarithm of B for sequences of these lengths."""
        going_on, halting = self._logs
        steps = np.where(lengths > 1, (lengths - 1) * going_on if self.going_on else -np.inf, 0.0)
        return np.asarray(steps + halting - lengths * np.log(self.sequences.symbols))

    def plain_prefix(self, lengths: NDArray[np.int64]) -> Floats:
        """Logarithm of the probability under B to begin with a prefix of this length."""
        return np.where(lengths > 0, self.plain(lengths) - self._logs[1], 0.0)

    @property
    def plain_rest(self) -> float:
        """What B gives to all that is no outcome."""
        rest = 1 - float(np.exp(self.plain(self.sequences.lengths)).sum())
        return rest if rest > 1e-12 else 0.0

    @property
    def _logs(self) -> tuple[float, float]:
        return float(safe_log(np.array(self.going_on))), float(np.log1p(-self.going_on))

    @cached_property
    def nodes(self) -> Nodes:
        """Every prefix of every outcome."""
        symbols = self.sequences.symbols
        children: list[NDArray[Any]] = [np.full(symbols, -1)]
        ends, depths, passed = np.empty(len(self), np.int64), [0], []
        for row in range(len(self)):
            node = 0
            passed.append((row, node))
            for symbol in self.sequences[row]:
                if children[node][symbol] < 0:
                    children[node][symbol] = len(children)
                    children.append(np.full(symbols, -1))
                    depths.append(depths[node] + 1)
                node = int(children[node][symbol])
                passed.append((row, node))
            ends[row] = node
        return Nodes(np.array(children), np.array(depths), ends, np.array(passed))


@dataclass(frozen=True, eq=False)
class Nodes:
    """Prefixes as a tree. Node 0 is the empty one."""

    children: NDArray[np.int64]  # [node, symbol], -1 where no outcome goes on so
    depths: NDArray[np.int64]  # [node]
    ends: NDArray[np.int64]  # [outcome], the node of the whole
    passed: NDArray[np.int64]  # [..., 2], an outcome and a node on its way

    def walk(self, sequence: NDArray[Any]) -> list[int]:
        """The nodes of all prefixes; -1 once there is none."""
        node, found = 0, [0]
        for symbol in sequence:
            node = int(self.children[node, symbol]) if node >= 0 else -1
            found.append(node)
        return found

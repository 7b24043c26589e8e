r"""The automata of the PAutomaC competition: the true probability of a string.

    Verwer, Eyraud and de la Higuera, "PAutomaC: a probabilistic automata and hidden Markov models
    learning competition", Machine Learning 2014, section 2.

In state q a string ends with probability F(q). Otherwise a symbol a comes with S(q, a), and the next
state with T(q, a, q'). The sum over all paths is one product of a row and a matrix for each symbol.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from taskmix.tasks import text_lines

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Automaton:
    """Where strings begin and end, and how they go on."""

    begin: Floats  # [state]
    end: Floats  # [state]
    moves: Floats  # [symbol, state, state], for a string that has not ended

    def log_probability(self, string: Sequence[int]) -> float:
        """Of the whole string with its end."""
        at, level = self.begin, 0.0
        for symbol in string:
            at = at @ self.moves[symbol]
            total = at.sum()
            if total == 0:
                return -np.inf
            at, level = at / total, level + float(np.log(total))
        return level + float(np.log(at @ self.end))

    def log_mass(self, longest: int) -> float:
        """The probability of all strings of 1 to `longest` symbols."""
        at, mass, step = self.begin, 0.0, self.moves.sum(axis=0)
        for _ in range(longest):
            at = at @ step
            mass += float(at @ self.end)
        return float(np.log(mass))


def read_automaton(path: Path) -> Automaton:
    """A `pautomac_model` file: sections I, F, S and T of `(place, ...) number` lines."""
    cells: dict[str, dict[tuple[int, ...], float]] = {}
    section = ""
    for line in text_lines(path):
        if line[:1].isalpha():
            section = line[0]
        elif line.strip():
            place, number = line.strip().removeprefix("(").split(")")
            key = tuple(int(part) for part in place.split(","))
            cells.setdefault(section, {})[key] = float(number)
    states = 1 + max(max(key[0], key[2]) for key in cells["T"])
    symbols = 1 + max(key[1] for key in cells["S"])
    begin, end = np.zeros(states), np.zeros(states)
    moves = np.zeros((symbols, states, states))
    for (state,), share in cells["I"].items():
        begin[state] = share
    for (state,), share in cells.get("F", {}).items():
        end[state] = share
    for (state, symbol, after), share in cells["T"].items():
        moves[symbol, state, after] = (
            (1 - end[state]) * cells["S"].get((state, symbol), 0.0) * share
        )
    return Automaton(begin, end, moves)

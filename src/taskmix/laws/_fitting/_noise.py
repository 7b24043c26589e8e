"""Whether deviations are of one size or in proportion to what is measured.

A formula is fitted by least squares, and which rows count how much changes which formula wins. A
cubic polynomial of the (logarithms of the) inputs stands in for the unknown law; its deviations say
under which of the two assumptions they are more likely, with equal numbers of parameters.
"""

from __future__ import annotations

from itertools import combinations_with_replacement
from typing import Literal

import numpy as np

from taskmix.laws._forms import Array, Columns

Noise = Literal["absolute", "relative"]
_LEAST_SIZE = 0.1  # of the typical size: rows near zero must not decide everything


def row_weights(
    columns: Columns, target: Array, noise: Noise | Literal["auto"], guess: Array | None = None
) -> Array:
    """[row], one over each row's noise up to a common factor; `guess` is a law's values if known."""
    plain = guess if guess is not None else _pilot(columns, target)
    scaled = plain
    if guess is None and np.all(target > 0):  # each assumption has a stand-in fitted its own way
        scaled = np.exp(np.clip(_pilot(columns, np.log(target)), -700, 700))
    size = np.sqrt(scaled**2 + (_LEAST_SIZE * np.median(np.abs(target))) ** 2)
    if noise == "auto":
        is_relative = _relative_cost(target - scaled, size) < _absolute_cost(target - plain)
        noise = "relative" if is_relative else "absolute"
    if noise == "absolute" or not np.any(target):
        return np.full(len(target), 1 / (np.std(target) or 1.0))
    return np.asarray(1 / size)


def _absolute_cost(residual: Array) -> float:
    """Nats a row, minus what both assumptions share."""
    return float(0.5 * np.log(np.mean(residual**2) + 1e-300))


def _relative_cost(residual: Array, size: Array) -> float:
    return _absolute_cost(residual / size) + float(np.mean(np.log(size)))


def _pilot(columns: Columns, target: Array) -> Array:
    """Values of the stand-in; [row]."""
    inputs = []
    for column in columns.values():
        scaled = np.log(column) if np.all(column > 0) else column
        inputs.append((scaled - scaled.mean()) / (scaled.std() or 1.0))
    for degree in (3, 2, 1):
        terms = [
            np.prod([inputs[i] for i in places], axis=0)
            for count in range(1, degree + 1)
            for places in combinations_with_replacement(range(len(inputs)), count)
        ]
        if 3 * (len(terms) + 1) <= len(target):
            break
    else:
        terms = []
    design = np.column_stack([np.ones(len(target)), *terms])
    solved, *_ = np.linalg.lstsq(design, target, rcond=1e-8)
    return np.asarray(design @ solved)

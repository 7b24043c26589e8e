"""Rows of several groups brought to one level, so that a form is not hidden by what groups differ in.

Before a law is known, a polynomial of the (logarithms of the) inputs stands in for it, and groups may
differ from it by a difference, by a factor, or by both; the shortest description says which, or that
they do not differ.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
from numpy.typing import NDArray

from taskmix.laws._forms import Array, Columns

ALTERNATIONS = 20  # of the common curve and the groups' lines through it
LEAST_FACTOR = 1e-2  # of the mean size of the groups' slopes: a flat group tells nothing of the curve


@dataclass(frozen=True, eq=False)
class LevelledRows:
    """The target as a mean group would have it, and the way back."""

    target: Array  # [row]
    back: Callable[[Array], Array]  # from values of the mean group to those of each row's group
    kind: str  # "same", "differences", "factors" or "both"


def level_groups(
    columns: Columns,
    target: Array,
    cells: NDArray[np.integer[Any]],  # [row], places of groups
) -> LevelledRows:
    """Takes the groups' levels and scales out of the target."""
    curve = _curves(columns, len(target), int(cells.max()) + 1)
    groups = np.zeros((len(target), int(cells.max()) + 1))
    groups[np.arange(len(target)), cells] = 1.0
    groups = groups[:, groups.any(axis=0)]
    found = [(_nats(target, _solved(_with_ones(curve), target)[1], curve.shape[1] + 1), _same(target))]
    found.append(_differences(curve, groups, target))
    found.append(_both(curve, groups, target))
    if np.all(target > 0):
        found.append(_factors(curve, groups, target))
    return min(found, key=lambda entry: entry[0])[1]


def _same(target: Array) -> LevelledRows:
    return LevelledRows(target, lambda values: values, "same")


def _differences(curve: Array, groups: Array, target: Array) -> tuple[float, LevelledRows]:
    solved, values = _solved(np.hstack([groups, curve]), target)
    shift = groups @ (solved[: groups.shape[1]] - np.mean(solved[: groups.shape[1]]))
    nats = _nats(target, values, len(solved))
    return nats, LevelledRows(target - shift, lambda of: of + shift, "differences")


def _factors(curve: Array, groups: Array, target: Array) -> tuple[float, LevelledRows]:
    solved, values = _solved(np.hstack([groups, curve]), np.log(target))
    levels = solved[: groups.shape[1]]
    factor = np.exp(groups @ (levels - levels.mean()))
    nats = _nats(np.log(target), values, len(solved)) + float(np.sum(np.log(target)))
    return nats, LevelledRows(target / factor, lambda of: of * factor, "factors")


def _both(curve: Array, groups: Array, target: Array) -> tuple[float, LevelledRows]:
    count = groups.shape[1]
    slopes = np.ones(count)
    for _ in range(ALTERNATIONS):
        scale = (groups @ slopes)[:, None]
        solved, values = _solved(np.hstack([groups, curve * scale]), target)
        shape = curve @ solved[count:]
        lines, values = _solved(np.hstack([groups, groups * shape[:, None]]), target)
        slopes = lines[count:]
        size = float(np.sqrt(np.mean(slopes**2))) or 1.0
        slopes = slopes / size
    levels = lines[:count]
    slopes = np.where(np.abs(slopes) < LEAST_FACTOR, LEAST_FACTOR, slopes)
    mean = float(slopes[np.argsort(slopes)[count // 2]])
    scale, shift, middle = groups @ (slopes / mean), groups @ levels, float(levels.mean())
    flat = (target - shift) / scale + middle
    nats = _nats(target, values, 2 * count - 1 + curve.shape[1])
    return nats, LevelledRows(flat, lambda of: (of - middle) * scale + shift, "both")


def _curves(columns: Columns, rows: int, groups: int) -> Array:
    """Centred terms of a polynomial [row, term]; fewer where rows are few."""
    inputs = []
    for column in columns.values():
        scaled = np.log(column) if np.all(column > 0) else column
        inputs.append((scaled - scaled.mean()) / (scaled.std() or 1.0))
    terms: list[Array] = []
    for degree in (3, 2, 1):
        terms = [
            np.prod([inputs[i] for i in places], axis=0)
            for count in range(1, degree + 1)
            for places in combinations_with_replacement(range(len(inputs)), count)
        ]
        if 3 * (len(terms) + 1) + groups <= rows:
            break
    return np.column_stack([term - term.mean() for term in terms])


def _with_ones(curve: Array) -> Array:
    return np.hstack([np.ones((len(curve), 1)), curve])


def _solved(design: Array, target: Array) -> tuple[Array, Array]:
    solved, *_ = np.linalg.lstsq(design, target, rcond=1e-8)
    return np.asarray(solved), np.asarray(design @ solved)


def _nats(target: Array, values: Array, numbers: int) -> float:
    rows = len(target)
    mean_square = float(np.mean((target - values) ** 2)) + 1e-18 * float(np.mean(target**2)) + 1e-300
    few = numbers * (numbers + 1) / max(rows - numbers - 1, 0.5)
    return 0.5 * rows * float(np.log(mean_square)) + 0.5 * numbers * float(np.log(rows)) + few

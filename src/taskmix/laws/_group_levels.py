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

from taskmix.laws._evaluate import Array, Columns

ALTERNATIONS = 20  # of the common curve and the groups' lines through it
LEAST_FACTOR = (
    1e-2  # of the mean size of the groups' slopes: a flat group tells nothing of the curve
)


@dataclass(frozen=True, eq=False)
class LevelledRows:
    """The target as a mean group would have it, and the way back."""

    target: Array  # [row]
    back: Callable[[Array], Array]  # from values of the mean group to those of each row's group
    values: Array  # [row], of the stand-in, each at its group's level
    kind: str  # "same", "differences", "factors" or "both"
    nats: float  # of the stand-in and the rows


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
    found = [
        _same(curve, target),
        _differences(curve, groups, target),
        _both(curve, groups, target),
    ]
    if np.all(target > 0):
        found.append(_factors(curve, groups, target))
    return min(found, key=lambda each: each.nats)


def have_own_curves(
    columns: Columns,
    target: Array,
    cells: NDArray[np.integer[Any]],  # [row], places of groups
    by: NDArray[np.integer[Any]],  # [row], places of the groups that may have a curve of their own
    flat: LevelledRows,
) -> bool:
    """Whether a stand-in of each group is likelier than one of all, brought to one level."""
    total, rows = 0.0, len(target)
    numbers = 0
    for place in np.unique(by):
        here = by == place
        inside = {name: column[here] for name, column in columns.items()}
        levels, codes = np.unique(cells[here], return_inverse=True)
        groups = np.eye(len(levels))[codes]
        curve = _curves(inside, int(here.sum()), len(levels))
        solved, values = _solved(np.hstack([groups, curve]), target[here])
        total += float(np.sum((values - target[here]) ** 2))
        numbers += len(solved)
    return _price(total / rows, numbers, target) < flat.nats


def _same(curve: Array, target: Array) -> LevelledRows:
    design = np.hstack([np.ones((len(curve), 1)), curve])
    solved, values = _solved(design, target)
    nats = _nats(target, values, len(solved))
    return LevelledRows(target, lambda of: of, values, "same", nats)


def _differences(curve: Array, groups: Array, target: Array) -> LevelledRows:
    solved, values = _solved(np.hstack([groups, curve]), target)
    shift = groups @ (solved[: groups.shape[1]] - np.mean(solved[: groups.shape[1]]))
    nats = _nats(target, values, len(solved))
    return LevelledRows(target - shift, lambda of: of + shift, values, "differences", nats)


def _factors(curve: Array, groups: Array, target: Array) -> LevelledRows:
    solved, logs = _solved(np.hstack([groups, curve]), np.log(target))
    levels = solved[: groups.shape[1]]
    factor = np.exp(groups @ (levels - levels.mean()))
    nats = _nats(np.log(target), logs, len(solved)) + float(np.sum(np.log(target)))
    values = np.exp(np.clip(logs, -700, 700))
    return LevelledRows(target / factor, lambda of: of * factor, values, "factors", nats)


def _both(curve: Array, groups: Array, target: Array) -> LevelledRows:
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
    return LevelledRows(flat, lambda of: (of - middle) * scale + shift, values, "both", nats)


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


def _solved(design: Array, target: Array) -> tuple[Array, Array]:
    solved, *_ = np.linalg.lstsq(design, target, rcond=1e-8)
    return np.asarray(solved), np.asarray(design @ solved)


def _nats(target: Array, values: Array, numbers: int) -> float:
    return _price(float(np.mean((target - values) ** 2)), numbers, target)


def _price(mean_square: float, numbers: int, target: Array) -> float:
    """Nats of rows with that error, and of so many numbers that were fitted to them."""
    rows = len(target)
    floored = mean_square + 1e-18 * float(np.mean(target**2)) + 1e-300
    few = numbers * (numbers + 1) / max(rows - numbers - 1, 0.5)
    return 0.5 * rows * float(np.log(floored)) + 0.5 * numbers * float(np.log(rows)) + few

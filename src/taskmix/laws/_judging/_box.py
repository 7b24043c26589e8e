"""Where a law is asked to hold: a range of each input, and a grid of points over them.

A table is asked about beyond its own rows, so without being told the box reaches past them: ten times
further to each side where an input spans a decade or more, half its range otherwise. Inputs stay what
they are: a positive one stays positive, a count stays at 1 or above, a share between 0 and 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import product

import numpy as np

from taskmix.errors import OptionError
from taskmix.laws._forms import Array, Columns

FURTHER = 10.0  # times the data's range, where an input spans a decade or more
DECADE = 10.0  # the largest over the smallest value, from which on an input is taken by logarithm
GRID_POINTS = (
    4000  # at most, besides corners and lines; a law is evaluated on them in a millisecond
)
LINE_POINTS = 65  # along each input, through the middle of the data
MOST_CORNERS = 1024  # of boxes with many inputs, not every corner is looked at


@dataclass(frozen=True)
class Box:
    """A range of each input.

    >>> Box.around({"n": np.array([10.0, 500.0]), "x": np.array([-1.0, 1.0])}).ranges
    {'n': (1.0, 5000.0), 'x': (-2.0, 2.0)}
    """

    ranges: Mapping[str, tuple[float, float]]
    words: str  # for sentences about it, such as "within the range asked for"

    @classmethod
    def around(cls, columns: Columns) -> Box:
        """Past the data to each side, where nothing else was asked for."""
        ranges = {name: _widened(column) for name, column in columns.items()}
        return cls(ranges, "within ten times the range of the data")

    @classmethod
    def asked(
        cls,
        columns: Columns,
        ranges: Mapping[str, tuple[float, float]],
        points: Iterable[Mapping[str, float]] = (),
    ) -> Box:
        """The range of the data, or the one asked for, widened to hold the points."""
        found = {name: (float(c.min()), float(c.max())) for name, c in columns.items()}
        for name, (low, high) in ranges.items():
            if name not in columns:
                raise OptionError(
                    f"A box should give ranges of inputs: {', '.join(columns)}. Found {name!r}."
                )
            if not (np.isfinite(low) and np.isfinite(high) and low < high):
                raise OptionError(
                    f"The box should have a smaller and a larger number for `{name}`. Found {low:g} "
                    f"and {high:g}."
                )
            found[name] = (float(low), float(high))
        for point in points:
            for name in set(point) & set(found):
                low, high = found[name]
                found[name] = (min(low, float(point[name])), max(high, float(point[name])))
        return cls(found, "within the range asked for")

    def line(self, name: str, count: int = LINE_POINTS) -> Array:
        """Points from the smallest to the largest value of an input."""
        low, high = self.ranges[name]
        if low > 0 and high / low >= DECADE:
            return np.geomspace(low, high, count)
        return np.linspace(low, high, count)

    def points(self, names: Iterable[str], middle: Mapping[str, float]) -> dict[str, Array]:
        """A grid over some inputs, the corners, and a line along each through the middle."""
        names = sorted(names)
        if not names:
            return {}
        each = min(max(int(GRID_POINTS ** (1 / len(names))), 2), LINE_POINTS)
        lines = [self.line(name, each) for name in names]
        if each > 2 or len(names) <= np.log2(MOST_CORNERS):
            grid = np.array(list(product(*lines))) if len(names) > 6 else _mesh(lines)
        else:  # so many inputs that even the corners are too many: some of them
            ends = np.random.default_rng(0).integers(0, 2, (MOST_CORNERS, len(names)))
            grid = np.column_stack([line[ends[:, k]] for k, line in enumerate(lines)])
        parts = [grid]
        for place, name in enumerate(names):
            along = np.tile([float(middle[other]) for other in names], (LINE_POINTS, 1))
            along[:, place] = self.line(name)
            parts.append(along)
        whole = np.concatenate(parts)
        return {name: whole[:, place].copy() for place, name in enumerate(names)}


def _mesh(lines: list[Array]) -> Array:
    return np.column_stack([axis.ravel() for axis in np.meshgrid(*lines, indexing="ij")])


def _widened(column: Array) -> tuple[float, float]:
    low, high = float(column.min()), float(column.max())
    if low > 0 and high / low >= DECADE:
        wide = (low / FURTHER, high * FURTHER)
    else:
        half = (high - low) / 2
        wide = (low - half, high + half)
        if low >= 0:
            wide = (max(wide[0], low / FURTHER), wide[1])
    if low >= 0 and high <= 1:
        wide = (wide[0], min(wide[1], 1.0))
    if low >= 1 and np.array_equal(column, np.round(column)):
        wide = (max(wide[0], 1.0), wide[1])
    return wide

"""Ranges of the inputs that are left out in turn, and how far off a law is there.

Error outside the data is what tells a law from a fit, and a law that holds for larger values of one
input may be far off for another's. So the largest and the smallest values of each input are left out
in turn, and the rows where all inputs are large, each time with the constants fitted to the remaining
rows. A range counts where it has rows enough, leaves rows and values enough, and reaches past
what remains.

Rows of one range are off together where a form is wrong, so a range counts as a few rows, not as
many: laws are compared by the mean over ranges of the logarithm of their errors, whose uncertainty is
that of as many values as there are ranges.

A box is where a law is asked to hold: a range of each input, and a grid of points over them. A table is
asked about beyond its own rows, so without being told the box reaches past them: ten times further to
each side where an input spans a decade or more, half its range otherwise. Inputs stay what they are: a
positive one stays positive, a count stays at 1 or above, a share between 0 and 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from taskmix.errors import OptionError
from taskmix.laws._evaluate import Array, Columns, Program
from taskmix.laws._fit import Fit, Observations, fit_constants

FURTHER = 10.0  # times the data's range, where an input spans a decade or more
DECADE = 10.0  # the largest over the smallest value, from which on an input is taken by logarithm
GRID_POINTS = (
    4000  # at most, besides corners and lines; a law is evaluated on them in a millisecond
)
LINE_POINTS = 65  # along each input, through the middle of the data
MOST_CORNERS = 1024  # of boxes with many inputs, not every corner is looked at


@dataclass(frozen=True)
class Box:
    """A range of each input."""

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


LARGEST_ABOVE = (
    0.9  # the quantile of one input, above which rows are left out and shown on their own
)
LEFT_OUT_SHARE = 0.15  # of the rows in a range, about
MOST_LEFT_OUT = 0.4  # of the rows: where one value has more, nothing is left to fit
LEAST_IN_RANGE = 5  # rows; an error of fewer is mostly noise
LEAST_VALUES_LEFT = 3  # of the input that is cut; through two any curve goes
LEAST_REACH = 0.1  # of the spread that remains, by which a range has to extend beyond it
SMALLEST_COUNT = 0.4  # of a range of the largest values: laws are mostly asked about larger ones
CORNER_ABOVE = 0.6  # the quantile above which an input is large, in the corner of all
TINY = 1e-300  # so that an exact law has a logarithm


@dataclass(frozen=True, eq=False)
class RangeRows:
    """Rows that are left out together, and what they have in common."""

    name: str  # such as "largest n"
    rows: NDArray[np.bool_]
    share: float = 1.0  # of what a range counts in a choice
    of: str = ""  # the input whose largest or smallest values they are; none of the corner of all


def left_out_ranges(columns: Columns) -> list[RangeRows]:
    """The largest and smallest values of each input, and the corner where all are large."""
    found: list[RangeRows] = []
    for name, column in columns.items():
        scaled = _scaled(column)
        for words, values, share in (
            ("largest", scaled, 1.0),
            ("smallest", -scaled, SMALLEST_COUNT),
        ):
            rows = _beyond(values)
            if rows is not None:
                found.append(RangeRows(f"{words} {name}", rows, share, name))
    if len(columns) > 1:
        rows = np.logical_and.reduce(
            [column >= np.quantile(column, CORNER_ABOVE) for column in columns.values()]
        )
        if LEAST_IN_RANGE <= rows.sum() <= MOST_LEFT_OUT * len(rows):
            found.append(RangeRows(f"large {' and '.join(columns)}", rows))
    return found


def _scaled(column: Array) -> Array:
    return np.log(column) if np.all(column > 0) else column


def _beyond(values: Array) -> NDArray[np.bool_] | None:
    """The rows above a cut between two values; None where there is no useful one."""
    distinct = np.unique(values)
    if len(distinct) <= LEAST_VALUES_LEFT:
        return None
    # The cut with nearest to the wanted share of rows beyond; all rows of one value go together.
    cuts = distinct[LEAST_VALUES_LEFT - 1 : -1]
    shares = 1 - np.searchsorted(np.sort(values), cuts, side="right") / len(values)
    reach = (distinct[-1] - cuts) / (cuts - distinct[0])
    useful = (
        (shares * len(values) >= LEAST_IN_RANGE)
        & (shares <= MOST_LEFT_OUT)
        & (reach >= LEAST_REACH)
    )
    if not useful.any():
        return None
    cut = cuts[int(np.argmin(np.where(useful, np.abs(shares - LEFT_OUT_SHARE), np.inf)))]
    return np.asarray(values > cut)


def largest_rows(name: str, column: Array) -> RangeRows:
    """The rows with the largest values of an input; all rows of one value go together."""
    beyond = column > np.quantile(column, LARGEST_ABOVE)
    return RangeRows(f"largest {name}", beyond if beyond.any() else column == column.max())


def fits_without(fit: Fit, data: Observations, ranges: Sequence[RangeRows]) -> list[Fit]:
    """[range], the formula with constants from the other rows."""
    found = []
    for each in ranges:
        rest = data.rows(np.flatnonzero(~each.rows))
        if len(rest) > len(fit.expression.constants):
            found.append(fit_constants(fit.expression, rest, tolerance=1e-4))
        else:
            found.append(fit)
    return found


def range_deviations(
    without: Sequence[Fit],  # [range]
    data: Observations,
    ranges: Sequence[RangeRows],
) -> list[Array]:
    """[range][left-out row], weighted deviations; NaN if unknown."""
    found = []
    for fit, each in zip(without, ranges, strict=True):
        far = data.rows(np.flatnonzero(each.rows))
        values = Program(fit.expression).values(far.columns)
        with np.errstate(all="ignore"):
            off = far.weight * (values - far.target)
            # A row far off is so for every law: under Huber's loss it counts as that does.
            found.append(off if data.bound == np.inf else np.sign(off) * np.sqrt(far.losses(off)))
    return found


def log_errors(deviations: Sequence[Array], floor: float = 0.0) -> Array:
    """[range], the logarithm of the root mean square; infinite where a value is missing."""
    with np.errstate(all="ignore"):
        found = [0.5 * np.log(np.mean(each**2) + floor + TINY) for each in deviations]
    return np.array([each if np.isfinite(each) else np.inf for each in found])


def typical_error(
    deviations: Sequence[Array], data: Observations, ranges: Sequence[RangeRows]
) -> float:
    """The geometric mean over ranges of the mean square, in the target's unit; NaN without ranges."""
    if not ranges:
        return float("nan")
    plain = [
        each / data.weight[left_out.rows] for each, left_out in zip(deviations, ranges, strict=True)
    ]
    return float(np.exp(2 * np.mean(log_errors(plain))))

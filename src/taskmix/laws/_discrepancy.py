r"""How far a law may be off beyond the data because its form is not the true one.

    Kennedy and O'Hagan, "Bayesian Calibration of Computer Models", JRSS B 63, 2001, Section 4: what
    was measured is the law plus a smooth discrepancy plus noise.

Here the discrepancy is a Gaussian process that is 0 among the data and grows with the distance beyond
them, rate · d(x) · g(x). The ranges that were left out in turn say what its rate is: with constants of
the other rows, the law's deviations there should be explained by noise and by the uncertainty of these
constants; what is smooth beyond both is the form's. The rate has a prior, so that a form about which
few ranges speak stays a little suspect; its mean square under the posterior widens the interval.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from taskmix.laws._evaluate import Array, Columns, Program
from taskmix.laws._expression import Expression
from taskmix.laws._fit import Observations, fit_constants
from taskmix.laws._noise import BEND
from taskmix.laws._ranges import RangeRows

MOST_ROWS = 80  # of a range, spread evenly: more tell little of something smooth
LENGTH = 1.0  # of g, in widths of the data
RATES = np.concatenate([[0.0], np.geomspace(0.01, 100.0, 41)])  # in deviations of a measurement
# Of inputs whose ends cannot be left out. With 5, 90 % intervals for a fourth size of model, three being
# known, held 50 and 80 % of the rows of two tables.
UNTESTED_RATE = 8.0
NO_DISCREPANCY = 0.5  # prior probability that the form is the true one


def distance_beyond(columns: Columns, ranges: Mapping[str, tuple[float, float]]) -> Array:
    """[row], how far outside the ranges a row is, in their widths; by logarithm where positive."""
    total = np.zeros(max((len(column) for column in columns.values()), default=0))
    for place in _places(columns, ranges).T:
        total = total + np.maximum(np.abs(place - 0.5) - 0.5, 0.0) ** 2
    return np.asarray(np.sqrt(total))


def correlation_beyond(
    one: Columns, other: Columns, ranges: Mapping[str, tuple[float, float]]
) -> Array:
    """[row, row] of g."""
    return _correlation(_places(one, ranges), _places(other, ranges))


def discrepancy_rate(
    expression: Expression,
    data: Observations,
    ranges: Sequence[RangeRows],
    without: Sequence[Expression],  # [range], the law that its other rows alone choose
) -> float:
    """Deviations of a measurement by which the form may be off a width of the data away."""
    free = max(len(data) - len(expression.constants), 1)
    square = data.mean_square(Program(expression).values(data.columns)) * len(data) / free
    if not data.floor < square < np.inf:
        return 0.0
    deviation = float(np.sqrt(square)) if data.bound == np.inf else data.bound / BEND
    logs = -np.log1p(RATES)  # with equal steps of their logarithms, a prior with a long tail
    logs[0] = np.log(NO_DISCREPANCY / (1 - NO_DISCREPANCY) * np.exp(logs[1:]).sum())
    for each, alone in zip(ranges, without, strict=True):
        logs = logs + _range_likelihood(alone, data, each, deviation)
    weights = np.exp(logs - logs.max())
    return float(np.sqrt(weights @ RATES**2 / weights.sum()))


def _range_likelihood(
    expression: Expression, data: Observations, each: RangeRows, deviation: float
) -> Array:
    """[rate], the log-likelihood of a range's deviations; 0 where it says nothing."""
    nothing = np.zeros(len(RATES))
    rest = data.rows(np.flatnonzero(~each.rows))
    places = np.flatnonzero(each.rows)
    far = data.rows(
        places[np.linspace(0, len(places) - 1, min(len(places), MOST_ROWS)).astype(int)]
    )
    known = {
        name: (float(rest.columns[name].min()), float(rest.columns[name].max()))
        for name in data.columns
        if name in expression.variables
    }
    distance = distance_beyond(far.columns, known)
    if len(rest) <= len(expression.constants) + 1 or not distance.any():
        return nothing
    program = Program(fit_constants(expression, rest, tolerance=1e-6).expression)
    values, jacobian = program.jacobian(far.columns, program.start)
    _, inner = program.jacobian(rest.columns, program.start)
    off = np.clip(far.weight * (values - far.target), -data.bound, data.bound) / deviation
    moves, weighted = far.weight[:, None] * jacobian, rest.weight[:, None] * inner
    scale = np.linalg.norm(weighted, axis=0)
    scale[scale == 0] = 1.0
    if not all(np.isfinite(some).all() for some in (off, moves, weighted)):
        return nothing
    inverse = np.linalg.pinv((weighted / scale).T @ (weighted / scale), rcond=1e-10, hermitian=True)
    noise = np.eye(len(off)) + (moves / scale) @ inverse @ (moves / scale).T
    at = _places(far.columns, known)
    smooth = distance[:, None] * distance * _correlation(at, at)
    # In the axes where both are diagonal every rate costs a sum.
    try:
        lower = np.linalg.cholesky(noise)
    except np.linalg.LinAlgError:  # the constants are so uncertain that the range says nothing
        return nothing
    half = np.linalg.solve(lower, smooth)
    sizes, axes = np.linalg.eigh(np.linalg.solve(lower, half.T))
    along = axes.T @ np.linalg.solve(lower, off)
    spread = 1 + RATES[:, None] ** 2 * np.maximum(sizes, 0.0)  # [rate, axis]
    return np.asarray(-0.5 * (np.log(spread) + along**2 / spread).sum(axis=1))


def _places(columns: Columns, ranges: Mapping[str, tuple[float, float]]) -> Array:
    """[row, input], 0 at the smallest and 1 at the largest value of the data."""
    found = []
    for name, (low, high) in ranges.items():
        if name not in columns:
            continue
        column = np.asarray(columns[name], dtype=np.float64)
        if low > 0:
            column = np.log(np.maximum(column, low * 1e-12))
            low, high = float(np.log(low)), float(np.log(high))
        found.append((column - low) / ((high - low) or 1.0))
    return np.array(found).T if found else np.zeros((max(map(len, columns.values()), default=0), 0))


def _correlation(one: Array, other: Array) -> Array:
    square = ((one[:, None] - other[None]) ** 2).sum(axis=2)
    return np.asarray(np.exp(-0.5 * square / LENGTH**2))

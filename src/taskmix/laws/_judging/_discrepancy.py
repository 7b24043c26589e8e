r"""How far a law may be off beyond the data because its form is not the true one.

    Kennedy and O'Hagan, "Bayesian Calibration of Computer Models", JRSS B 63, 2001, Section 4: what
    was measured is the law plus a smooth discrepancy plus noise.

Here the discrepancy is a Gaussian process that is 0 among the data and grows with the distance beyond
them, rate · d(x) · g(x). The ranges that were left out in turn say what its rate is: with constants of
the other rows, the law's deviations there should be explained by noise and by the uncertainty of these
constants; what is smooth beyond both is the form's. The rate has a prior, so that a form about which
few ranges speak stays a little suspect, and its mean square under the posterior widens the interval.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from taskmix.laws._fitting import Fit, Observations, fit_constants
from taskmix.laws._forms import Array, Columns, Program
from taskmix.laws._judging._ranges import RangeRows

MOST_ROWS = 80  # of a range, spread evenly: more tell little of something smooth
LENGTH = 1.0  # of g, in widths of the data
RATES = np.concatenate([[0.0], np.geomspace(0.01, 100.0, 41)])  # in deviations of a measurement
NO_DISCREPANCY = 0.5  # prior probability that the form is the true one


def distance_beyond(columns: Columns, ranges: Mapping[str, tuple[float, float]]) -> Array:
    """[row], how far outside the ranges a row is, in their widths; by logarithm where positive.

    >>> distance_beyond({"n": np.array([100.0, 10_000.0])}, {"n": (10.0, 1000.0)})
    array([0. , 0.5])
    """
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
    fit: Fit, data: Observations, ranges: Sequence[RangeRows], *, refit: bool = True
) -> float:
    """Deviations of a measurement by which the form may be off a width of the data away."""
    deviation = np.sqrt(
        fit_mean_square(fit, data) * len(data) / max(len(data) - len(fit.expression.constants), 1)
    )
    if not deviation > 0 or not np.isfinite(deviation):
        return 0.0
    logs = np.where(RATES == 0, np.log(NO_DISCREPANCY), np.log((1 - NO_DISCREPANCY) / (len(RATES) - 1)))
    for each in ranges:
        found = _range_likelihood(fit, data, each, float(deviation), refit=refit)
        if found is not None:
            logs = logs + found
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    return float(np.sqrt(weights @ RATES**2))


def fit_mean_square(fit: Fit, data: Observations) -> float:
    return data.mean_square(Program(fit.expression).values(data.columns))


def _range_likelihood(
    fit: Fit, data: Observations, each: RangeRows, deviation: float, *, refit: bool
) -> Array | None:
    """[rate], the log-likelihood of a range's deviations; None where it says nothing."""
    rest = data.rows(np.flatnonzero(~each.rows))
    if len(rest) <= len(fit.expression.constants) + 1:
        return None
    fitted = fit_constants(fit.expression, rest, tolerance=1e-6) if refit else fit
    places = np.flatnonzero(each.rows)
    if len(places) > MOST_ROWS:
        places = places[np.linspace(0, len(places) - 1, MOST_ROWS).astype(int)]
    far = data.rows(places)
    used = {name: far.columns[name] for name in far.columns if name in fit.expression.variables}
    known = {name: (float(rest.columns[name].min()), float(rest.columns[name].max())) for name in used}
    if any(low == high for low, high in known.values()):
        return None
    distance = distance_beyond(used, known)
    if not distance.any():
        return None
    program = Program(fitted.expression)
    values, jacobian = program.jacobian(far.columns, program.start)
    _, inner = program.jacobian(rest.columns, program.start)
    off = far.weight * (values - far.target) / deviation
    moves, weighted = far.weight[:, None] * jacobian, rest.weight[:, None] * inner
    if not (np.isfinite(off).all() and np.isfinite(moves).all() and np.isfinite(weighted).all()):
        return None
    scale = np.linalg.norm(weighted, axis=0)
    scale[scale == 0] = 1.0
    inverse = np.linalg.pinv((weighted / scale).T @ (weighted / scale), rcond=1e-12)
    noise = np.eye(len(off)) + (moves / scale) @ inverse @ (moves / scale).T
    at = _places(used, known)
    smooth = distance[:, None] * distance * _correlation(at, at)
    # In the axes where both are diagonal every rate costs a sum.
    lower = np.linalg.cholesky(noise)
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

r"""A power law with a limit, value = limit + factor · size^−power, fitted to one curve or to several.

The form of learning curves and of scaling laws of one input (Kaplan et al., 2020; Hoffmann et al., 2022,
Eq. 10 for one input). For a given power the law is a straight line in size^−power, so limit and factor
are solved exactly, and the power is tried on a grid. `squares_by_power` does that for curves that share
a power and nothing else.

`fit_power_law` keeps every power that the points leave open. The profile likelihood of power p, with the
noise unknown, is proportional to S(p)^(−(n − 3)/2), S the sum of squares; a prediction is that of the
likeliest power, and its interval holds the error of limit and factor and how far other powers say
otherwise, each as likely as its profile. So it widens beyond the data. Where deviations are heavy-tailed
Huber's loss bounds the pull of a point (Huber, 1964): 1.345 robust deviations.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from taskmix.errors import InputError, OptionError
from taskmix.numerics._intervals import check_level, normal_quantile, student_quantile

Array = NDArray[np.float64]

POWERS = np.linspace(0.05, 1.5, 30)  # flatter ones are a logarithm, steeper ones are over at once
HUBER_BEND, NORMAL_MAD = 1.345, 0.6745  # the usual bound: 95 % efficient where noise is normal
REWEIGHTED = 5  # times: Huber's weights have settled to what matters here
TINY = 1e-300


@dataclass(frozen=True)
class PowerLaw:
    """value = limit + factor · size^−power.

    >>> PowerLaw(0.9, -0.8, 0.5).at([1.0, 4.0, 100.0]).round(2).tolist()
    [0.1, 0.5, 0.82]
    """

    limit: float
    factor: float  # below 0: the value rises to the limit
    power: float

    def at(self, sizes: ArrayLike) -> Array:
        """The value at each size."""
        found: Array = self.limit + self.factor * np.asarray(sizes, dtype=np.float64) ** -self.power
        return found


@dataclass(frozen=True)
class PowerLawPrediction:
    """What a power law says of some sizes, with an interval.

    >>> PowerLawPrediction(np.array([1.0]), np.array([0.9]), np.array([1.1])).holds([1.05]).tolist()
    [True]
    """

    values: Array  # [size]
    low: Array
    high: Array

    def holds(self, values: ArrayLike) -> NDArray[np.bool_]:
        """Whether each of these values lies in its interval."""
        given = np.asarray(values, dtype=np.float64)
        return (self.low <= given) & (given <= self.high)


@dataclass(frozen=True, eq=False)
class PowerLawFit:
    """The likeliest law and those of other powers.

    >>> sizes = [1.0, 2, 4, 8, 16, 32]
    >>> fit = fit_power_law(sizes, PowerLaw(2.0, 1.0, 0.5).at(sizes))
    >>> round(fit.best.power, 3), fit.predict([64.0]).values.round(3).tolist()
    (0.5, [2.125])
    """

    laws: tuple[PowerLaw, ...]  # one of each power
    chances: Array  # [power], sum 1
    covariances: Array  # [power, 2, 2], of limit and factor
    deviation: float  # of one measurement
    degrees: int

    @property
    def best(self) -> PowerLaw:
        """The law of the likeliest power."""
        return self.laws[int(self.chances.argmax())]

    def predict(
        self, sizes: ArrayLike, *, level: float = 0.9, measurement: bool = False
    ) -> PowerLawPrediction:
        """Values with intervals of the law, or of one more `measurement`, which has noise of its own."""
        check_level(level)
        at = np.asarray(sizes, dtype=np.float64)
        values = self.best.at(at)
        variance = np.full(at.shape, self.deviation**2 if measurement else 0.0)
        between = np.zeros(at.shape)
        for chance, law, covariance in zip(self.chances, self.laws, self.covariances, strict=True):
            terms = np.stack([np.ones_like(at), at**-law.power], axis=-1)
            own = np.einsum("...i,ij,...j->...", terms, covariance, terms)
            variance = variance + chance * own
            between = between + chance * (law.at(at) - values) ** 2
        # The chances of powers know already that the noise is learned from few points.
        half = np.hypot(
            student_quantile(level, self.degrees) * np.sqrt(variance),
            normal_quantile(level) * np.sqrt(between),
        )
        return PowerLawPrediction(values, values - half, values + half)


def fit_power_law(
    sizes: ArrayLike,  # [point], above 0
    values: ArrayLike,  # [point]
    *,
    weights: ArrayLike | None = None,  # [point]; a point of weight k is the mean of k measurements
    powers: ArrayLike = POWERS,
    huber: bool = False,
) -> PowerLawFit:
    """Fits limit, factor and power to the points of one curve.

    >>> fit = fit_power_law([1, 4, 16, 64], [1.0, 0.5, 0.25, 0.125])
    >>> abs(fit.best.limit) < 1e-9, round(fit.best.power, 2)
    (True, 0.5)
    """
    x, y = (np.asarray(each, dtype=np.float64) for each in (sizes, values))
    if x.shape != y.shape or x.ndim != 1 or len(x) < 2:
        raise InputError(
            "A power law should have as many values as sizes, two at least. Found "
            f"{x.size} sizes and {y.size} values."
        )
    if not (np.isfinite(x).all() and np.isfinite(y).all() and (x > 0).all()):
        raise InputError(
            "A power law should have finite values at sizes above 0. Leave others out."
        )
    given = np.ones(len(x)) if weights is None else np.asarray(weights, dtype=np.float64)
    if given.shape != x.shape or not (np.isfinite(given).all() and (given > 0).all()):
        raise OptionError("`weights` should have one number above 0 for each point.")
    given = given / given.mean()
    laws, covariances, squares = [], [], []
    degrees = max(len(x) - 3, 1)
    for power in np.asarray(powers, dtype=np.float64).tolist():
        law, covariance, missed = _line(x, y, given, power, huber=huber)
        laws.append(law)
        covariances.append(covariance)
        squares.append(missed)
    all_missed = np.array(squares)
    least = max(float(all_missed.min()), 1e-24 * float(np.sum(given * y**2)), TINY)
    logs = -0.5 * degrees * np.log(np.maximum(all_missed, least) / least)
    chances = np.exp(logs)
    chances = chances / chances.sum()
    variance = least / degrees
    return PowerLawFit(
        tuple(laws), chances, np.array(covariances) * variance, float(np.sqrt(variance)), degrees
    )


def _line(
    x: Array, y: Array, given: Array, power: float, *, huber: bool
) -> tuple[PowerLaw, Array, float]:
    """Limit and factor at a power, their covariance for a noise of 1, and the squares left."""
    design = np.stack([np.ones_like(x), x**-power], axis=1)
    scale = np.array([1.0, float(np.abs(design[:, 1]).max())])  # else tiny columns are cut off
    weight = given
    for _ in range(REWEIGHTED if huber else 1):
        inverse = np.linalg.pinv((design / scale).T @ (weight[:, None] * design / scale))
        told = inverse @ ((design / scale).T @ (weight * y)) / scale
        rest = np.sqrt(given) * (y - design @ told)
        bound = HUBER_BEND * float(np.median(np.abs(rest))) / NORMAL_MAD
        if huber and bound > 0:
            weight = given * np.minimum(bound / np.maximum(np.abs(rest), TINY), 1.0)
    law = PowerLaw(float(told[0]), float(told[1]), power)
    missed = float(np.sum(weight / given * rest**2))
    return law, inverse / np.outer(scale, scale), missed


def squares_by_power(
    curves: Iterable[tuple[Array, Array]], powers: ArrayLike, *, one_factor: bool = False
) -> Array:
    """[power], the squares that curves leave which share a power, each with its own limit.

    Each curve is its sizes [point] and its values [point] or [point, series]. With `one_factor` all
    share that as well: fewer numbers, where curves are short and much alike.

    >>> sizes = np.array([1.0, 4.0, 16.0])
    >>> both = [(sizes, 1 + sizes**-0.5), (sizes, 2 - 3 * sizes**-0.5)]
    >>> squares_by_power(both, [0.25, 0.5, 1.0]).round(3).tolist()
    [0.024, 0.0, 0.06]
    """
    tried = np.asarray(powers, dtype=np.float64)
    total = np.zeros(len(tried))
    along, across = np.zeros(len(tried)), np.zeros(len(tried))  # x @ y and x @ x over all curves
    for sizes, values in curves:
        x = sizes ** -tried[:, None]  # [power, point]
        x = x - x.mean(axis=1, keepdims=True)
        y = values.reshape(len(sizes), -1)
        y = y - y.mean(axis=0)
        both, squares = x @ y, (x**2).sum(axis=1)  # [power, series], [power]
        total += float((y**2).sum())
        if one_factor:
            along, across = along + both.sum(axis=1), across + y.shape[1] * squares
        else:
            total -= (both**2).sum(axis=1) / np.maximum(squares, TINY)
    return np.maximum(total - along**2 / np.maximum(across, TINY), 0.0)

r"""What a domain is worth for a metric: the law of effective data, fitted with its uncertainty.

$$L_m(w) = c_m + b_m \frac{x^{-a_m} - 1}{a_m}, \qquad x = e_m + \sum_j s_{mj} w_j$$

A share of domain j counts as $s_{mj}$ of effective data $x$ for metric m, where 1 is the geometric mean
of all domains; $e_m$ is what every run has. It is the law $c + (e + \sum_j s_j w_j)^{-a}$ in another
scale, one in which a small exponent (the logarithm is its limit) leaves the worths where they are.
All but $c_m$ are positive and fitted as logarithms with wide normal priors, so that a domain
that was never varied has a worth that is merely unknown. The posterior is taken as normal (Laplace).

This is a small law of its own: what is needed here is a number for each pair of a domain and a metric,
on one scale, with a standard deviation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import least_squares

from taskmix.mixtures._table import Floats

HEAD = 4  # parameters before those of the domains: c, log b, log a, log e
EXPONENT, EXPONENT_SPREAD = np.log(0.3), 0.7  # of log a
COMMON, COMMON_SPREAD = -4.0, 2.0  # of log e
WORTH_SPREAD = 2.0  # of log s: a factor of 7 either way is usual
HELD = 1e-2  # how far the mean of log s may be from 0: it is the scale of x, which b and c have too
FLOOR = 1e-3  # of the spread of a metric: the least noise that a run is taken to have
ROUNDS = 4  # of fit and noise
CLOSE = 1e-6  # of a fit; its uncertainty is a thousand times as large
LEAST_APART = 0.3  # of the logarithms of b, a and e between metrics
HIGHEST = 100.0  # power of e; a step of the fit may try worths of nothing


@dataclass(frozen=True, eq=False)
class MetricWorth:
    """The law of one metric: `theta` is (c, log b, log a, log e, log s of each domain)."""

    theta: Floats
    covariance: Floats  # of theta
    noise: float  # standard deviation of a run around its law

    @property
    def log_worth(self) -> Floats:
        """[domain]."""
        return self.theta[HEAD:]

    def sample(self, count: int, random: np.random.Generator) -> Floats:
        """[draw, parameter], equally likely parameters."""
        values, vectors = np.linalg.eigh(self.covariance)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        return np.asarray(self.theta + random.standard_normal((count, len(self.theta))) @ root.T)


@dataclass(frozen=True, eq=False)
class WorthShape:
    """Where log b, log a and log e of a metric lie, by the metrics that are like it."""

    centre: Floats
    spread: Floats

    @classmethod
    def common_to(cls, fits: Sequence[MetricWorth]) -> WorthShape:
        heads = np.array([fit.theta[1:HEAD] for fit in fits])
        centre = np.median(heads, axis=0)
        apart = 1.5 * np.median(np.abs(heads - centre), axis=0)  # near the standard deviation
        return cls(centre, np.maximum(apart, LEAST_APART))


def worth_law(theta: Floats, data: Floats) -> Floats:
    """The metric, for parameters [..., parameter] and data without e, sum_j s_j w_j [..., mixture]."""
    c, b, a, e = (theta[..., n, None] for n in range(HEAD))
    return np.asarray(c + np.exp(b) * _power(np.log(np.exp(e) + data), np.exp(a)))


def _power(log_x: Floats, a: Floats) -> Floats:
    return np.asarray(np.expm1(np.minimum(-a * log_x, HIGHEST)) / a)


def fit_law(shares: Floats, values: Floats, shape: WorthShape | None = None) -> MetricWorth:
    """The law of one metric, from the runs that have it."""
    known = np.isfinite(values)
    shares, values = shares[known], values[known]
    domains = shares.shape[1]
    spread = float(values.std()) or 1.0
    centre = np.zeros(HEAD + domains)
    centre[:HEAD] = values.mean(), np.log(spread), EXPONENT, COMMON
    scales = np.r_[5 * spread, 2.0, EXPONENT_SPREAD, COMMON_SPREAD, np.full(domains, WORTH_SPREAD)]
    if shape is not None:
        centre[1:HEAD], scales[1:HEAD] = shape.centre, shape.spread
    prior = np.vstack(
        [np.diag(1 / scales), np.r_[np.zeros(HEAD), np.full(domains, 1 / domains)] / HELD]
    )
    theta, noise = centre, 0.2 * spread

    def residuals(theta: Floats) -> Floats:
        law = worth_law(theta, shares @ np.exp(theta[HEAD:]))
        return np.concatenate([(law - values) / noise, prior @ (theta - centre)])

    def slopes(theta: Floats) -> Floats:
        return np.concatenate([_slopes(theta, shares) / noise, prior])

    for _ in range(ROUNDS):
        found = least_squares(
            residuals, theta, jac=slopes, method="lm", ftol=CLOSE, xtol=CLOSE, max_nfev=200
        )
        theta = found.x
        inside = slopes(theta)
        covariance = np.linalg.inv(inside.T @ inside)
        of_runs = inside[: len(values)]
        taken = float(np.sum((of_runs @ covariance) * of_runs))  # degrees of freedom
        left = noise * residuals(theta)[: len(values)]
        noise = max(float(np.sqrt((left**2).sum() / max(len(values) - taken, 1.0))), FLOOR * spread)
    inside = slopes(theta)
    return MetricWorth(theta, np.asarray(np.linalg.inv(inside.T @ inside)), noise)


def _slopes(theta: Floats, shares: Floats) -> Floats:
    """[run, parameter], of the law by its parameters."""
    b, a, e = np.exp(theta[1:HEAD])
    worth = np.exp(theta[HEAD:])
    x = e + shares @ worth
    log_x = np.log(x)
    power = _power(log_x, a)
    by_x = -b * x ** (-a - 1)
    by_log_a = b * (-log_x * np.exp(-a * log_x) - power)
    return np.column_stack(
        [np.ones(len(x)), b * power, by_log_a, by_x * e, by_x[:, None] * shares * worth]
    )

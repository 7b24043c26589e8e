r"""Normal densities of vectors with gaps, and the statistics that their means and covariances need.

A vector with missing numbers has the density of those observed, and the E-step fills in the
expectation of the others and of their products given these (Little and Rubin, "Statistical Analysis
with Missing Data", section 11.2). Vectors are grouped by which of their numbers are missing.

Covariances are learned with the help of `smoothing` pseudo-observations that have the mean and the
spread of all data (`Background`). They keep a covariance that has too few vectors from becoming
singular; without them a singular one is an error that says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve

from taskmix.errors import InputError, OptionError
from taskmix.sequences._generator import Floats, Statistics

Covariance = Literal["full", "diagonal"]
LOG_TWO_PI = float(np.log(2 * np.pi))


@dataclass(frozen=True, eq=False)
class Gaps:
    """Vectors grouped by what is missing in them."""

    values: Floats  # [vector, dimension], zero where missing
    groups: list[tuple[NDArray[np.bool_], NDArray[np.int64]]]  # what is observed, in which vectors


@dataclass(frozen=True, eq=False)
class Background:
    """Mean and variance of all vectors, number by number."""

    mean: Floats  # [dimension]
    variance: Floats  # [dimension]


@dataclass(frozen=True, eq=False)
class Moments(Statistics):
    """Expected weighted sums, for several normals, of vectors minus the mean of the background: sums
    of squares of large numbers that differ little would lose what matters."""

    mass: Floats  # [..., normal]
    first: Floats  # [..., normal, dimension]
    second: Floats  # [..., normal, dimension, dimension], of the products


def check_covariance(covariance: str) -> None:
    if covariance not in ("full", "diagonal"):
        raise OptionError(f"`covariance` should be `full` or `diagonal`. Found {covariance!r}.")


def find_gaps(values: Floats) -> Gaps:
    observed = ~np.isnan(values)
    if observed.all():
        everything = np.ones(values.shape[1], np.bool_)
        return Gaps(values, [(everything, np.arange(len(values)))])
    patterns, kind = np.unique(observed, axis=0, return_inverse=True)
    groups = [(pattern, np.flatnonzero(kind == code)) for code, pattern in enumerate(patterns)]
    return Gaps(np.where(observed, values, 0.0), groups)


def background(values: Floats) -> Background:
    """A number that never varies gets the variance one."""
    dimension = values.shape[1]
    mean, variance = np.zeros(dimension), np.ones(dimension)
    for place in range(dimension):
        seen = values[:, place][~np.isnan(values[:, place])]
        if len(seen):
            mean[place] = seen.mean()
            variance[place] = seen.var() or 1.0
    return Background(mean, variance)


def draw_normals(
    gaps: Gaps,
    weights: Floats,  # [vector, generator]
    count: int,
    behind: Background,
    generator: np.random.Generator,
    most: int = 4000,
) -> tuple[Floats, Floats]:
    """Means [generator, normal, dimension] at the centres of groups of vectors that were drawn by
    their weights, and the spread of all data as covariances."""
    from sklearn.cluster import KMeans

    lacking = np.ones_like(gaps.values, dtype=np.bool_)
    for observed, rows in gaps.groups:
        lacking[np.ix_(rows, np.flatnonzero(observed))] = False
    values = np.where(lacking, behind.mean, gaps.values)
    means = np.empty((weights.shape[1], count, values.shape[1]))
    for which, column in enumerate(weights.T):
        shares = column / column.sum() if column.sum() > 0 else None
        drawn = values[generator.choice(len(values), min(most, 10 * len(values)), p=shares)]
        if count == 1:
            means[which] = drawn.mean(axis=0)
            continue
        noise = 1e-3 * np.sqrt(behind.variance) * generator.normal(size=drawn.shape)
        seed = int(generator.integers(2**31))
        scale = np.sqrt(behind.variance)
        centres = KMeans(count, n_init=1, max_iter=20, random_state=seed)
        means[which] = centres.fit((drawn + noise) / scale).cluster_centers_ * scale
    covariances = np.broadcast_to(np.diag(behind.variance), (*means.shape, values.shape[1]))
    return means, covariances.copy()


def mixture_moments(shares: Floats, means: Floats, covariances: Floats) -> tuple[Floats, Floats]:
    """Mean and covariance of a mixture of normals, whose axis comes before the dimension."""
    mean = np.einsum("...c,...cd->...d", shares, means)
    away = means - mean[..., None, :]
    within = np.einsum("...c,...cde->...de", shares, covariances)
    return mean, within + np.einsum("...c,...cd,...ce->...de", shares, away, away)


def log_densities(
    gaps: Gaps, means: Floats, covariances: Floats, *, name: str = "covariance"
) -> Floats:
    """[vector, normal] for `means` [normal, dimension]; zero where all of a vector is missing."""
    found = np.zeros((len(gaps.values), len(means)))
    for observed, rows in gaps.groups:
        if not observed.any():
            continue
        values = gaps.values[np.ix_(rows, np.flatnonzero(observed))]
        for which in range(len(means)):
            factor = factorise(covariances[which][np.ix_(observed, observed)], name)
            # The inverse of a small triangle, once: then the many vectors are one product.
            away = (values - means[which][observed]) @ np.linalg.inv(factor).T
            log_size = 2 * np.log(np.diag(factor)).sum() + len(factor) * LOG_TWO_PI
            found[rows, which] = -0.5 * ((away**2).sum(axis=1) + log_size)
    return found


def stack_moments(parts: Sequence[Moments]) -> Moments:
    """Moments of several generators, with one more axis for these."""
    return Moments(
        np.array([part.mass for part in parts]),
        np.array([part.first for part in parts]),
        np.array([part.second for part in parts]),
    )


def expected_moments(
    gaps: Gaps,
    weights: Floats,  # [vector, normal]
    means: Floats,
    covariances: Floats,
    behind: Background,
) -> Moments:
    """Weighted sums, with the expectation of what is missing under these normals."""
    count, dimension = means.shape
    mass, first = np.zeros(count), np.zeros((count, dimension))
    second = np.zeros((count, dimension, dimension))
    for observed, rows in gaps.groups:
        shares = weights[rows]
        totals = shares.sum(axis=0)
        mass += totals
        for which in np.flatnonzero(totals > 0):
            share = shares[:, which]
            values = gaps.values[rows]
            if not observed.all():
                values, rest = _filled(values, observed, means[which], covariances[which])
                second[which] += totals[which] * rest
            values = values - behind.mean
            first[which] += share @ values
            second[which] += (values * share[:, None]).T @ values
    return Moments(mass, first, second)


class NormalOptions(Protocol):
    """What a generator of normal vectors says about them."""

    @property
    def covariance(self) -> Covariance: ...
    @property
    def smoothing(self) -> float: ...
    @property
    def fixed(self) -> tuple[str, ...]: ...


class NormalParameters(Protocol):
    """Normals of any number of axes before the dimension."""

    @property
    def mean(self) -> Floats: ...
    @property
    def covariance(self) -> Floats: ...
    @property
    def behind(self) -> Background: ...


def learn_normals(
    options: NormalOptions, parameters: NormalParameters, moments: Moments
) -> tuple[Floats, Floats]:
    """The most likely means and covariances; those without any weight stay as they are."""
    means, covariances, behind = parameters.mean, parameters.covariance, parameters.behind
    mass = (moments.mass + options.smoothing)[..., None]
    weighed = mass > 0
    divisor = np.where(weighed, mass, 1.0)
    if "mean" not in options.fixed:
        means = np.where(weighed, behind.mean + moments.first / divisor, means)
    if "covariance" not in options.fixed:
        away = means - behind.mean
        crossed = moments.first[..., :, None] * away[..., None, :]
        around = moments.second + options.smoothing * np.diag(behind.variance)
        around = (around - crossed - np.swapaxes(crossed, -1, -2)) / divisor[..., None]
        around += away[..., :, None] * away[..., None, :]
        if options.covariance == "diagonal":
            around = around * np.eye(around.shape[-1])
        covariances = np.where(weighed[..., None], around, covariances)
    return means, covariances


def log_prior_of_normals(options: NormalOptions, parameters: NormalParameters) -> Floats:
    """[...], the expected log-density of the pseudo-observations."""
    means, behind = parameters.mean, parameters.behind
    if not options.smoothing:
        return np.zeros(means.shape[:-1])
    inverse = np.linalg.inv(parameters.covariance)
    _, log_size = np.linalg.slogdet(parameters.covariance)
    away = means - behind.mean
    spread = np.diagonal(inverse, axis1=-2, axis2=-1) @ behind.variance
    spread += np.einsum("...i,...ij,...j->...", away, inverse, away)
    total = log_size + spread + means.shape[-1] * LOG_TWO_PI
    return np.asarray(-0.5 * options.smoothing * total)


def factorise(covariance: Floats, name: str = "covariance") -> Floats:
    """The lower triangle of Cholesky, or a sentence where there is none."""
    try:
        factor = np.linalg.cholesky(covariance)
    except np.linalg.LinAlgError:
        factor = np.zeros((1, 1))
    if not np.diag(factor).min() > 0:
        raise InputError(
            f"The {name} of every generator should be positive definite. Found one that is not: it "
            "has too few observations that differ. Raise `smoothing` above 0, or choose diagonal "
            "covariances or fewer generators."
        )
    return np.asarray(factor, dtype=np.float64)


def _filled(
    values: Floats, observed: NDArray[np.bool_], mean: Floats, covariance: Floats
) -> tuple[Floats, Floats]:
    """The vectors with the missing numbers expected, and the covariance that these have left."""
    seen, lacking = np.flatnonzero(observed), np.flatnonzero(~observed)
    rest = np.zeros_like(covariance)
    filled = values.copy()
    if not len(seen):
        filled[:] = mean
        return filled, covariance
    factor = factorise(covariance[np.ix_(seen, seen)])
    gain = cho_solve((factor, True), covariance[np.ix_(seen, lacking)])  # [seen, lacking]
    filled[:, lacking] = mean[lacking] + (values[:, seen] - mean[seen]) @ gain
    rest[np.ix_(lacking, lacking)] = (
        covariance[np.ix_(lacking, lacking)] - covariance[np.ix_(lacking, seen)] @ gain
    )
    return filled, rest

r"""How good each way of training is, from everything that says something of it.

A run of a way gives several numbers: its mean score, which is what is asked for, and its dev loss, which
says nearly the same with less noise. Runs of a cheaper model (a lower rung of the ladder) give the same
numbers again. With η_c all the numbers of way c, one row for each group g of numbers that one run gives,

    y_gcs = η_gc + γ_gs + ε_gcs,    ε_gcs ~ N(0, W_g),    η_c ~ N(μ, B)

γ is what a seed does to all ways alike. W is the noise of a run, B how ways differ, over numbers and
rungs together: where loss or a lower rung goes with the score, as the ways run on both show, they count,
and where they do not, B says so and they are ignored. That ways come from one distribution pulls those
that lead by luck back, which is what corrects for looking at many (Gelman, Hill and Yajima, 2012).

The posterior is drawn by Gibbs sampling. Deviations in W and B have half-t priors, which leave their
size open over many orders, and correlations are uniform (Huang and Wand, 2013). The draws are a
function of the data alone, so an adviser asked again decides the same.

Scores are of dev rows, which are a sample: ways differ on other rows by θ = η − r, where r ~ N(0, R)
and R is known row by row (`_rows.py`). With T² how far ways differ on all rows,

    η ~ N(μ, T² + R),    r | η ~ N(R (T² + R)⁻¹ (η − μ), T² R (T² + R)⁻¹)

and T, of which few ways say little, is drawn given η, all sizes of it being as likely before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from taskmix.errors import InputError

Array = NDArray[np.float64]

DRAWS = 1000  # kept: the chance of being the best is then known to 1 %
WARM_UP = 150  # sweeps before the first is kept
PRIOR_DEGREES = 2.0  # of the half-t priors: with 2, every correlation is as likely as any other
PRIOR_NOISE, PRIOR_SPREAD = 3.0, 3.0  # their scales, in deviations of all scores: wide, so flat
SMALLEST = 1e-9  # of a number's deviation
MOST_SPREAD, SPREADS = (
    4.0,
    40,
)  # of ways on all rows, in deviations of what is seen; how many are tried


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What runs of one kind gave: for each way [seed, number], in the order of seeds."""

    name: str
    values: Mapping[str, Sequence[Sequence[float]]]

    def table(self, ways: Sequence[str]) -> Array:
        """[way, seed, number]; NaN where a way has no such run."""
        width = max((len(row) for rows in self.values.values() for row in rows), default=1)
        seeds = max((len(rows) for rows in self.values.values()), default=0)
        found = np.full((len(ways), seeds, width), np.nan)
        for place, way in enumerate(ways):
            for seed, row in enumerate(self.values.get(way, ())):
                found[place, seed] = row
        return found


@dataclass(frozen=True, eq=False)
class Estimate:
    """Draws of how good each way is, on the scale of the first number of the first group."""

    ways: tuple[str, ...]
    draws: Array  # [draw, way]
    noise: float  # deviation of one run's score
    agreement: Mapping[str, Array]  # for each lower rung, draws of its correlation with the first
    seed: int = 0

    @property
    def means(self) -> Array:
        found: Array = self.draws.mean(axis=0)
        return found

    @cached_property
    def chances(self) -> dict[str, float]:
        """Of each way, to be the best."""
        best = np.bincount(self.draws.argmax(axis=1), minlength=len(self.ways))
        return dict(zip(self.ways, (best / len(self.draws)).tolist(), strict=True))

    def of(self, way: str) -> Array:
        """[draw]"""
        found: Array = self.draws[:, self.ways.index(way)]
        return found

    def moved(
        self, by: Array, error: float, *, contraction: float = 1.0, shared: Array | float = 0.0
    ) -> Estimate:
        """Where differences shrink and every way moves by so much [way].

        Each has an error of its own, and all of them one that is `shared` [way]: what one way shows of
        it, others learn.
        """
        generator = np.random.default_rng([self.seed, 1])
        white = generator.standard_normal(self.draws.shape)
        together = generator.standard_normal((len(self.draws), 1))
        center = self.draws.mean(axis=1, keepdims=True)
        moved = center + contraction * (self.draws - center) + by + error * white
        return replace(self, draws=moved + shared * together)

    def seen(self, means: Mapping[str, float], counts: Mapping[str, int]) -> Estimate:
        """After runs of some ways gave these mean scores; what all of them have in common is no news.

        The draws are an ensemble, and each is moved by the gain that a normal distribution with their
        mean and covariance has (the ensemble Kalman filter: Evensen, 1994).
        """
        ways = [way for way in self.ways if way in means]
        if len(ways) < 2:
            return self
        generator = np.random.default_rng([self.seed, 2])
        places = [self.ways.index(way) for way in ways]
        # Differences to the first of them.
        contrast = np.concatenate([-np.ones((len(ways) - 1, 1)), np.eye(len(ways) - 1)], axis=1)
        noise = np.diag([self.noise**2 / counts[way] for way in ways])
        known = contrast @ np.array([means[way] for way in ways])
        expected = self.draws[:, places] @ contrast.T  # [draw, contrast]
        error = contrast @ noise @ contrast.T
        spread = np.atleast_2d(np.cov(expected.T)) + error
        centred = self.draws - self.means
        together = centred.T @ (expected - expected.mean(axis=0)) / (len(self.draws) - 1)
        gain = together @ np.linalg.inv(spread)
        jitter = generator.multivariate_normal(np.zeros(len(error)), error, len(self.draws))
        return replace(self, draws=self.draws + (known + jitter - expected) @ gain.T)

    def on_new_rows(self, rows: Mapping[str, Array] | None) -> Estimate:
        """On rows not seen yet; `rows` is R, the covariance of each way with all others."""
        if rows is None or len(self.ways) < 2:
            return self
        matrix = np.array([rows[way] for way in self.ways])
        # Directions in which ways differ: what rows do to all of them alike is no difference.
        centre = np.eye(len(self.ways)) - 1 / len(self.ways)
        across = np.linalg.svd(centre)[0][:, :-1]
        values, inner = np.linalg.eigh(across.T @ matrix @ across)
        values, vectors = np.maximum(values, 0.0), across @ inner
        generator = np.random.default_rng([self.seed, 3])
        along = self.draws @ vectors  # [draw, direction]
        spread = _spread_of_ways(along, values, generator)[:, None]
        share = values / (values + spread)
        white = generator.standard_normal(along.shape)
        effects = (share * along + np.sqrt(spread * share) * white) @ vectors.T
        return replace(self, draws=self.draws - effects)


def _spread_of_ways(along: Array, values: Array, generator: np.random.Generator) -> Array:
    """T² for each draw, given its differences [draw, direction] and the variances of rows in them."""
    largest = MOST_SPREAD * np.sqrt(np.mean(along**2 + values, axis=1)) + SMALLEST
    tried = (largest[:, None] * np.linspace(0, 1, SPREADS + 1)[1:]) ** 2  # [draw, T²]
    variance = tried[:, :, None] + values
    fit = -0.5 * (np.log(variance) + along[:, None, :] ** 2 / variance).sum(axis=2)
    chances = np.exp(fit - fit.max(axis=1, keepdims=True)).cumsum(axis=1)
    place = (chances < generator.random((len(along), 1)) * chances[:, -1:]).sum(axis=1)
    found: Array = tried[np.arange(len(tried)), place]
    return found


def estimate_ways(
    groups: Sequence[Measured],  # the first has the score that is asked for
    *,
    seed: int = 0,
) -> Estimate:
    """Draws from the posterior of the first number of the first group, on these dev rows.

    A way that only a lower rung has run is estimated from that.
    """
    ways = tuple(dict.fromkeys(way for group in groups for way in group.values))
    tables = [group.table(ways) for group in groups]
    if not ways or not np.isfinite(tables[0]).any():
        raise InputError("Every estimate should rest on a score at least. Found none.")
    level = float(np.nanmean(tables[0][:, :, 0]))
    tables, scale = _standardized(tables)
    sampler = _Sampler(tables, np.random.default_rng(seed))
    places = np.cumsum([0, *(table.shape[2] for table in tables)])
    draws, noises = np.empty((DRAWS, len(ways))), np.empty(DRAWS)
    agreement = {group.name: np.empty(DRAWS) for group in groups[1:]}
    for sweep in range(-WARM_UP, DRAWS):
        sampler.sweep()
        if sweep < 0:
            continue
        draws[sweep] = sampler.effects[:, 0]
        noises[sweep] = sampler.noise[0].value[0, 0]
        for group, place in zip(groups[1:], places[1:-1], strict=True):
            both = sampler.between.value[np.ix_([0, place], [0, place])]
            agreement[group.name][sweep] = both[0, 1] / np.sqrt(both[0, 0] * both[1, 1])
    # The level of all is not identified apart from the seeds' effects: that of the data is put back.
    draws = (draws - draws.mean()) * scale + level
    return Estimate(ways, draws, float(np.sqrt(np.median(noises))) * scale, agreement, seed)


def _standardized(tables: Sequence[Array]) -> tuple[list[Array], float]:
    """Every number in deviations over ways and seeds, seeds' means left out; that of the first."""
    found, deviations = [], []
    for table in tables:
        rest = table - np.nanmean(table, axis=0, keepdims=True)
        deviation = np.maximum(np.sqrt(np.nanmean(rest**2, axis=(0, 1))), SMALLEST)
        found.append((table - np.nanmean(table, axis=(0, 1))) / deviation)
        deviations.append(deviation)
    return found, float(deviations[0][0])


class _Covariance:
    """A covariance with half-t priors on its deviations, and what its prior hangs on."""

    def __init__(self, width: int, scale: float) -> None:
        self.value = np.eye(width) * scale**2 / 4
        self._width, self._scale = width, scale
        self._mixing = np.ones(width)  # 1 / a of Huang and Wand

    def draw(self, errors: Array, generator: np.random.Generator) -> None:
        """Given errors [case, number] that it made."""
        degrees = PRIOR_DEGREES + self._width - 1
        scale = 2 * PRIOR_DEGREES * np.diag(self._mixing) + errors.T @ errors
        scale += SMALLEST * np.eye(self._width)  # scores that are all alike have a noise of 0
        self.value = _inverse_wishart(degrees + len(errors), scale, generator)
        inverse = np.linalg.inv(self.value).diagonal()
        shape = (PRIOR_DEGREES + self._width) / 2
        mixing = generator.gamma(shape, 1 / (PRIOR_DEGREES * inverse + self._scale**-2))
        self._mixing = np.clip(mixing, SMALLEST, 1 / SMALLEST)


class _Sampler:
    """The state of the Gibbs sampler, numbers in deviations of their own."""

    def __init__(self, tables: Sequence[Array], generator: np.random.Generator) -> None:
        self.generator = generator
        self.known = [~np.isnan(table[:, :, 0]) for table in tables]  # [way, seed]
        self.tables = [np.nan_to_num(table) for table in tables]
        self.widths = [table.shape[2] for table in tables]
        self.ends = np.cumsum([0, *self.widths])
        ways, width = tables[0].shape[0], int(self.ends[-1])
        self.effects = np.zeros((ways, width))
        self.seeds = [np.zeros((table.shape[1], table.shape[2])) for table in tables]
        self.noise = [_Covariance(each, PRIOR_NOISE) for each in self.widths]
        self.between = _Covariance(width, PRIOR_SPREAD)
        self.center = np.zeros(width)

    def sweep(self) -> None:
        self._draw_effects()
        self._draw_seeds()
        self._draw_noise()
        mean = self.effects.mean(axis=0)
        self.center = mean + _normal(self.between.value / len(self.effects), self.generator)
        self.between.draw(self.effects - self.center, self.generator)

    def _draw_effects(self) -> None:
        count, width = self.effects.shape
        inverse = np.linalg.inv(self.between.value)
        precision = np.repeat(inverse[None], count, axis=0)
        pull = np.repeat((inverse @ self.center)[None], count, axis=0)
        for group, (begin, end) in enumerate(zip(self.ends[:-1], self.ends[1:], strict=True)):
            weight, known = np.linalg.inv(self.noise[group].value), self.known[group]
            precision[:, begin:end, begin:end] += known.sum(axis=1)[:, None, None] * weight
            rest = np.where(known[:, :, None], self.tables[group] - self.seeds[group], 0.0)
            pull[:, begin:end] += rest.sum(axis=1) @ weight
        lower = np.linalg.cholesky(precision)
        mean = np.linalg.solve(precision, pull[:, :, None])
        white = self.generator.standard_normal((count, width, 1))
        self.effects = (mean + np.linalg.solve(lower.transpose(0, 2, 1), white))[:, :, 0]

    def _draw_seeds(self) -> None:
        for group, table in enumerate(self.tables):
            known, noise = self.known[group], self.noise[group].value
            own = slice(self.ends[group], self.ends[group + 1])
            rest = np.where(known[:, :, None], table - self.effects[:, None, own], 0.0)
            counts = known.sum(axis=0)[:, None]  # every seed was run by some way
            white = self.generator.standard_normal((len(counts), len(noise)))
            drawn = rest.sum(axis=0) / counts + white @ np.linalg.cholesky(noise).T / np.sqrt(
                counts
            )
            # What all seeds have in common is no seed's doing.
            self.seeds[group] = drawn - drawn.mean(axis=0)
            self.effects[:, own] += drawn.mean(axis=0)
            self.center[own] += drawn.mean(axis=0)

    def _draw_noise(self) -> None:
        for group, table in enumerate(self.tables):
            own = self.effects[:, None, self.ends[group] : self.ends[group + 1]]
            errors = (table - own - self.seeds[group])[self.known[group]]
            self.noise[group].draw(errors, self.generator)


def _normal(covariance: Array, generator: np.random.Generator) -> Array:
    found: Array = np.linalg.cholesky(covariance) @ generator.standard_normal(len(covariance))
    return found


def _inverse_wishart(degrees: float, scale: Array, generator: np.random.Generator) -> Array:
    """One draw, by Bartlett's decomposition of the Wishart of the inverse scale."""
    width = len(scale)
    factor = np.tril(generator.standard_normal((width, width)), -1)
    factor[np.diag_indices(width)] = np.sqrt(generator.chisquare(degrees - np.arange(width)))
    lower = np.linalg.cholesky(np.linalg.inv(scale)) @ factor
    return np.asarray(np.linalg.inv(lower @ lower.T), dtype=np.float64)

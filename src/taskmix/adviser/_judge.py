r"""How good each candidate is, who may be the best, and how far apart they can be.

Scores of candidates c under seeds s on the same dev rows are

    y_cs = θ_c + r_c + γ_s + ε_cs,    ε ~ N(0, σ²),    r ~ N(0, R),    θ ~ N(μ, τ²)

γ is what a seed does to all alike, σ the noise of a run, R the covariance that comes of dev rows being
a sample, known row by row (`_rows.py`). That candidates come from one distribution pulls those that
lead by luck back (Gelman, Hill and Yajima, 2012). σ² is the mean square of what neither candidates nor
seeds explain, with its χ² distribution; every size of τ is as likely before, since few candidates say
little of it. Given both all is normal, and θ is drawn from it. The draws are a function of the data.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from taskmix.errors import InputError
from taskmix.numerics import Interval

Array = NDArray[np.float64]
Scores = Mapping[str, Sequence[float]]  # of each candidate, by seed from the first on

DRAWS_OF_NOISE, DRAWS = 80, 15  # sizes of σ and τ, and draws of all candidates under each
SPREADS = np.linspace(0.05, 4.0, 40)  # of τ, in deviations of all scores
SMALLEST, SMALLEST_SCORE = 1e-9, 1e-6
LEVELS_APART = (
    100.0  # of a seed's effect in deviations of all scores: whatever it is, it is left out
)
CHOSEN = 4.0  # of claims that candidates are alike, the likeliest is made: chances count for less
SAME = (
    0.01  # of a score: candidates that are this near to each other are alike for all that matters
)


@dataclass(frozen=True, kw_only=True)
class Standing:
    """Where a candidate stands."""

    name: str
    seeds: int
    mean: float  # over its own seeds, as measured
    behind: Interval  # the leader minus this one, on rows not seen
    is_open: bool  # whether it may still be the best
    chance: float  # that it is


@dataclass(frozen=True, kw_only=True)
class Race:
    """All candidates, the leader first; `noise` is the deviation of one run's score."""

    standings: tuple[Standing, ...]
    noise: float
    row_error: float  # of a difference, because dev rows are a sample; NaN: not known
    level: float = 0.9
    alike: tuple[str, ...] = ()  # the first ones, of which none is far from another
    within: float = math.nan  # how far apart those may be
    open_within: float = math.nan  # and all that may be the best

    @property
    def leader(self) -> Standing:
        return self.standings[0]

    @property
    def open(self) -> tuple[str, ...]:
        return tuple(each.name for each in self.standings if each.is_open)

    @property
    def is_settled(self) -> bool:
        """Whether one is known to be the best, or all that may be are alike for all that matters."""
        return set(self.open) <= {self.leader.name, *self.alike}

    def standing(self, name: str) -> Standing:
        return next(each for each in self.standings if each.name == name)


def rank_candidates(
    scores: Scores,
    *,
    rows: Mapping[str, Array]
    | None = None,  # R: of each candidate with all, in the order of scores
    level: float = 0.9,
) -> Race:
    """Where every candidate stands by its seeds.

    >>> race = rank_candidates({"a": [0.9, 0.91, 0.9], "b": [0.8, 0.82, 0.81], "c": [0.9, 0.91, 0.91]})
    >>> race.open, race.leader.name
    (('c', 'a'), 'c')
    """
    if not scores or not all(len(each) for each in scores.values()):
        raise InputError("Every candidate should have a score. Found one without.")
    if not all(np.isfinite(each).all() for each in scores.values()):
        raise InputError("Scores should be numbers. Found NaN. Leave that candidate out.")
    names = list(scores)
    matrix = None if rows is None else np.array([rows[name] for name in names])
    draws, noise = _draw(list(scores.values()), matrix)
    means = draws.mean(axis=0)
    order = np.argsort(-means, kind="stable")
    best = np.bincount(draws.argmax(axis=1), minlength=len(names)) / len(draws)
    leader = draws[:, order[0]]
    standings = []
    for place in order:
        behind = leader - draws[:, place]
        low, high = np.quantile(behind, [(1 - level) / 2, (1 + level) / 2])
        own = scores[names[place]]
        standings.append(
            Standing(
                name=names[place],
                seeds=len(own),
                mean=float(np.mean(own)),
                behind=Interval(float(behind.mean()), float(low), float(high), len(own), level),
                is_open=bool(place == order[0] or low <= 0),
                chance=float(best[place]),
            )
        )
    alike, within = _alike(draws[:, order], level)
    opened = [names.index(each.name) for each in standings if each.is_open]
    return Race(
        standings=tuple(standings),
        noise=noise,
        row_error=_row_error(matrix),
        level=level,
        alike=tuple(names[place] for place in order[:alike]) if alike > 1 else (),
        within=within,
        open_within=_apart(draws[:, opened], level),
    )


def _alike(draws: Array, level: float) -> tuple[int, float]:
    """How many of the first ones lie within `SAME` of each other, all at once, and within what."""
    count, within = 1, math.nan
    for many in range(2, draws.shape[1] + 1):
        apart = _apart(draws[:, :many], level)
        if apart > SAME:
            break
        count, within = many, apart
    return count, within


def _apart(draws: Array, level: float) -> float:
    """How far apart some candidates are at most."""
    return float(np.quantile(np.ptp(draws, axis=1), 1 - (1 - level) / CHOSEN))


def _row_error(rows: Array | None) -> float:
    """Typical deviation of a difference of two candidates over samples of dev rows."""
    if rows is None or len(rows) < 2:
        return math.nan
    variances = np.diag(rows)
    differences = variances[:, None] + variances[None, :] - 2 * rows
    apart = differences[np.triu_indices(len(rows), 1)]
    return float(np.sqrt(max(np.median(apart), 0.0)))


def _draw(scores: Sequence[Sequence[float]], rows: Array | None) -> tuple[Array, float]:
    """[draw, candidate] of how good each is, and the noise of a run."""
    count = len(scores)
    who = np.concatenate([np.full(len(own), place) for place, own in enumerate(scores)])
    seed = np.concatenate([np.arange(len(own)) for own in scores])
    flat = np.concatenate([np.asarray(own, dtype=np.float64) for own in scores])
    level, scale = float(flat.mean()), max(float(flat.std()), SMALLEST_SCORE)
    if rows is not None:  # scores that are all alike are as unsure as their rows
        scale = max(scale, float(np.sqrt(np.diag(rows).mean())))
    values = (flat - level) / scale
    of_way, of_seed = np.eye(count)[who], np.eye(seed.max() + 1)[seed]
    noise, degrees = _noise(values, of_way, of_seed)
    between = np.zeros((count, count)) if rows is None else rows / scale**2
    generator = np.random.default_rng(0)
    chances = _chances_of_spreads(values, of_way, of_seed, between, noise)
    found = []
    for spread in generator.choice(SPREADS, DRAWS_OF_NOISE, p=chances):
        variance = noise * degrees / generator.chisquare(degrees) if degrees else noise
        mean, covariance = _posterior(values, of_way, of_seed, between, variance, spread)
        root = np.linalg.cholesky(covariance + SMALLEST * np.eye(count))
        found.append(mean + generator.standard_normal((DRAWS, count)) @ root.T)
    return np.concatenate(found) * scale + level, math.sqrt(noise) * scale


def _noise(values: Array, of_way: Array, of_seed: Array) -> tuple[float, int]:
    """σ² and its degrees of freedom; of one seed each, a variance as large as all of it."""
    design = np.column_stack([of_way, of_seed])
    rest = values - design @ np.linalg.lstsq(design, values, rcond=None)[0]
    degrees = len(values) - int(np.linalg.matrix_rank(design))
    if degrees < 1:
        return 1.0, 0
    return max(float(rest @ rest) / degrees, SMALLEST), degrees


def _covariance(
    of_way: Array, of_seed: Array, between: Array, noise: float, spread: float
) -> Array:
    """Of the scores, over candidates, seeds, rows and runs."""
    ways = of_way @ (between + spread**2 * np.eye(len(between))) @ of_way.T
    found: Array = ways + LEVELS_APART**2 * of_seed @ of_seed.T + noise * np.eye(len(of_way))
    return found


def _chances_of_spreads(
    values: Array, of_way: Array, of_seed: Array, between: Array, noise: float
) -> Array:
    """Of each τ, by its likelihood."""

    def fit(spread: float) -> float:
        root = np.linalg.cholesky(_covariance(of_way, of_seed, between, noise, spread))
        white = np.linalg.solve(root, values)
        return float(-np.log(np.diag(root)).sum() - white @ white / 2)

    fits = np.array([fit(spread) for spread in SPREADS])
    chances = np.exp(fits - fits.max())
    found: Array = chances / chances.sum()
    return found


def _posterior(
    values: Array, of_way: Array, of_seed: Array, between: Array, noise: float, spread: float
) -> tuple[Array, Array]:
    """Mean and covariance of θ given the scores, whose mean is 0."""
    covariance = _covariance(of_way, of_seed, between, noise, spread)
    gain = spread**2 * np.linalg.solve(covariance, of_way).T
    found = spread**2 * np.eye(len(between)) - gain @ (spread**2 * of_way)
    return gain @ values, (found + found.T) / 2

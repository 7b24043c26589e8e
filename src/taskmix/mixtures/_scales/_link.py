r"""From a forecast at one size to the runs of others: a line for each metric and size, and a remainder.

With $g_m(w)$ the forecast at the base size and $x_N = \log_{10}(N / N_0)$,

$$L_m(w, N) = \alpha_{mN} + \beta_{mN}\, g_m(w) + x_N \sum_j \theta_{mj}\, \phi_j(w) + \varepsilon .$$

The small forecast is a control variate: the few runs of the large size only have to tell what differs.
The slopes $\beta_{mN}$ are drawn to their mean over metrics and that mean to 1, the remainder's
$\theta$ to 0, each as strongly as the runs themselves say (empirical Bayes by EM): with three large
runs there is a level and hardly more, with thirty a remainder. The remainder is bilinear, log-size by
mixture terms:

    Ye, Liu, Sun, Zhan, Zhou and Qiu, "Data Mixing Laws", ICLR 2025 (how a law nests model size);
    Lavenberg and Welch, "A perspective on the use of control variables", Management Science 1981.

All is in units of each metric's spread between mixtures at the base size, so that metrics can share.

At a size that was never trained a metric's level falls as a power of the size, $E + A N^{-p}$ with one
$p$ for all metrics (Kaplan et al., 2020), the logarithm of its slope goes with the logarithm of the
size. Each draw has its own $p$ and its own errors of the known sizes, so that intervals widen with the
distance. With two sizes $p$ is anything between 0.05 and 0.8.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from taskmix.mixtures._forecast import Forecast
from taskmix.mixtures._table import Floats, MixtureTable
from taskmix.numerics import squares_by_power

ROUNDS = 40  # of EM; hyperparameters move by less than a percent after it
FLAT = 1e-6  # precision of a level, which nothing is known about beforehand
SLOPE_SPREAD, SLOPE_APART = 0.3, 0.15  # of the mean slope around 1, and of a metric's around it
REMAINDER = 0.1  # of a spread for a tenfold size, before any run of another size is seen
NOISE_WEIGHT = 4.0  # runs that the base size's noise counts for
LEAST_SLOPE = 0.05  # a slope of 0 could not be undone when runs are translated
POWERS = np.linspace(0.05, 0.8, 46)
# A size has its own recipe, which moves all its metrics off the power law together: by this part of the
# fall from the smallest to the largest size, before the sizes themselves have told.
LEVEL_ERROR, ERROR_WEIGHT = 0.08, 2.0
SLOPE_ERROR = 0.02  # at least, of a slope


@dataclass(frozen=True, eq=False)
class Units:
    """Metrics in units of their spread, mixtures as standardised terms."""

    center: Floats  # [metric]
    spread: Floats  # [metric]
    term_center: Floats  # [term]
    term_spread: Floats  # [term]

    @classmethod
    def of(cls, predicted: Floats, shares: Floats) -> Units:
        terms = _terms(shares)
        spread = predicted.std(axis=0)
        # A metric that does not vary gets the unit 1: dividing by nearly 0 would blow up its noise.
        spread = np.where(
            spread > 1e-9 * np.maximum(np.abs(predicted).mean(axis=0), 1e-9), spread, 1.0
        )
        term_spread = terms.std(axis=0)
        return cls(
            center=predicted.mean(axis=0),
            spread=spread,
            term_center=terms.mean(axis=0),
            term_spread=np.where(term_spread > 1e-9, term_spread, np.inf),
        )

    def scaled(self, values: Floats) -> Floats:
        return (values - self.center) / self.spread

    def terms(self, shares: Floats) -> Floats:
        return (_terms(shares) - self.term_center) / self.term_spread


def _terms(shares: Floats) -> Floats:
    """[mixture, term]: shares and their roots; a root is steep where a domain is hardly there."""
    return np.concatenate([shares, np.sqrt(np.maximum(shares, 0.0))], axis=1)


@dataclass(frozen=True, eq=False)
class Link:
    """Equally likely lines and remainders, by draw and metric."""

    units: Units
    base: float
    sizes: tuple[float, ...]  # other than the base, that have runs
    levels: Floats  # [1 + draw, size, metric]; the first is the mean
    slopes: Floats  # [1 + draw, size, metric]
    remainders: Floats  # [1 + draw, term, metric], for a tenfold size
    noise: Floats  # [metric], standard deviation in the metric's units

    def distance(self, size: float) -> float:
        return float(np.log10(size / self.base))

    def to_base(self, size: float, shares: Floats, values: Floats) -> Floats:
        """Runs of another size as they would have been at the base size."""
        place = self.sizes.index(size)
        left = self.distance(size) * self.units.terms(shares) @ self.remainders[0]
        slope = np.maximum(self.slopes[0, place], LEAST_SLOPE)
        scaled = (self.units.scaled(values) - self.levels[0, place] - left) / slope
        return np.asarray(self.units.center + self.units.spread * scaled)


@dataclass(eq=False)
class _Shared:
    """What metrics share; EM moves it."""

    slope: Floats  # [size], the mean over metrics
    slope_variance: float
    remainder_variance: float
    noise: Floats  # [metric], variance


def link_sizes(
    base: Forecast,
    alone: Forecast,  # of the base size's runs alone, which tells the noise of a run
    base_size: float,
    others: MixtureTable,
    seed: int,
) -> Link:
    """Fits the lines and remainders of every size in `others` to the forecast at the base size."""
    shares = np.concatenate([base.table.shares, others.shares])
    units = Units.of(base.predict(base.table.shares), shares)
    sizes = others.known_sizes
    random = np.random.default_rng(seed)
    noise = (alone.noise(alone.table.shares) ** 2).mean(axis=0) / units.spread**2
    if not len(others):
        return _prior(base, base_size, units, noise, random)
    assert others.sizes is not None
    places = np.searchsorted(np.array(sizes), others.sizes)
    terms = np.log10(others.sizes / base_size)[:, None] * units.terms(others.shares)
    drawn = base.draws(others.shares)
    drawn = units.scaled(np.concatenate([base.predict(others.shares)[None], drawn]))
    design = _Design(places, len(sizes), terms, drawn, units.scaled(others.values))
    shared = _learn_shared(design, np.maximum(noise, 1e-8))
    coefficients = np.stack(
        [design.sample(metric, shared, random) for metric in range(len(noise))], axis=-1
    )
    count = len(sizes)
    return Link(
        units=units,
        base=base_size,
        sizes=sizes,
        levels=coefficients[:, :count],
        slopes=coefficients[:, count : 2 * count],
        remainders=coefficients[:, 2 * count :],
        noise=np.sqrt(shared.noise) * units.spread,
    )


@dataclass(eq=False)
class _Design:
    """Runs of other sizes as a regression: a level and a slope for each size, then the remainder."""

    places: NDArray[np.intp]  # [run], of its size
    sizes: int
    terms: Floats  # [run, term], times the distance in size
    drawn: Floats  # [1 + draw, run, metric], the base forecast, its mean first
    values: Floats  # [run, metric]

    def rows(self, metric: int) -> tuple[Floats, Floats]:
        """[1 + draw, known run, coefficient] and [known run]."""
        known = ~np.isnan(self.values[:, metric])
        here = np.eye(self.sizes)[self.places[known]]
        drawn = self.drawn[:, known, metric]
        shape = (len(drawn), int(known.sum()))
        parts = [
            np.broadcast_to(here, (*shape, self.sizes)),
            here * drawn[:, :, None],
            np.broadcast_to(self.terms[known], (*shape, self.terms.shape[1])),
        ]
        return np.concatenate(parts, axis=2), self.values[known, metric]

    def prior(self, shared: _Shared) -> tuple[Floats, Floats]:
        """[coefficient], mean and precision."""
        count = self.terms.shape[1]
        middle = np.concatenate([np.zeros(self.sizes), shared.slope, np.zeros(count)])
        precision = np.concatenate(
            [
                np.full(self.sizes, FLAT),
                np.full(self.sizes, 1 / shared.slope_variance),
                np.full(count, 1 / shared.remainder_variance),
            ]
        )
        return middle, precision

    def posterior(
        self, rows: Floats, values: Floats, noise: float, shared: _Shared
    ) -> tuple[Floats, Floats]:
        """Mean and covariance, [..., coefficient] and [..., coefficient, coefficient]."""
        middle, precision = self.prior(shared)
        turned = np.swapaxes(rows, -1, -2)
        covariance = np.linalg.inv(turned @ rows / noise + np.diag(precision))
        mean = (covariance @ ((turned @ values) / noise + precision * middle)[..., None])[..., 0]
        return mean, np.asarray(covariance, dtype=np.float64)

    def sample(self, metric: int, shared: _Shared, random: np.random.Generator) -> Floats:
        """[1 + draw, coefficient]: the mean, then one for each law of the base forecast."""
        rows, values = self.rows(metric)
        mean, covariance = self.posterior(rows, values, float(shared.noise[metric]), shared)
        root = np.linalg.cholesky(covariance)
        moved = (root @ random.standard_normal((*mean.shape, 1)))[..., 0]
        moved[0] = 0.0
        return mean + moved


def _learn_shared(design: _Design, base_noise: Floats) -> _Shared:
    """EM: the coefficients' posterior, then what the metrics share."""
    metrics, count = len(base_noise), design.terms.shape[1]
    shared = _Shared(
        slope=np.ones(design.sizes),
        slope_variance=SLOPE_APART**2,
        remainder_variance=REMAINDER**2 / count,
        noise=base_noise.copy(),
    )
    rows = [design.rows(metric) for metric in range(metrics)]
    slopes = slice(design.sizes, 2 * design.sizes)
    for _ in range(ROUNDS):
        means, variances = [], []
        noise = shared.noise.copy()
        for metric, (inputs, values) in enumerate(rows):
            mean, covariance = design.posterior(
                inputs[0], values, float(shared.noise[metric]), shared
            )
            off = ((values - inputs[0] @ mean) ** 2).sum() + np.einsum(
                "ri,ij,rj->", inputs[0], covariance, inputs[0]
            )
            noise[metric] = (off + NOISE_WEIGHT * base_noise[metric]) / (len(values) + NOISE_WEIGHT)
            means.append(mean)
            variances.append(np.diag(covariance))
        mean, variance = np.array(means), np.array(variances)
        pull = shared.slope_variance / SLOPE_SPREAD**2
        shared.slope = (mean[:, slopes].sum(axis=0) + pull) / (metrics + pull)
        apart = (mean[:, slopes] - shared.slope) ** 2 + variance[:, slopes]
        few = 4.0  # metrics that the starting value counts for
        shared.slope_variance = (apart.sum() + few * SLOPE_APART**2) / (apart.size + few)
        left = mean[:, 2 * design.sizes :] ** 2 + variance[:, 2 * design.sizes :]
        shared.remainder_variance = (left.sum() + REMAINDER**2) / (left.size + count)
        shared.noise = noise
    return shared


def _prior(
    base: Forecast, base_size: float, units: Units, noise: Floats, random: np.random.Generator
) -> Link:
    """Nothing but the base size is known."""
    draws, metrics = len(base.draws(base.table.shares[:1])), len(noise)
    terms = len(units.term_center)
    remainders = REMAINDER / np.sqrt(terms) * random.standard_normal((1 + draws, terms, metrics))
    remainders[0] = 0.0
    empty = np.zeros((1 + draws, 0, metrics))
    return Link(
        units=units,
        base=base_size,
        sizes=(),
        levels=empty,
        slopes=empty,
        remainders=remainders,
        noise=np.sqrt(noise) * units.spread,
    )


def lines_at(link: Link, size: float, random: np.random.Generator) -> tuple[Floats, Floats]:
    """Level and slope at a size, [1 + draw, metric] each; the first is the mean."""
    if size in link.sizes:
        place = link.sizes.index(size)
        return link.levels[:, place], link.slopes[:, place]
    draws, _, metrics = link.levels.shape
    if size == link.base:
        return np.zeros((draws, metrics)), np.ones((draws, metrics))
    if not link.sizes:
        together = SLOPE_SPREAD * random.standard_normal((draws, 1))
        slope = 1.0 + together + SLOPE_APART * random.standard_normal((draws, metrics))
        slope[0] = 1.0
        return np.zeros((draws, metrics)), np.maximum(slope, LEAST_SLOPE)
    known = np.array([1.0, *(each / link.base for each in link.sizes)])
    level = _levels(known, size / link.base, link.levels, random)
    return level, _slopes(np.log10(known[1:]), link.distance(size), link.slopes, random)


def _levels(known: Floats, wanted: float, levels: Floats, random: np.random.Generator) -> Floats:
    draws, count, metrics = levels.shape
    # The base size's own level is 0 by definition.
    values = np.concatenate([np.zeros((draws, 1, metrics)), levels], axis=1)
    fall = np.maximum(np.ptp(values[0], axis=0), 1e-9)  # [metric]
    wrong = squares_by_power([(known, values[0] / fall)], POWERS) / metrics
    freedom = ERROR_WEIGHT + max(count + 1 - 3, 0)
    error = float(np.sqrt((ERROR_WEIGHT * LEVEL_ERROR**2 + wrong.min()) / freedom))
    weights = np.exp(-(wrong - wrong.min()) / (2 * error**2))
    chosen = random.choice(len(POWERS), size=draws, p=weights / weights.sum())
    moved = values + fall * error * random.standard_normal((draws, count + 1, 1))
    found = np.empty((draws, metrics))
    for place in np.unique(chosen):
        mine = chosen == place
        solve = np.linalg.pinv(_power_terms(known, POWERS[place]))  # [2, size]
        coefficients = np.einsum("ts,dsm->dtm", solve, moved[mine])
        ahead = _power_terms(np.array([wanted]), POWERS[place])[0]
        found[mine] = np.einsum("t,dtm->dm", ahead, coefficients)
    found[0] = np.median(found[1:], axis=0)
    return found


def _power_terms(ratio: Floats, power: float) -> Floats:
    """[size, 2]; at a power near 0 the second is the logarithm."""
    return np.column_stack([np.ones(len(ratio)), (ratio**-power - 1.0) / power])


def _slopes(
    distances: Floats, wanted: float, slopes: Floats, random: np.random.Generator
) -> Floats:
    logs = np.log(np.maximum(slopes, LEAST_SLOPE))  # [1 + draw, size, metric]
    energy = float((distances**2).sum())
    rate = np.einsum("s,dsm->dm", distances, logs) / energy
    left = logs[0] - distances[:, None] * rate[0]
    error = max(float(np.sqrt((left**2).sum() / max(left.size - left.shape[1], 1))), SLOPE_ERROR)
    rate = rate + error / np.sqrt(energy) * random.standard_normal(rate.shape)
    rate[0] = rate[1:].mean(axis=0)
    bound = -np.log(LEAST_SLOPE)
    return np.asarray(np.exp(np.clip(wanted * rate, -bound, bound)))

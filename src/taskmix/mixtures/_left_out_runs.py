"""What runs that were left out say: folds, how much each law counts, noise, intervals that hold.

Laws are weighted as in Breiman, "Stacked Regressions", 1996: weights at or above 0 that sum to 1. Every
metric has weights of its own, shrunk to those that are best for all metrics together.

Noise may depend on the mixture: runs on some differ more from seed to seed than on others. The
logarithm of a run's deviation is a level of the metric's own plus a line, the same for all metrics, in
how bad the mixture is for the metric and in how many domains it has. The line is there only if the runs
speak for it, with the usual penalty on its two slopes (Schwarz, 1978).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize, nnls

from taskmix.mixtures._table import Floats

ALIKE = 6  # digits of shares
WEIGHTS_SHRUNK_BY = 32.0  # runs whose worth of evidence the weights of all metrics have
CERTAIN = 1e4  # how firmly weights sum to 1
MIDDLE = 0.9  # the level that scales of metrics are set at
SCALES_SHRUNK_BY = 64.0  # runs whose worth of evidence all metrics together have
NORMAL_90 = 1.6448536269514722
SLOPE_SPREAD = 0.7  # of slopes, a priori
FARTHEST = 3.0  # how far the logarithm of a deviation may lie from the usual


def mixture_of_run(shares: Floats) -> NDArray[np.int64]:
    """[run], the number of its mixture; runs of equal mixtures have the same."""
    _, found = np.unique(np.round(shares, ALIKE) + 0.0, axis=0, return_inverse=True)
    return np.asarray(found).reshape(-1)


def fold_of_run(shares: Floats, folds: int, seed: int) -> NDArray[np.int64]:
    """[run], the number of its fold; folds have about as many mixtures each."""
    mixtures = mixture_of_run(shares)
    count = int(mixtures.max()) + 1
    order = np.random.default_rng(seed).permutation(count)
    numbers = np.empty(count, dtype=np.int64)
    numbers[order] = np.arange(count) % folds
    return numbers[mixtures]


def stack_weights(left_out: Floats, losses: Floats) -> Floats:
    """[metric, law], from what each law says of runs it did not see, [law, run, metric]."""
    laws, _, metrics = left_out.shape
    known = np.isfinite(losses)
    errors = np.where(known, left_out - np.where(known, losses, 0.0), 0.0)
    # In parts of the best law's error, so that no metric outweighs the others.
    counts = np.maximum(known.sum(axis=0), 1)
    best = np.sqrt((errors**2).sum(axis=1) / counts).min(axis=0) + 1e-12
    errors = errors / best
    pooled = _simplex(errors.reshape(laws, -1).T, np.full(laws, 1 / laws), 1.0)
    return np.stack(
        [_simplex(errors[:, :, metric].T, pooled, WEIGHTS_SHRUNK_BY) for metric in range(metrics)]
    )


def choose_laws(weights: Floats, draws: int, random: np.random.Generator) -> NDArray[np.int64]:
    """[draw, metric], one of the laws for each draw, each as often as its weight [metric, law] says.

    So no draw lies outside of all laws. The metrics of a draw are decided together, as a law that is
    wrong for one is wrong for others.
    """
    places = (random.permutation(draws) + 0.5) / draws
    ends = np.cumsum(weights, axis=1)[:, :-1]  # the last law has what is left
    return np.asarray((places[:, None, None] > ends).sum(axis=2))


def _simplex(errors: Floats, usual: Floats, strength: float) -> Floats:
    """Weights of laws whose weighted errors [case, law] are least, drawn to the usual ones."""
    laws = errors.shape[1]
    rows = [errors, np.sqrt(strength) * np.eye(laws), CERTAIN * np.ones((1, laws))]
    wanted = [np.zeros(len(errors)), np.sqrt(strength) * usual, np.array([CERTAIN])]
    found, _ = nnls(np.concatenate(rows), np.concatenate(wanted), maxiter=100 * laws)
    total = found.sum()
    return found / total if total > 0 else usual


@dataclass(frozen=True, eq=False)
class Calibration:
    """How far runs lie off, in the deviations that were claimed."""

    factors: Floats  # [metric], by which deviations are to be multiplied
    ranked: Floats  # what runs were off by, in deviations so multiplied, small to large

    def reach(self, level: float) -> float:
        """How many deviations hold that share of runs."""
        count = len(self.ranked)
        place = min(
            np.ceil(level * (count + 1)) - 1, count - 1
        )  # conformal: the next run counts too
        return float(self.ranked[int(max(place, 0))])


def calibrate(missed: Floats, claimed: Floats) -> Calibration:
    """Of what left-out runs missed and the deviations claimed for them, [run, metric]; NaN unknown."""
    off = np.abs(missed) / np.maximum(claimed, 1e-300)
    known = np.isfinite(off)
    pooled = float(np.quantile(off[known], MIDDLE)) / NORMAL_90 if known.any() else 1.0
    factors = np.full(off.shape[1], max(pooled, 1e-6))
    for metric in range(off.shape[1]):
        own = off[known[:, metric], metric]
        if len(own):
            found = max(float(np.quantile(own, MIDDLE)) / NORMAL_90, 1e-6)
            part = len(own) / (len(own) + SCALES_SHRUNK_BY)
            factors[metric] = np.exp(part * np.log(found) + (1 - part) * np.log(factors[metric]))
    ranked = np.sort((off / factors)[known]) if known.any() else np.array([NORMAL_90])
    return Calibration(factors, ranked)


@dataclass(frozen=True, eq=False)
class MixtureNoise:
    """How the noise of a run depends on its mixture."""

    levels: Floats  # [metric], the deviation of a usual run
    slopes: Floats  # [2], by the loss that is predicted and by the number of domains
    center: Floats  # [metric], of losses
    spread: Floats  # [metric]
    usual_breadth: tuple[float, float]  # mean and deviation

    @property
    def varies(self) -> bool:
        """Whether it depends on the mixture at all."""
        return bool(np.any(self.slopes != 0))

    def relative(self, shares: Floats, predicted: Floats) -> Floats:
        """[mixture, metric], the deviation in that of a usual run."""
        mean, wide = self.usual_breadth
        broad = (breadth(shares) - mean) / wide
        line = self.slopes[0] * (predicted - self.center) / self.spread
        line = line + (self.slopes[1] * broad)[:, None]
        found: Floats = np.exp(np.clip(line, -FARTHEST, FARTHEST))
        return found

    def deviation(self, shares: Floats, predicted: Floats) -> Floats:
        """[mixture, metric]."""
        return self.levels * self.relative(shares, predicted)


def breadth(shares: Floats) -> Floats:
    """The logarithm of how many domains a mixture has, in effect."""
    parts = shares / np.maximum(shares.sum(axis=1, keepdims=True), 1e-12)
    logs = np.log(np.where(parts > 0, parts, 1.0))
    found: Floats = -(parts * logs).sum(axis=1)
    return found


def fit_noise(
    shares: Floats,
    predicted: Floats,  # [run, metric], without the run itself
    sure: Floats,  # [run, metric], deviations of what was predicted
    losses: Floats,
    usual: Floats,  # [metric], a first guess of the noise
) -> MixtureNoise:
    """The likeliest noise, where runs that were left out missed their losses by more than is unsure."""
    known = np.isfinite(losses)
    missed = np.where(known, predicted - np.where(known, losses, 0.0), 0.0)
    counts = np.maximum(known.sum(axis=0), 1)
    center = np.where(known, predicted, 0.0).sum(axis=0) / counts
    spread = np.sqrt(np.where(known, (predicted - center) ** 2, 0.0).sum(axis=0) / counts) + 1e-12
    broad = breadth(shares)
    about = (float(broad.mean()), float(broad.std()) + 1e-12)
    inputs = np.stack(
        [
            (predicted - center) / spread,
            np.repeat(((broad - about[0]) / about[1])[:, None], len(center), 1),
        ]
    )

    def misfit(free: Floats) -> float:
        slopes, levels = free[:2], free[2:]
        line = np.clip(np.tensordot(slopes, inputs, 1), -FARTHEST, FARTHEST)
        variance = sure**2 + np.exp(2 * (levels + line)) * usual**2
        terms = 0.5 * (missed**2 / variance + np.log(variance))
        return float(
            (known * terms).sum()
            + 0.5 * (free[:2] ** 2).sum() / SLOPE_SPREAD**2
            + 0.5 * (levels**2).sum()
        )

    metrics = len(usual)
    flat = minimize(
        lambda levels: misfit(np.concatenate([[0.0, 0.0], levels])),
        np.zeros(metrics),
        method="L-BFGS-B",
    )
    sloped = minimize(misfit, np.concatenate([[0.0, 0.0], flat.x]), method="L-BFGS-B")
    pays = flat.fun - sloped.fun > np.log(max(len(shares), 2))
    free = sloped.x if pays else np.concatenate([[0.0, 0.0], flat.x])
    return MixtureNoise(usual * np.exp(free[2:]), free[:2].copy(), center, spread, about)

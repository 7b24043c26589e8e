"""Noise that depends on the mixture: runs on some mixtures differ more from seed to seed than on others.

The logarithm of a run's deviation is a level of the metric's own plus a line, the same for all metrics,
in how bad the mixture is for the metric and in how many domains it has. The line is there only if the
runs speak for it, with the usual penalty on its two slopes (Schwarz, 1978).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from taskmix.mixtures._table import Floats

SLOPE_SPREAD = 0.7  # of slopes, a priori
MOST = 3.0  # how far the logarithm of a deviation may lie from the usual


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
        found: Floats = np.exp(np.clip(line, -MOST, MOST))
        return found

    def deviation(self, shares: Floats, predicted: Floats) -> Floats:
        """[mixture, metric]."""
        return self.levels * self.relative(shares, predicted)


def breadth(shares: Floats) -> Floats:
    """The logarithm of how many domains a mixture has, in effect.

    >>> np.exp(breadth(np.array([[0.5, 0.5, 0.0], [1.0, 0.0, 0.0]]))).round(6).tolist()
    [2.0, 1.0]
    """
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
        line = np.clip(np.tensordot(slopes, inputs, 1), -MOST, MOST)
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

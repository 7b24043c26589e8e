"""Intervals that hold: deviations are scaled by how far runs that were left out really lay off."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from taskmix.mixtures._table import Floats

MIDDLE = 0.9  # the level that scales of metrics are set at
SHRUNK_BY = 64.0  # runs whose worth of evidence all metrics together have
NORMAL_90 = 1.6448536269514722


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
    """Of what left-out runs missed and the deviations claimed for them, [run, metric]; NaN unknown.

    >>> random = np.random.default_rng(0)
    >>> found = calibrate(2 * random.standard_normal((500, 3)), np.ones((500, 3)))
    >>> found.factors.round(1).tolist(), round(found.reach(0.9), 1)
    ([2.0, 2.0, 2.0], 1.6)
    """
    off = np.abs(missed) / np.maximum(claimed, 1e-300)
    known = np.isfinite(off)
    pooled = float(np.quantile(off[known], MIDDLE)) / NORMAL_90 if known.any() else 1.0
    factors = np.full(off.shape[1], max(pooled, 1e-6))
    for metric in range(off.shape[1]):
        own = off[known[:, metric], metric]
        if len(own):
            found = max(float(np.quantile(own, MIDDLE)) / NORMAL_90, 1e-6)
            part = len(own) / (len(own) + SHRUNK_BY)
            factors[metric] = np.exp(part * np.log(found) + (1 - part) * np.log(factors[metric]))
    ranked = np.sort((off / factors)[known]) if known.any() else np.array([NORMAL_90])
    return Calibration(factors, ranked)

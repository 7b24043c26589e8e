r"""Levels and slopes at a size that was never trained, from those at sizes that were.

A metric's level falls as a power of the size, $E + A N^{-p}$ with one $p$ for all metrics (Kaplan et
al., 2020), the logarithm of its slope goes with the logarithm of the size. Each draw has its own $p$
and its own errors of the known sizes, so that intervals widen with the distance. With two sizes $p$ is
anything between 0.05 and 0.8.
"""

from __future__ import annotations

import numpy as np

from taskmix.mixtures._scales._link import LEAST_SLOPE, SLOPE_APART, SLOPE_SPREAD, Link
from taskmix.mixtures._table import Floats
from taskmix.numerics import squares_by_power

POWERS = np.linspace(0.05, 0.8, 46)
# A size has its own recipe, which moves all its metrics off the power law together: by this part of the
# fall
# from the smallest to the largest size, before the sizes themselves have told.
LEVEL_ERROR, ERROR_WEIGHT = 0.08, 2.0
SLOPE_ERROR = 0.02  # at least, of a slope


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

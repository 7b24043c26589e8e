r"""What longer runs would bring: learning curves of all ways, read beyond their ends.

The best score so far after n batches follows score_c(n) = a_c − b_c n^−κ, with one power κ for all
ways and slopes b_c that are drawn to their mean as far as they scatter no more than their errors make
them (James and Stein, 1961). How far to trust that is tried on the data: the curves of the first half of
the batches say how each way grows in the second half, and what came says (a) which share of the
predicted differences is true and (b) by how much each way was off. Over k doublings the error is √k
times that of one, as of a walk whose steps are doublings. Differences between ways are what counts:
what all of them gain alike changes no rank.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Points = Sequence[tuple[float, float]]  # batches and the best score until then

POWERS = np.linspace(0.1, 1.5, 15)  # that are tried: learning curves are rarely flatter or steeper
HALF = 0.5 * (1 + 1e-9)  # of the batches
FEWEST_EARLY = 3  # evaluations in the first half: fewer have no curve of three numbers
# A gain of a doubling that nobody would train twice as long for: a fifth of a point.
FLAT_GAIN = 0.002
MOST_DOUBLINGS = 5  # of the batches seen, until the curve counts as flat whatever it says


@dataclass(frozen=True, kw_only=True)
class Growth:
    """Curves of some ways, all of which end after `batches`."""

    batches: float
    power: float
    slopes: Mapping[str, float]  # b of each way
    trust: float  # share of predicted differences that is true
    error: float  # of a way's growth over one doubling, apart from what all have in common
    mean_error: float  # of what all have in common, over one doubling

    def gains(self, ways: Sequence[str], *, begin: float, end: float) -> Array:
        """What each way [way] gains from some batches to more of them; an unknown one as the mean."""
        mean = float(np.mean(list(self.slopes.values()))) if self.slopes else 0.0
        own = np.array([self.slopes.get(way, mean) for way in ways])
        lack = begin**-self.power - end**-self.power
        found: Array = (mean + self.trust * (own - mean)) * lack
        return found

    def error_after(self, doublings: float) -> float:
        return self.error * math.sqrt(max(doublings, 0.0))

    @property
    def flat_after(self) -> float:
        """Batches after which a doubling brings next to nothing."""
        slope = float(np.mean(list(self.slopes.values()))) if self.slopes else 0.0
        most = self.batches * 2**MOST_DOUBLINGS
        if slope <= 0:
            return self.batches
        reached = (FLAT_GAIN / (slope * (1 - 2**-self.power))) ** (-1 / self.power)
        return float(min(max(reached, self.batches), most))


def fit_growth(curves: Mapping[str, Sequence[Points]], noise: float) -> Growth | None:
    """From the curves of every way, one a seed; None where none has two evaluations."""
    means = {way: _mean_curve(some) for way, some in curves.items()}
    means = {way: curve for way, curve in means.items() if len(curve) > 1}
    if not means:
        return None
    last = max(curve[-1, 0] for curve in means.values())
    seeds = {way: len(curves[way]) for way in means}
    power = min(POWERS, key=lambda p: _misfit(means, float(p)))
    slopes = _slopes(means, seeds, float(power), noise)
    trust, error, mean_error = _tried(means, seeds, noise)
    return Growth(
        batches=last,
        power=float(power),
        slopes=slopes,
        trust=trust,
        error=error,
        mean_error=mean_error,
    )


def _mean_curve(seeds: Sequence[Points]) -> Array:
    """[evaluation, (batches, score)], over the evaluations that all seeds have."""
    length = min((len(points) for points in seeds), default=0)
    if length == 0:
        return np.empty((0, 2))
    found: Array = np.mean([np.asarray(points[:length], dtype=np.float64) for points in seeds], axis=0)
    return found


def _misfit(curves: Mapping[str, Array], power: float) -> float:
    """Squares about one slope for all, each way with a level of its own."""
    across = [curve[:, 0] ** -power for curve in curves.values()]
    x = np.concatenate([each - each.mean() for each in across])
    y = np.concatenate([curve[:, 1] - curve[:, 1].mean() for curve in curves.values()])
    slope = float(x @ y) / max(float(x @ x), 1e-300)
    return float(((y - slope * x) ** 2).sum())


def _slopes(
    curves: Mapping[str, Array], seeds: Mapping[str, int], power: float, noise: float
) -> dict[str, float]:
    """b of each way, at least 0, drawn to the mean of all."""
    own, errors = [], []
    for way, curve in curves.items():
        x = curve[:, 0] ** -power
        x = x - x.mean()
        squares = max(float(x @ x), 1e-300)
        y = curve[:, 1] - curve[:, 1].mean()
        slope = -float(x @ y) / squares
        rest = float(((y + slope * x) ** 2).sum()) / max(len(x) - 2, 1)
        own.append(slope)
        errors.append((rest + noise**2 / max(seeds[way], 1) / len(x)) / squares)
    mean = float(np.mean(own))
    spread = max(float(np.var(own, ddof=1)) - float(np.mean(errors)), 0.0) if len(own) > 1 else 0.0
    kept = [spread / (spread + error) if spread + error > 0 else 0.0 for error in errors]
    return {
        way: max(mean + share * (slope - mean), 0.0)
        for way, share, slope in zip(curves, kept, own, strict=True)
    }


def _tried(
    curves: Mapping[str, Array], seeds: Mapping[str, int], noise: float
) -> tuple[float, float, float]:
    """The share of predicted differences in the second half that came; errors of a way, of the mean."""
    came, said, count = [], [], []
    early = {way: curve[curve[:, 0] <= HALF * curve[-1, 0]] for way, curve in curves.items()}
    long = {way: curve for way, curve in early.items() if len(curve) >= FEWEST_EARLY}
    power = min(POWERS, key=lambda p: _misfit(long, float(p))) if long else 1.0
    slopes = _slopes(long, seeds, float(power), noise) if long else {}
    for way, curve in curves.items():
        before = early[way][-1] if len(early[way]) else curve[0]
        came.append(curve[-1, 1] - before[1])
        lack = before[0] ** -power - curve[-1, 0] ** -power
        said.append(slopes[way] * lack if way in slopes else math.nan)
        count.append(seeds[way])
    # What was said of all ways together; where nothing was, that nothing would change.
    mean_error = abs(float(np.mean(came)) - (float(np.nanmean(said)) if slopes else 0.0))
    actual, predicted = np.array(came) - np.mean(came), np.array(said)
    predicted = np.nan_to_num(predicted - np.nanmean(predicted)) if slopes else 0 * actual
    # Two scores of a run: best so far, so much of their noise is common to both.
    expected = float(np.mean([noise**2 / max(n, 1) for n in count]))
    squares = float(predicted @ predicted)
    trust = float(predicted @ actual) / (squares + expected) if squares > 0 else 0.0
    trust = min(max(trust, 0.0), 1.0)
    rest = actual - trust * predicted
    degrees = max(len(rest) - 2, 1)
    error = math.sqrt(max(float(rest @ rest) / degrees - expected, 0.0))
    return trust, max(error, 0.25 * math.sqrt(expected)), mean_error

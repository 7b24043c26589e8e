r"""What longer runs would bring: learning curves of all ways, read beyond their ends.

The best score so far after n batches follows score_c(n) = a_c − b_c n^−κ, with one power κ for all
ways and slopes b_c that are drawn to their mean as far as they scatter no more than their errors make
them (James and Stein, 1961). A doubling then brings 2^−κ times what the one before it brought. Curves
begin as they like, so evaluations in the first quarter of the batches do not count.

How far to trust that is tried on the data. What is known after half of the batches says where each way
stands at their end, and what came says which share of the predicted differences in growth is true
(trust), how far ways draw together as they all come near what can be reached (contraction), and by how
much each way was off (error). As long as the curve still rises, ways still change places: all three go
on in proportion to what a doubling brings.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from taskmix.numerics import squares_by_power

Array = NDArray[np.float64]
Points = Sequence[tuple[float, float]]  # batches and the best score until then

POWERS = np.linspace(0.1, 1.0, 19)  # that are tried: steeper ones would call a curve flat too soon
HALF, QUARTER = 0.5 * (1 + 1e-9), 0.25 * (1 - 1e-9)  # of the batches
FEWEST_POINTS = 3  # evaluations of a curve: fewer have no curve of three numbers
LEAST_CONTRACTION = 0.3  # of a doubling: ways do not meet at once
# Of what is seen, that speaks for ways keeping their differences: in ten times the batches those of the
# demo's tasks shrank to a third, where the last doubling alone foretold a sixth.
KEPT_PRIOR = 0.5
# Of what all ways gain together: by about so much their own gains differ, whatever the last doubling
# said. From 555 to 4,440 batches of the demo's tasks it was 0.8, from 1,424 to 14,240 of tagged genres
# 0.15.
UNLIKE_GAINS = 0.25
# How far the trust in predicted differences may be off: a way that begins late rises most, and its curve
# says little of where it will end.
UNSURE_TRUST = 0.35
# A gain of a doubling that nobody would train twice as long for: a fifth of a point.
FLAT_GAIN = 0.002
MOST_DOUBLINGS = 3  # of the batches seen, until the curve counts as flat whatever it says


@dataclass(frozen=True, kw_only=True)
class CurveGrowth:
    """Curves of some ways, all of which end after `batches`."""

    batches: float
    power: float
    slopes: Mapping[str, float]  # b of each way
    trust: float  # share of predicted differences that is true
    contraction: float  # of differences between ways, over the last doubling
    error: float  # of a way's growth over the last doubling, apart from what all have in common
    mean_error: float  # of what all have in common, over the same

    def gains(self, ways: Sequence[str], *, begin: float, end: float) -> Array:
        """What each way [way] gains from some batches to more of them; an unknown one as the mean."""
        mean = float(np.mean(list(self.slopes.values()))) if self.slopes else 0.0
        own = np.array([self.slopes.get(way, mean) for way in ways])
        lack = begin**-self.power - end**-self.power
        found: Array = (mean + self.trust * (own - mean)) * lack
        return found

    def doublings(self, begin: float, end: float, *, power: float = 1.0) -> float:
        """Those between, each by what it brings against the last one seen, to a power."""
        rate = power * self.power
        whole = (self.batches / 2) ** -rate - self.batches**-rate
        return float(max(begin**-rate - end**-rate, 0.0) / whole)

    def error_between(self, begin: float, end: float) -> float:
        """Of a way's growth: each doubling has an error of its own, and ways seldom gain alike."""
        mean = float(np.mean(list(self.slopes.values()))) if self.slopes else 0.0
        unlike = UNLIKE_GAINS * mean * max(begin**-self.power - end**-self.power, 0.0)
        return math.hypot(self.error * math.sqrt(self.doublings(begin, end, power=2.0)), unlike)

    def unsure_between(self, ways: Sequence[str], *, begin: float, end: float) -> Array:
        """What a deviation of the trust would do to each way [way]: all curves are wrong together."""
        whole = replace(self, trust=1.0).gains(ways, begin=begin, end=end)
        found: Array = UNSURE_TRUST * (whole - whole.mean())
        return found

    def mean_error_between(self, begin: float, end: float) -> float:
        """Of what all gain: a curve that is wrong is wrong all the way."""
        return self.mean_error * self.doublings(begin, end)

    def contraction_between(self, begin: float, end: float) -> float:
        return float(self.contraction ** self.doublings(begin, end))

    @property
    def longest(self) -> float:
        """Batches beyond which no curve is read unasked."""
        return self.batches * float(2**MOST_DOUBLINGS)

    @property
    def flat_after(self) -> float:
        """Batches after which a doubling brings next to nothing, to whichever way still rises most."""
        slope = max(self.slopes.values(), default=0.0)
        if slope <= 0:
            return self.batches
        reached = (FLAT_GAIN / (slope * (1 - 2**-self.power))) ** (-1 / self.power)
        return float(min(max(reached, self.batches), self.longest))


def fit_growth(curves: Mapping[str, Sequence[Points]], noise: float) -> CurveGrowth | None:
    """From the curves of every way, one a seed; None where none has two evaluations."""
    means = {way: _mean_curve(some) for way, some in curves.items()}
    means = {way: curve for way, curve in means.items() if len(curve) > 1}
    if not means:
        return None
    seeds = {way: len(curves[way]) for way in means}
    late = {way: _after(curve, QUARTER * curve[-1, 0]) for way, curve in means.items()}
    power = _power(late)
    tried = _tried(means, seeds, noise)
    return CurveGrowth(
        batches=max(curve[-1, 0] for curve in means.values()),
        power=power,
        slopes=_slopes(late, seeds, power, noise),
        trust=tried.trust,
        contraction=tried.contraction,
        error=tried.error,
        mean_error=tried.mean_error,
    )


def _after(curve: Array, batches: float) -> Array:
    """The evaluations after so many, if they are enough for a curve."""
    kept: Array = curve[curve[:, 0] >= batches]
    return kept if len(kept) >= FEWEST_POINTS else curve


def _mean_curve(seeds: Sequence[Points]) -> Array:
    """[evaluation, (batches, score)], over the evaluations that all seeds have."""
    length = min((len(points) for points in seeds), default=0)
    if length == 0:
        return np.empty((0, 2))
    found: Array = np.mean(
        [np.asarray(points[:length], dtype=np.float64) for points in seeds], axis=0
    )
    return found


def _power(curves: Mapping[str, Array]) -> float:
    """The one that leaves the smallest squares about one slope for all, each way with its own level."""
    points = [(curve[:, 0], curve[:, 1]) for curve in curves.values()]
    squares = squares_by_power(points, POWERS, one_factor=True)
    return float(POWERS[int(squares.argmin())])


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


@dataclass(frozen=True)
class _Tried:
    """What came of the second half of the batches, beside what the first had said of it."""

    trust: float
    contraction: float
    error: float
    mean_error: float


def _tried(curves: Mapping[str, Array], seeds: Mapping[str, int], noise: float) -> _Tried:
    early = {way: curve[curve[:, 0] <= HALF * curve[-1, 0]] for way, curve in curves.items()}
    early = {way: known if len(known) else curves[way][:1] for way, known in early.items()}
    long = {way: known for way, known in early.items() if len(known) >= FEWEST_POINTS}
    power = _power(long) if long else 1.0
    slopes = _slopes(long, seeds, power, noise) if long else {}
    ways = list(curves)
    before, after = (np.array([some[way][-1, 1] for way in ways]) for some in (early, curves))
    lack = np.array([early[way][-1, 0] ** -power - curves[way][-1, 0] ** -power for way in ways])
    mean = float(np.mean(list(slopes.values()))) if slopes else 0.0
    said = np.array([slopes.get(way, mean) for way in ways]) * lack
    came = after - before
    mean_error = abs(float((came - said).mean()))
    stood, growth, guess = (values - values.mean() for values in (before, came, said))
    # Of two scores of a run much of the noise is common, since both are the best so far.
    variance = float(np.mean([noise**2 / max(seeds[way], 1) for way in ways]))
    squares, weight = float(guess @ guess), len(ways) * variance
    trust = float(guess @ growth) / (squares + weight) if squares > 0 else 0.0
    trust = min(max(trust, 0.0), 1.0)
    rest = growth - trust * guess
    # Differences are kept unless it is seen that they are not.
    seen = float(stood @ stood)
    prior = weight + KEPT_PRIOR * seen
    kept = (float(stood @ (stood + rest)) + prior) / max(seen + prior, 1e-300)
    contraction = min(max(kept, LEAST_CONTRACTION), 1.0)
    rest = rest - (contraction - 1) * stood
    spread = float(rest @ rest) / max(len(ways) - 2, 1)
    error = math.sqrt(max(spread - variance, 0.25**2 * variance))
    return _Tried(trust, contraction, error, mean_error)

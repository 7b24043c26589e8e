"""How far a mixture is from the runs that the forecast rests on, in numbers and in a sentence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from taskmix.mixtures._table import Floats, MixtureTable

MOST_NAMED = 3  # domains beyond what was tried
BEYOND = 0.005  # of a share: rounding aside, what counts as outside the shares that were tried
ALL_TAUGHT = 0.995  # of the tokens: below that, repetition is worth a sentence


@dataclass(frozen=True, kw_only=True)
class DistanceToRuns:
    """Whether a mixture lies among the runs; distances are half the sum of all changes of shares."""

    nearest_run: str
    distance: float
    usual: float  # the median distance of a run's mixture to the next one
    farthest: float  # the largest such distance
    outside: Mapping[str, tuple[float, float]]  # domains beyond what was tried: the range that was
    extrapolated: bool
    words: str


def measure_distance(shares: Floats, table: MixtureTable) -> DistanceToRuns:
    """Where `shares` [domain] lie among the runs; as they teach, so that their sum may be below 1.

    >>> table = MixtureTable(
    ...     domains=("web", "code"), metrics=("loss",), runs=("a", "b"),
    ...     shares=np.array([[0.5, 0.5], [0.8, 0.2]]), values=np.ones((2, 1)),
    ... )
    >>> measure_distance(np.array([0.95, 0.05]), table).outside
    {'web': (0.5, 0.8), 'code': (0.2, 0.5)}
    """
    least, largest = table.shares.min(axis=0), table.shares.max(axis=0)
    beyond = (shares < least - BEYOND) | (shares > largest + BEYOND)
    outside = {
        table.domains[place]: (float(least[place]), float(largest[place]))
        for place in np.flatnonzero(beyond)
    }
    to_runs = np.abs(table.shares - shares).sum(axis=1) / 2
    nearest = int(to_runs.argmin())
    distance, neighbours = float(to_runs[nearest]), _distances_to_next(table.shares)
    usual, farthest = float(np.median(neighbours)), float(neighbours.max())
    name = table.runs[nearest]
    parts = []
    # Those first that are farthest from what was tried.
    gaps = np.maximum(least - shares, shares - largest)
    for place in np.argsort(-gaps, kind="stable")[: min(MOST_NAMED, len(outside))]:
        share = float(shares[place])
        end, side = (
            (largest, "above the largest") if share > largest[place] else (least, "below the least")
        )
        parts.append(
            f"`{table.domains[place]}` with {100 * share:.1f} % is {side} that was tried "
            f"({100 * end[place]:.1f} %)"
        )
    if len(outside) > MOST_NAMED:
        parts.append(f"so are {len(outside) - MOST_NAMED} more")
    far = distance > farthest + BEYOND
    if far:
        parts.append(
            f"the nearest run, `{name}`, differs in {100 * distance:.0f} % of the tokens, more than any "
            f"run from the one next to it ({100 * farthest:.0f} % at the most)"
        )
    if parts:
        words = f"The mixture is extrapolated: {'; '.join(parts)}."
    else:
        words = (
            f"The mixture lies among the runs: each share is within what was tried, and the nearest "
            f"run, `{name}`, differs in {100 * distance:.0f} % of the tokens (a run and the one next "
            f"to it: {100 * usual:.0f} %)."
        )
    return DistanceToRuns(
        nearest_run=name,
        distance=distance,
        usual=usual,
        farthest=farthest,
        outside=outside,
        extrapolated=bool(parts),
        words=words,
    )


def _distances_to_next(shares: Floats) -> Floats:
    """[mixture], from each to its nearest neighbour; runs on the same mixture are one."""
    different = np.unique(shares.round(9), axis=0)
    if len(different) < 2:
        return np.zeros(1)
    nearest = np.empty(len(different))
    for place, row in enumerate(different):
        apart = np.abs(different - row).sum(axis=1) / 2
        apart[place] = np.inf
        nearest[place] = apart.min()
    return nearest

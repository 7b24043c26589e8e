"""Which shares are equally good: each domain's share moved away from the optimum, others making up."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from taskmix.mixtures._optimum._descending import descend_together
from taskmix.mixtures._optimum._feasible import FeasibleShares
from taskmix.mixtures._optimum._judged import JudgedMixtures
from taskmix.mixtures._table import Floats

COARSE = (np.arange(1, 9) / 8) ** 2  # of the way to the end of a domain's range: finer near by
FINE = np.arange(1, 9) / 8  # of the way between two coarse places
DESCENTS = 3
ROUNDING = 1e-9  # of the target: below that a difference is none


def equally_good_ranges(
    judged: JudgedMixtures,
    feasible: FeasibleShares,
    optimum: Floats,  # [domain]
    *,
    level: float,
    tolerance: float,
) -> tuple[Floats, Floats]:
    """The least and the largest share of each domain [domain] that cannot be told from the optimum's.

    At every place the other shares are the best they can be. It counts as equally good where the
    interval of its target minus the optimum's, paired by law, reaches down to `tolerance`.
    """
    ends = []
    for end in feasible.ranges():
        here, beyond = optimum, end  # the shares that are as good, and the next that were tried
        for steps in (COARSE, FINE):
            places = here[:, None] + steps * (beyond - here)[:, None]
            path = _path(judged, feasible, optimum, places)
            fails = _excess(judged, optimum, path, level) > tolerance
            here, beyond = _bracket(np.column_stack([here, places]), fails)
        ends.append(here)
    return np.minimum(ends[0], optimum), np.maximum(ends[1], optimum)


def _path(
    judged: JudgedMixtures, feasible: FeasibleShares, optimum: Floats, places: Floats
) -> Floats:
    """The best mixtures found with a domain's share at each place, from the optimum outwards.

    `places` are [domain, place], and the mixtures [domain, place, domain]; all are rows of one search.
    """
    domains, count = places.shape
    rows, owners = np.arange(domains * count), np.repeat(np.arange(domains), count)
    lower, upper = (np.tile(bound, (len(rows), 1)) for bound in (feasible.lower, feasible.upper))
    lower[rows, owners] = upper[rows, owners] = places.ravel()
    starts = feasible.project(np.tile(optimum, (len(rows), 1)), lower=lower, upper=upper)
    moved, _ = descend_together(
        lambda shares, _: judged.guess(shares),
        feasible,
        starts,
        steps=DESCENTS,
        lower=lower,
        upper=upper,
    )
    return moved.reshape(domains, count, domains)


def _excess(judged: JudgedMixtures, optimum: Floats, path: Floats, level: float) -> Floats:
    """[domain, place], by how much the target is above the optimum's at the least."""
    drawn = judged.each(np.concatenate([optimum[None], path.reshape(-1, len(optimum))]))
    low = np.quantile(drawn[:, 1:] - drawn[:, :1], 0.5 - level / 2, axis=0)
    return np.asarray(low.reshape(path.shape[:2]) - ROUNDING * np.abs(drawn).max())


def _bracket(places: Floats, fails: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """The last of each row's places [domain, 1 + place] before one fails, and the one after it [domain].

    The first place never fails.
    """
    rows, last = np.arange(len(places)), places.shape[1] - 1
    before = np.column_stack([fails, np.ones(len(places), dtype=bool)]).argmax(axis=1)
    return places[rows, before], places[rows, np.minimum(before + 1, last)]

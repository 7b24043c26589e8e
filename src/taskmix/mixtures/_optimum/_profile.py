"""Which shares are equally good: each domain's share moved away from the optimum, others making up."""

from __future__ import annotations

import numpy as np

from taskmix.mixtures._optimum._feasible import FeasibleShares
from taskmix.mixtures._optimum._judged import JudgedMixtures
from taskmix.mixtures._optimum._searching import descend_together
from taskmix.mixtures._table import Floats

COARSE = (np.arange(1, 7) / 6) ** 2  # of the way to the end of a domain's range: finer near by
FINE = np.arange(1, 7) / 6  # of the way between two coarse places
DESCENTS = 4


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
        inner, outer = optimum, end  # [domain]: as good as the optimum, and perhaps no longer
        for steps in (COARSE, FINE):
            # [domain, place]; all domains and places are rows of one search
            places = inner[:, None] + steps * (outer - inner)[:, None]
            excess = _excess(judged, feasible, optimum, places, level) - tolerance
            inner, outer = _bracket(inner, places, excess)
        ends.append(inner)
    return np.minimum(ends[0], optimum), np.maximum(ends[1], optimum)


def _excess(
    judged: JudgedMixtures,
    feasible: FeasibleShares,
    optimum: Floats,
    places: Floats,  # [domain, place]
    level: float,
) -> Floats:
    """[domain, place], by how much the target is above the optimum's at the least."""
    domains, count = places.shape
    rows = np.arange(domains * count)
    owners = np.repeat(np.arange(domains), count)
    lower, upper = (np.tile(bound, (len(rows), 1)) for bound in (feasible.lower, feasible.upper))
    lower[rows, owners] = upper[rows, owners] = places.ravel()
    starts = feasible.project(np.tile(optimum, (len(rows), 1)), lower=lower, upper=upper)
    moved, _ = descend_together(
        lambda shares, _: judged.value(shares),
        feasible,
        starts,
        steps=DESCENTS,
        lower=lower,
        upper=upper,
    )
    differences = judged.each(moved) - judged.each(optimum[None])
    return np.quantile(differences, 0.5 - level / 2, axis=0).reshape(places.shape)


def _bracket(inner: Floats, places: Floats, excess: Floats) -> tuple[Floats, Floats]:
    """The last place [domain] before `excess` first rises above 0, and the one where it does."""
    rows = np.arange(len(places))
    path = np.column_stack([inner, places])
    fails = np.column_stack([excess > 0, np.ones(len(places), dtype=bool)])
    first = fails.argmax(axis=1)  # in `path`, the place before the first that fails
    return path[rows, first], path[rows, np.minimum(first + 1, places.shape[1])]

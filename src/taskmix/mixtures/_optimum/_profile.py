"""Which shares are equally good: each domain's share moved away from the optimum, others making up."""

from __future__ import annotations

import numpy as np

from taskmix.mixtures._optimum._feasible import FeasibleShares
from taskmix.mixtures._optimum._judged import JudgedMixtures
from taskmix.mixtures._optimum._searching import descend_together
from taskmix.mixtures._table import Floats

SIDE = 8  # places looked at on each side of the optimum, nearer together close to it
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
    least, largest = feasible.ranges()
    steps = (np.arange(1, SIDE + 1) / SIDE) ** 2
    ends = []
    for end in (least, largest):
        # [domain, place]; all domains and places are rows of one search
        places = optimum[:, None] + steps * (end - optimum)[:, None]
        excess = _excess(judged, feasible, optimum, places, level) - tolerance
        ends.append(_crossing(optimum, places, excess))
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


def _crossing(optimum: Floats, places: Floats, excess: Floats) -> Floats:
    """[domain], the place on the way from the optimum where `excess` first rises above 0."""
    found = optimum.copy()
    for domain, (where, above) in enumerate(zip(places, excess, strict=True)):
        before, height = optimum[domain], min(0.0, float(above[0]))
        for place, value in zip(where, above, strict=True):
            if value > 0:
                found[domain] = before + (place - before) * (-height / (value - height))
                break
            before, height = place, value
            found[domain] = place
    return found

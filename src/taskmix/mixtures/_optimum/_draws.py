"""The optimum of every equally likely law: how much is lost by taking one mixture for all of them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from taskmix.mixtures._optimum._feasible import FeasibleShares
from taskmix.mixtures._optimum._judged import JudgedMixtures
from taskmix.mixtures._optimum._searching import descend_together
from taskmix.mixtures._table import Floats

DESCENTS = 6  # of each law from its best candidate; the regret hardly changes after that


def optima_of_draws(
    judged: JudgedMixtures,
    feasible: FeasibleShares,
    candidates: Floats,  # [mixture, domain], allowed ones
    *,
    descents: int = DESCENTS,
) -> tuple[Floats, Floats]:
    """Each law's own best mixture [draw, domain] and its target there [draw], nearly.

    The best of the candidates by each law, refined; all laws at once.
    """
    by_law = judged.each(candidates)
    starts = candidates[by_law.argmin(axis=1)]

    def judge(rows: Floats, owners: NDArray[np.intp]) -> Floats:
        return judged.each(rows)[owners, np.arange(len(rows))]

    return descend_together(judge, feasible, starts, steps=descents)


def expected_regret(
    judged: JudgedMixtures, feasible: FeasibleShares, chosen: Floats, candidates: Floats
) -> float:
    """By how much the target of `chosen` [domain] is above each law's own optimum, in the mean."""
    _, lowest = optima_of_draws(judged, feasible, np.concatenate([candidates, chosen[None]]))
    return float(np.maximum(judged.each(chosen[None])[:, 0] - lowest, 0.0).mean())

"""Which bounds contradict each other: some that no mixture keeps, and all of which are needed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.optimize import linprog

from taskmix.errors import InputError
from taskmix.mixtures._optimum._feasible import FeasibleShares
from taskmix.mixtures._table import Floats

NAMED = 6  # bounds that a sentence lists
ROUNDING = 1e-9  # bounds read from text add up to 1 that nearly


def explain_contradiction(feasible: FeasibleShares, words: Sequence[str]) -> None:
    """Raises a sentence that names the bounds that cannot hold together, or returns.

    `words` [bound] are the names of all lower, then all upper bounds of domains, then those of groups.
    """
    count = feasible.count
    # Every bound as a row of `rows @ shares <= ends`.
    rows = np.concatenate([-np.eye(count), np.eye(count), -feasible.members, feasible.members])
    ends = np.concatenate([-feasible.lower, feasible.upper, -feasible.least, feasible.most])
    if _can_hold(rows, ends):
        return
    # Taking one bound away after another, and putting back those without which all could hold,
    # leaves a contradiction with nothing superfluous. Groups go last: they are the rarer kind.
    needed = list(range(len(ends)))
    for bound in range(len(ends)):
        fewer = [each for each in needed if each != bound]
        if not _can_hold(rows[fewer], ends[fewer]):
            needed = fewer
    # That no share is below 0 or above 1 goes without saying.
    lower_ends = np.concatenate([feasible.lower > 0, feasible.upper < 1])
    named = [words[each] for each in needed if each >= 2 * count or lower_ends[each]]
    more = f" and {len(named) - NAMED} more" if len(named) > NAMED else ""
    raise InputError(
        "Some mixture should keep all limits, its shares summing to 1. Found limits that contradict "
        f"each other: {', '.join(named[:NAMED])}{more}. Loosen one of them."
    )


def _can_hold(rows: Floats, ends: Floats) -> bool:
    """Whether shares that sum to 1 and are not negative keep these bounds."""
    found = linprog(
        np.zeros(rows.shape[1]),
        A_ub=rows if len(rows) else None,
        b_ub=ends + ROUNDING if len(rows) else None,
        A_eq=np.ones((1, rows.shape[1])),
        b_eq=[1.0],
        bounds=(0.0, 1.0),
    )
    return int(found.status) != 2  # 2: infeasible

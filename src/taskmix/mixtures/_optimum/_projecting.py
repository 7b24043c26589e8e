r"""The nearest feasible shares: points onto the simplex cut by bounds and by sums of groups.

Shares that sum to 1 within bounds $l$ and $u$ have an exact projection, $\min(\max(x - \lambda, l), u)$
with the one $\lambda$ that makes the sum right, found between sorted breakpoints for all rows at once.
Groups of domains cut further slabs. Dykstra's algorithm projects onto them in turn,

    Boyle and Dykstra, "A method for finding projections onto the intersection of convex sets", 1986,

which ends at the nearest point of all of them, not just at some point as plain turns would. Rows that
are not there after many turns are left to `scipy.optimize`, one by one.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize

from taskmix.mixtures._table import Floats

TURNS = 200
EXACT = 1e-10  # how far a sum of a group may miss its bounds
FIRST_LOOK = 10  # turns between two looks whether all rows are there


def project_to_sum(points: Floats, lower: Floats, upper: Floats, total: float = 1.0) -> Floats:
    """The nearest rows within `lower` and `upper` ([domain] or [mixture, domain]) of sum `total`."""
    lower, upper = np.broadcast_to(lower, points.shape), np.broadcast_to(upper, points.shape)
    inside = (points >= lower).all(axis=1) & (points <= upper).all(axis=1)
    done = inside & (np.abs(points.sum(axis=1) - total) <= 1e-14)
    if done.all():
        return points.copy()
    # Going up in lambda, a share starts to fall at x - u and stops at x - l.
    breaks = np.concatenate([points - upper, points - lower], axis=1)
    turn = np.concatenate([np.ones(points.shape), -np.ones(points.shape)], axis=1)
    order = np.argsort(breaks, axis=1, kind="stable")
    breaks = np.take_along_axis(breaks, order, axis=1)
    falling = np.cumsum(np.take_along_axis(turn, order, axis=1), axis=1)  # shares that still move
    fallen = np.cumsum(falling[:, :-1] * np.diff(breaks, axis=1), axis=1)
    sums = upper.sum(axis=1)[:, None] - np.concatenate([np.zeros((len(points), 1)), fallen], axis=1)
    place = np.clip((sums >= total).sum(axis=1) - 1, 0, breaks.shape[1] - 1)[:, None]
    slope = np.take_along_axis(falling, place, axis=1)
    above = np.take_along_axis(sums, place, axis=1) - total
    step = np.divide(above, slope, out=np.zeros_like(above), where=slope > 0)
    shift = np.take_along_axis(breaks, place, axis=1) + step
    moved = np.clip(points - shift, lower, upper)
    return np.where(done[:, None], points, moved)


def project_to_groups(
    points: Floats,
    lower: Floats,
    upper: Floats,
    members: Floats,  # [group, domain], 1 where the domain belongs to it
    least: Floats,  # [group]
    most: Floats,  # [group]
) -> Floats:
    """The nearest rows that sum to 1 within the bounds and whose groups' sums lie within theirs."""
    nearest = project_to_sum(points, lower, upper)
    if len(members) == 0:
        return nearest
    open_rows = np.flatnonzero(_miss(nearest, members, least, most) > EXACT)
    if len(open_rows) == 0:
        return nearest
    low = np.broadcast_to(lower, points.shape)[open_rows]
    high = np.broadcast_to(upper, points.shape)[open_rows]
    found = _by_turns(points[open_rows], low, high, members, least, most)
    for row in np.flatnonzero(_miss(found, members, least, most) > 1e-7):
        found[row] = _one_by_one(
            points[open_rows[row]], found[row], low[row], high[row], members, least, most
        )
    nearest[open_rows] = found
    return nearest


def _by_turns(
    points: Floats, lower: Floats, upper: Floats, members: Floats, least: Floats, most: Floats
) -> Floats:
    sizes = members.sum(axis=1)
    current = points.copy()
    left_by_sum = np.zeros_like(points)
    left_by_group = np.zeros((len(members), *points.shape))
    for turn in range(TURNS):
        for group, row in enumerate(members):
            moved = current + left_by_group[group]
            total = moved @ row
            shift = (np.clip(total, least[group], most[group]) - total) / sizes[group]
            current = moved + shift[:, None] * row
            left_by_group[group] = moved - current
        moved = current + left_by_sum
        current = project_to_sum(moved, lower, upper)
        left_by_sum = moved - current
        if turn % FIRST_LOOK == 0 and (_miss(current, members, least, most) <= EXACT).all():
            break
    return current


def _one_by_one(
    point: Floats,
    start: Floats,
    lower: Floats,
    upper: Floats,
    members: Floats,
    least: Floats,
    most: Floats,
) -> Floats:
    rows = np.concatenate([members, -members])
    edges = np.concatenate([least, -most])
    found = minimize(
        lambda w: 0.5 * float(((w - point) ** 2).sum()),
        start,
        jac=lambda w: w - point,
        bounds=list(zip(lower, upper, strict=True)),
        constraints=[
            {"type": "eq", "fun": lambda w: w.sum() - 1.0, "jac": lambda w: np.ones_like(w)},
            {"type": "ineq", "fun": lambda w: rows @ w - edges, "jac": lambda w: rows},
        ],
        method="SLSQP",
        options={"maxiter": 200, "ftol": 1e-12},
    )
    return np.asarray(np.clip(found.x, lower, upper))


def _miss(shares: Floats, members: Floats, least: Floats, most: Floats) -> Floats:
    """[mixture], by how much the worst group is outside its bounds."""
    sums = shares @ members.T
    return np.asarray(np.maximum(least - sums, sums - most).max(axis=1, initial=0.0))

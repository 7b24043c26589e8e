r"""The nearest feasible shares: points onto the simplex cut by bounds and by sums of groups.

The nearest mixture to $x$ is $w = \min(\max(x - \lambda - \sum_g \mu_g a_g,\ l),\ u)$, where $a_g$ marks
the members of group $g$, the one $\lambda$ makes the sum 1, and $\mu_g$ is 0 unless a bound of the group
binds. With groups these numbers are found in turns (each alone is exact, between sorted breakpoints, for
all rows at once), and a Newton step after every turn ends the matter once it is known which bounds bind.
A row counts as done when the conditions of Karush, Kuhn and Tucker hold. What is not done after some
turns (bounds that touch each other) is solved row by row, which is exact and slow.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import null_space
from scipy.optimize import nnls

from taskmix.mixtures._table import Floats

TURNS = 12
EXACT = 1e-9  # how far a sum may miss its bound


def project_to_sum(points: Floats, lower: Floats, upper: Floats) -> Floats:
    """The nearest rows of sum 1 within `lower` and `upper` ([domain] or [mixture, domain])."""
    lower, upper = np.broadcast_to(lower, points.shape), np.broadcast_to(upper, points.shape)
    shift = _shift_to_sum(points, lower, upper, np.ones(len(points)))
    inside = ((points >= lower) & (points <= upper)).all(axis=1)
    stays = inside & (np.abs(points.sum(axis=1) - 1.0) <= 1e-14)  # not even a rounding
    shift = np.where(stays, 0.0, shift)
    return np.asarray(np.clip(points - shift[:, None], lower, upper))


@dataclass(frozen=True, eq=False)
class _Groups:
    members: Floats  # [group, domain], 1 where the domain belongs to it
    least: Floats  # [group]
    most: Floats  # [group]


def project_to_groups(
    points: Floats, lower: Floats, upper: Floats, members: Floats, least: Floats, most: Floats
) -> Floats:
    """The nearest rows that sum to 1 within the bounds and whose groups' sums lie within theirs."""
    nearest = project_to_sum(points, lower, upper)
    cutting = ~members.all(axis=1)  # what holds all domains says nothing beyond the sum of 1
    members, least, most = members[cutting], least[cutting], most[cutting]
    groups = _Groups(members, least, most)
    sums = nearest @ members.T
    rows = np.flatnonzero(((sums < least - EXACT) | (sums > most + EXACT)).any(axis=1))
    low, high = np.broadcast_to(lower, points.shape), np.broadcast_to(upper, points.shape)
    pushed = np.zeros((len(rows), len(members)))  # mu of each row that is not done
    for _ in range(TURNS):
        if len(rows) == 0:
            break
        ours = points[rows], low[rows], high[rows]
        level = _turn(*ours, groups, pushed)
        found, done = _newton(*ours, groups, level, pushed)
        nearest[rows[done]] = found[done]
        rows, pushed = rows[~done], pushed[~done]
    for row in rows:
        nearest[row] = _one_by_one(points[row], low[row], high[row], groups)
    return nearest


def _turn(points: Floats, lower: Floats, upper: Floats, groups: _Groups, pushed: Floats) -> Floats:
    """Each number made right while the others stay; changes `pushed`, returns lambda [row]."""
    for group, (row, least, most) in enumerate(
        zip(groups.members, groups.least, groups.most, strict=True)
    ):
        level = _shift_to_sum(points - pushed @ groups.members, lower, upper, np.ones(len(points)))
        pushed[:, group] = 0.0
        inside = row > 0
        rest = (points - level[:, None] - pushed @ groups.members)[:, inside]
        ends = lower[:, inside], upper[:, inside]
        total = np.clip(rest, *ends).sum(axis=1)
        wanted = np.clip(total, least, most)
        shift = _shift_to_sum(rest, *ends, wanted)
        pushed[:, group] = np.where(total == wanted, 0.0, shift)
    return _shift_to_sum(points - pushed @ groups.members, lower, upper, np.ones(len(points)))


def _newton(
    points: Floats, lower: Floats, upper: Floats, groups: _Groups, level: Floats, pushed: Floats
) -> tuple[Floats, NDArray[np.bool_]]:
    """Where one step leads with the bounds that bind now, and whether that is the nearest [row]."""
    rows = np.concatenate([np.ones((1, points.shape[1])), groups.members])
    ends = np.where(pushed > 0, groups.most, groups.least)
    binds = np.column_stack([np.ones(len(points), dtype=bool), pushed != 0])
    moved = points - level[:, None] - pushed @ groups.members
    shares = np.clip(moved, lower, upper)
    missing = np.where(binds, shares @ rows.T - np.column_stack([np.ones(len(points)), ends]), 0.0)
    free = ((moved > lower) & (moved < upper)).astype(np.float64)
    bend = np.einsum("kd,nd,ld->nkl", rows, free, rows) * (binds[:, :, None] & binds[:, None])
    bend = bend + np.eye(len(rows)) * np.where(binds, 1e-13, 1.0)[:, None]
    step = np.linalg.solve(bend, missing[:, :, None])[:, :, 0]
    level, pushed = level + step[:, 0], pushed + step[:, 1:]
    shares = np.clip(points - level[:, None] - pushed @ groups.members, lower, upper)
    sums = shares @ groups.members.T
    right = (sums >= groups.least - EXACT) & (sums <= groups.most + EXACT)
    right &= (pushed <= 0) | (sums >= groups.most - EXACT)
    right &= (pushed >= 0) | (sums <= groups.least + EXACT)
    return shares, right.all(axis=1) & (np.abs(shares.sum(axis=1) - 1.0) <= EXACT)


def _shift_to_sum(points: Floats, lower: Floats, upper: Floats, total: Floats) -> Floats:
    """[row], what to take from every share so that, within bounds, they sum to `total` [row]."""
    # Going up in the shift, a share starts to fall at x - u and stops at x - l.
    breaks = np.concatenate([points - upper, points - lower], axis=1)
    turn = np.concatenate([np.ones(points.shape), -np.ones(points.shape)], axis=1)
    order = np.argsort(breaks, axis=1, kind="stable")
    breaks = np.take_along_axis(breaks, order, axis=1)
    falling = np.cumsum(np.take_along_axis(turn, order, axis=1), axis=1)  # shares that still move
    fallen = np.cumsum(falling[:, :-1] * np.diff(breaks, axis=1), axis=1)
    sums = upper.sum(axis=1)[:, None] - np.concatenate([np.zeros((len(points), 1)), fallen], axis=1)
    place = np.clip((sums >= total[:, None]).sum(axis=1) - 1, 0, breaks.shape[1] - 1)[:, None]
    slope = np.take_along_axis(falling, place, axis=1)
    above = np.take_along_axis(sums, place, axis=1) - total[:, None]
    step = np.divide(above, slope, out=np.zeros_like(above), where=slope > 0)
    return np.asarray((np.take_along_axis(breaks, place, axis=1) + step)[:, 0])


def _one_by_one(point: Floats, lower: Floats, upper: Floats, groups: _Groups) -> Floats:
    """Least distance programming by non-negative least squares (Lawson and Hanson, 1974, ch. 23)."""
    count = len(point)
    rows = np.concatenate([np.eye(count), -np.eye(count), groups.members, -groups.members])
    ends = np.concatenate([lower, -upper, groups.least, -groups.most])
    ends = ends - 1e-12  # bounds that just touch should not miss each other by rounding
    middle = point + (1.0 - point.sum()) / count  # of sum 1; from there along ways that keep it
    ways = null_space(np.ones((1, count)))
    bounds = np.concatenate([(rows @ ways).T, (ends - rows @ middle)[None]])
    aim = np.zeros(count)
    aim[-1] = 1.0
    weights, _ = nnls(bounds, aim, maxiter=50 * bounds.shape[1])
    left = bounds @ weights - aim
    way = -left[:-1] / left[-1] if left[-1] != 0 else np.zeros(count - 1)
    return np.asarray(np.clip(middle + ways @ way, lower, upper))

r"""The mixtures that limits allow, as arrays in the order of the domains: nearest, at random, ends.

The allowed mixture nearest to $x$ is $w = \min(\max(x - \lambda - \sum_g \mu_g a_g,\ l),\ u)$, where
$a_g$ marks the members of group $g$, the one $\lambda$ makes the sum 1, and $\mu_g$ is 0 unless a bound
of the group binds. With groups these numbers are found in turns (each alone is exact, between sorted
breakpoints, for all rows at once), and a Newton step after every turn ends the matter once it is known
which bounds bind. A row counts as done when the conditions of Karush, Kuhn and Tucker hold. What is not
done after some turns (bounds that touch each other) is solved row by row, which is exact and slow.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import null_space
from scipy.optimize import linprog, nnls

from taskmix.mixtures._table import Floats

WITHIN = 1e-6  # how far a mixture may miss a bound and still count as within it
STEPS_PER_DOMAIN = 12  # of a walk from the middle to a place that no longer knows where it began
TURNS = 12  # of a projection, before rows that are not done are solved one by one
EXACT = 1e-9  # how far a sum may miss its bound


@dataclass(frozen=True, kw_only=True, eq=False)
class FeasibleShares:
    """The polytope of allowed mixtures: bounds, sums of groups, and a sum of 1."""

    lower: Floats  # [domain]
    upper: Floats  # [domain]
    members: Floats  # [group, domain], 1 where the domain belongs to the group
    least: Floats  # [group]
    most: Floats  # [group]

    @property
    def count(self) -> int:
        """How many domains."""
        return len(self.lower)

    @property
    def is_simplex(self) -> bool:
        """Whether every mixture is allowed."""
        return len(self.members) == 0 and not self.lower.any() and bool((self.upper >= 1).all())

    def contains(self, shares: Floats) -> NDArray[np.bool_]:
        """[mixture], which of them are allowed."""
        sums = shares @ self.members.T
        return np.asarray(
            (shares >= self.lower - WITHIN).all(axis=1)
            & (shares <= self.upper + WITHIN).all(axis=1)
            & (np.abs(shares.sum(axis=1) - 1.0) <= WITHIN)
            & (sums >= self.least - WITHIN).all(axis=1)
            & (sums <= self.most + WITHIN).all(axis=1)
        )

    def project(
        self, shares: Floats, *, lower: Floats | None = None, upper: Floats | None = None
    ) -> Floats:
        """The nearest allowed mixtures [mixture, domain]; bounds may be narrowed row by row."""
        return project_to_groups(
            shares,
            self.lower if lower is None else lower,
            self.upper if upper is None else upper,
            self.members,
            self.least,
            self.most,
        )

    def sample(self, count: int, generator: np.random.Generator) -> Floats:
        """Allowed mixtures at random, evenly over all of them [mixture, domain]."""
        room = 1.0 - self.lower.sum()
        if room <= 1e-12:
            return self.project(np.tile(self.lower, (count, 1)))
        # Above the lower bounds a flat Dirichlet is even, and cutting keeps it so.
        tries = count if self.is_simplex else 20 * count
        drawn = self.lower + room * generator.dirichlet(np.ones(self.count), size=tries)
        kept = drawn if self.is_simplex else drawn[self.contains(drawn)]
        return kept[:count] if len(kept) >= count else self._walk(count, generator)

    def middle(self) -> Floats:
        """[domain], a mixture far from all bounds that are not tight."""
        ends = np.concatenate([np.eye(self.count), np.full((1, self.count), 1 / self.count)])
        return np.asarray(self.project(ends).mean(axis=0))

    def ranges(self) -> tuple[Floats, Floats]:
        """The least and the largest share that each domain can have [domain] twice."""
        low = np.maximum(self.lower, 1.0 - (self.upper.sum() - self.upper))
        high = np.minimum(self.upper, 1.0 - (self.lower.sum() - self.lower))
        if len(self.members) == 0:
            return low, high
        for place in range(self.count):
            aim = np.zeros(self.count)
            aim[place] = 1.0
            low[place] = self.least_of(aim)[place]
            high[place] = self.least_of(-aim)[place]
        return low, high

    def least_of(self, slopes: Floats) -> Floats:
        """[domain], the allowed mixture where `slopes` [domain] times the shares is least."""
        found = linprog(
            slopes,
            A_ub=np.concatenate([self.members, -self.members]) if len(self.members) else None,
            b_ub=np.concatenate([self.most, -self.least]) if len(self.members) else None,
            A_eq=np.ones((1, self.count)),
            b_eq=[1.0],
            bounds=np.column_stack([self.lower, self.upper]),
        )
        assert found.x is not None, "the limits were checked before"
        return np.asarray(found.x, dtype=np.float64)

    def _walk(self, count: int, generator: np.random.Generator) -> Floats:
        """Hit and run (Smith, 1984): along a random line, anywhere between its ends, many times."""
        current = np.tile(self.middle(), (count, 1))
        rows = np.concatenate([np.eye(self.count), self.members])  # [constraint, domain]
        least = np.concatenate([self.lower, self.least])
        most = np.concatenate([self.upper, self.most])
        fixed = np.concatenate([np.ones((1, self.count)), rows[most - least <= 1e-12]])
        free = null_space(fixed)  # [domain, direction], ways that change nothing that is fixed
        for _ in range(STEPS_PER_DOMAIN * free.shape[1]):
            way = generator.standard_normal((count, free.shape[1])) @ free.T
            speed = way @ rows.T
            here = current @ rows.T
            with np.errstate(divide="ignore", invalid="ignore"):
                to_least, to_most = (least - here) / speed, (most - here) / speed
            still = np.abs(speed) <= 1e-12
            forward = np.where(still, np.inf, np.maximum(to_least, to_most)).min(axis=1)
            backward = np.where(still, -np.inf, np.minimum(to_least, to_most)).max(axis=1)
            known = np.isfinite(forward) & np.isfinite(backward) & (forward > backward)
            forward, backward = np.where(known, forward, 0.0), np.where(known, backward, 0.0)
            place = backward + generator.random(count) * (forward - backward)
            current = current + place[:, None] * way
        return self.project(current)


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

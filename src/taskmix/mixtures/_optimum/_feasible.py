"""The mixtures that limits allow, as arrays in the order of the domains: nearest, at random, ends."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import null_space
from scipy.optimize import linprog

from taskmix.mixtures._optimum._projecting import project_to_groups
from taskmix.mixtures._table import Floats

WITHIN = 1e-6  # how far a mixture may miss a bound and still count as within it
STEPS_PER_DOMAIN = 12  # of a walk from the middle to a place that no longer knows where it began


@dataclass(frozen=True, kw_only=True, eq=False)
class FeasibleShares:
    """The polytope of allowed mixtures: bounds, sums of groups, and a sum of 1.

    >>> whole = FeasibleShares.simplex(2)
    >>> whole.project(np.array([[1.5, 0.5]])).tolist()
    [[1.0, 0.0]]
    """

    lower: Floats  # [domain]
    upper: Floats  # [domain]
    members: Floats  # [group, domain], 1 where the domain belongs to the group
    least: Floats  # [group]
    most: Floats  # [group]

    @classmethod
    def simplex(cls, domains: int) -> FeasibleShares:
        """All mixtures of so many domains."""
        return cls(
            lower=np.zeros(domains),
            upper=np.ones(domains),
            members=np.zeros((0, domains)),
            least=np.zeros(0),
            most=np.zeros(0),
        )

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

    def sample_sparse(
        self, count: int, generator: np.random.Generator, *, concentration: float = 0.3
    ) -> Floats:
        """Allowed mixtures of few domains: Dirichlet draws, projected; more of them at the edges."""
        drawn = generator.dirichlet(np.full(self.count, concentration), size=count)
        return self.project(drawn)

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

"""How the batches of one model are divided over its tasks.

Either a step takes one task, drawn by shares that stay (`Shares`) or change over the run (`Stages`), or
it takes a batch of every task, whose losses are weighted (`Weighted`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from taskmix.errors import InputError
from taskmix.policies import AnyPolicy, Fixed, Scheduled, Uniform
from taskmix.weighting import AnyWeighting

ALIKE = 1e-12  # shares that differ by less are equal: they were divided in another order


@dataclass(frozen=True, kw_only=True)
class Shares:
    """One task a step, each with its probability, in the order of the part's tasks.

    >>> Shares(probabilities=(0.75, 0.25)).policy(steps=100)
    Fixed(shares=(0.75, 0.25))
    """

    probabilities: tuple[float, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "probabilities", checked_shares(self.probabilities))

    @classmethod
    def equal(cls, count: int) -> Shares:
        """Every task as often as any other."""
        return cls(probabilities=(1 / count,) * count)

    @classmethod
    def of(cls, policy: AnyPolicy, sizes: ArrayLike) -> Shares:
        """The shares that a policy begins with, for tasks of these sizes."""
        state = policy.init(np.asarray(sizes))
        return cls(probabilities=tuple(float(share) for share in policy.probabilities(state)))

    def policy(self, steps: int) -> AnyPolicy:
        return _unchanging(self.probabilities)

    def only(self, places: Sequence[int]) -> Shares:
        """The shares of some tasks among themselves, in the order of `places`."""
        return Shares(probabilities=_among(self.probabilities, places))


@dataclass(frozen=True, kw_only=True)
class Stage:
    """The probabilities from a share of the run on."""

    begin: float  # 0 is the start, 0.5 half-way
    probabilities: tuple[float, ...]

    def __post_init__(self) -> None:
        if not is_number(self.begin):
            raise InputError(
                "The `begin` of a plan's stage should be a share of the run. Found "
                f"{self.begin!r}. The first stage begins at 0."
            )
        object.__setattr__(self, "probabilities", checked_shares(self.probabilities))


@dataclass(frozen=True, kw_only=True)
class Stages:
    """One task a step, with probabilities that change over the run.

    >>> first, then = (Stage(begin=b, probabilities=p) for b, p in [(0, (1/2, 1/2)), (3/4, (1/4, 3/4))])
    >>> Stages(stages=(first, then)).mean  # 3/4 of the run equally often, 1/4 mostly the second
    (0.4375, 0.5625)
    """

    stages: tuple[Stage, ...]

    def __post_init__(self) -> None:
        begins = [stage.begin for stage in self.stages]
        if not begins or begins != sorted(set(begins)) or begins[0] != 0 or begins[-1] >= 1:
            raise InputError(
                "The `begin` of a plan's stages should rise from 0 and stay below 1. Found "
                f"{begins}."
            )
        if len({len(stage.probabilities) for stage in self.stages}) > 1:
            raise InputError(
                "A plan's stages should have one probability for each task, all alike."
            )

    @property
    def mean(self) -> tuple[float, ...]:
        """How often each task is drawn over the whole run."""
        ends = [*(stage.begin for stage in self.stages[1:]), 1.0]
        rows = [
            (end - stage.begin) * np.array(stage.probabilities)
            for stage, end in zip(self.stages, ends, strict=True)
        ]
        return tuple(float(share) for share in np.sum(rows, axis=0))

    def policy(self, steps: int) -> AnyPolicy:
        """Stages that begin at the same step, in a short run, are the last of them."""
        starts = {round(stage.begin * steps): stage.probabilities for stage in self.stages}
        if len(starts) == 1:
            return _unchanging(starts[0])
        return Scheduled(tuple(starts.items()))

    def only(self, places: Sequence[int]) -> Stages:
        """The shares of some tasks among themselves, in the order of `places`."""
        return Stages(
            stages=tuple(
                Stage(begin=stage.begin, probabilities=_among(stage.probabilities, places))
                for stage in self.stages
            )
        )


@dataclass(frozen=True, kw_only=True)
class Weighted:
    """A batch of every task each step, the losses weighted by a method."""

    method: AnyWeighting


Division = Shares | Stages | Weighted


def checked_shares(probabilities: Sequence[float]) -> tuple[float, ...]:
    """Numbers above 0 that sum to 1."""
    fine = all(is_number(p) and p > 0 for p in probabilities)
    if not fine or abs(sum(probabilities) - 1.0) > 1e-6:
        raise InputError(
            "The probabilities of a part's tasks should be numbers above 0 that sum to 1. Found "
            f"{str(list(probabilities))[:100]}. Leave a task out that should have none."
        )
    return tuple(float(p) for p in probabilities)


def is_number(value: object) -> bool:
    """Whether it is one that a share or a score can be: whole numbers may be too large for that."""
    if not isinstance(value, float | int) or isinstance(value, bool):
        return False
    return -1e308 < value < 1e308


def _among(probabilities: Sequence[float], places: Sequence[int]) -> tuple[float, ...]:
    kept = [probabilities[place] for place in places]
    return tuple(share / sum(kept) for share in kept)


def _unchanging(probabilities: tuple[float, ...]) -> AnyPolicy:
    """Equal shares are the uniform policy, so that both names stand for the same run."""
    if max(probabilities) - min(probabilities) < ALIKE:
        return Uniform()
    return Fixed(probabilities)

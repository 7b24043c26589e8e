"""The contract of a policy: which task is trained on next, and how likely that choice was.

A policy's options are a frozen dataclass; what it learns is a second one of plain arrays, handed in
and handed back. The choice carries its own probability, so a log of choices is enough to evaluate
another policy later.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

Probabilities = NDArray[np.float64]  # [task], sums to one
Sizes = NDArray[np.int64]  # [task], rows to train on

StateT = TypeVar("StateT")


@dataclass(frozen=True, slots=True)
class Choice:
    """A task and the probability with which it was drawn.

    >>> choice = Choice(task=1, probability=0.25)
    >>> 1 / choice.probability  # what it counts in an importance-weighted mean
    4.0
    """

    task: int
    probability: float


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a choice.

    >>> outcome = Outcome(Choice(task=0, probability=0.5), loss=0.7, previous_loss=0.9)
    >>> outcome.loss - outcome.previous_loss < 0, outcome.cost
    (True, 1.0)
    """

    choice: Choice
    loss: float  # of the batch, before the step
    previous_loss: float | None = None  # the same task's loss at its last visit
    loss_after: float | None = None  # of the same batch after the step, where the policy asked
    cost: float = 1.0  # of the step, in the unit the caller counts in
    reward: float | None = None
    score: float | None = None  # the task's dev score after the step, where it was just measured


class Policy(Protocol[StateT]):
    """Divides a budget of steps over tasks."""

    def init(self, sizes: Sizes) -> StateT:
        """The state before the first choice; `sizes` has the rows of each task."""
        ...

    def probabilities(self, state: StateT) -> Probabilities:
        """How likely each task is to be chosen next."""
        ...

    def select(self, state: StateT, generator: np.random.Generator) -> Choice:
        """Draws the next task."""
        ...

    def update(self, state: StateT, outcome: Outcome) -> StateT:
        """The state after an outcome."""
        ...


AnyPolicy = Policy[Any]
PolicyT = TypeVar("PolicyT")


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedPolicy:
    """A policy that people can name, and which of its options they can type, the first one first."""

    policy: type[Any]
    options: tuple[str, ...]


POLICIES: dict[str, NamedPolicy] = {}  # by the words that are typed


def typed_as(word: str, *options: str) -> Callable[[type[PolicyT]], type[PolicyT]]:
    """Enters a policy into `POLICIES`: it can be typed, and the conformance suite takes it up."""

    def register(policy: type[PolicyT]) -> type[PolicyT]:
        POLICIES[word] = NamedPolicy(policy=policy, options=options)
        return policy

    return register


def draw(probabilities: Probabilities, generator: np.random.Generator) -> Choice:
    """Draws a task by inverting the cumulative distribution: one uniform number, no copies.

    >>> draw(np.array([0.25, 0.75]), np.random.default_rng(0))
    Choice(task=1, probability=0.75)
    """
    cumulative = probabilities.cumsum()
    # The last sum may miss one by a rounding error; scaling keeps every draw inside.
    place = int(cumulative.searchsorted(generator.random() * cumulative[-1], side="right"))
    task = min(place, len(probabilities) - 1)
    return Choice(task, probability=float(probabilities[task]))


def draw_many(
    probabilities: Probabilities, generator: np.random.Generator, count: int
) -> NDArray[np.int64]:
    """The tasks that `count` calls of `draw` would give, and the generator where they leave it.

    >>> draw_many(np.array([0.25, 0.75]), np.random.default_rng(0), 8).tolist()
    [1, 1, 0, 0, 1, 1, 1, 1]
    """
    cumulative = probabilities.cumsum()
    numbers = generator.random(count) * cumulative[-1]
    places = cumulative.searchsorted(numbers, side="right")
    return np.asarray(np.minimum(places, len(probabilities) - 1), dtype=np.int64)

"""The contracts of a weighting: how much each task's loss counts in a step over all tasks.

Options are frozen, state is explicit and made of tensors. There are two families. A loss weighting
looks at the values of the losses; a gradient weighting also looks at the tasks' gradients with
respect to what they share. What else a method wants (losses after the step, an epoch's end) it
says in `needs`, so one loop, or one `Balancer`, serves them all. A call that only some methods have is
a protocol of its own, which a method that has the call names as its base: `LearnsAfterStep` (with
`Needs.LOSSES_AFTER`), `CountsEpochs` (with `Needs.EPOCH`) and `HasOwnScale`.

Weights sum to the number of tasks, so that the effective step size does not change with the
method.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Flag, auto
from typing import Any, ClassVar, Generic, Literal, Protocol, TypeVar, runtime_checkable

from torch import Tensor

from taskmix.errors import OptionError

MethodT = TypeVar("MethodT")
StateT = TypeVar("StateT")
StateContra = TypeVar("StateContra", contravariant=True)


class Needs(Flag):
    """What a method has to be given in a step; every method gets the losses.

    >>> Needs.LOSSES_AFTER in FAMO.needs, Needs.LOSSES_AFTER in Equal.needs
    (True, False)
    >>> Equal.needs.gradients_of_tasks, MGDA.needs.gradients_of_tasks
    (False, True)
    """

    LOSSES = auto()
    HOST = auto()  # the losses' values on the CPU: a GPU's are fetched while it is still at work
    LOSSES_AFTER = auto()  # of the same batch after the optimiser's step: one more forward pass
    EPOCH = auto()  # word of each epoch's end
    EVERY_TASK = auto()  # a loss of every task in every step
    GRAMIAN = auto()  # inner products of the tasks' gradients
    GRADIENTS = auto()  # the gradients themselves, [task, parameter]
    LAST_LAYER = auto()  # gradients of the last shared layer alone
    REPRESENTATION = auto()  # gradients of the shared representation, not of parameters

    @property
    def gradients_of_tasks(self) -> bool:
        """Whether each task's own gradient is needed, and not just that of the weighted sum."""
        return bool(self & (Needs.GRAMIAN | Needs.GRADIENTS))

    def passes(self, *, batches: int, tasks: int) -> int:
        """Of a batch through the encoder in one step, the cost of a step: there 1, and back 2.

        A step reads `batches`, of which some may be for several of the `tasks`. Where each task's own
        gradient is needed, a batch is walked back once for every task that reads it; gradients of the
        last layer or of the representation need no walk of the encoder. What a method computes
        besides is small next to these.
        """
        within = Needs.LAST_LAYER | Needs.REPRESENTATION
        back = tasks if self.gradients_of_tasks and not self & within else batches
        there = 2 * batches if Needs.LOSSES_AFTER in self else batches
        return there + 2 * back


@runtime_checkable
class LossWeighting(Protocol[StateT]):
    """Weights from the values of the losses alone."""

    needs: ClassVar[Needs]

    def init(self, losses: Tensor) -> StateT:
        """The state before the first step; `losses` [task] gives number, type and device."""
        ...

    def weigh(self, state: StateT, losses: Tensor, present: Tensor | None = None) -> Tensor:
        """The weight of each task [task], without gradient; `losses` is detached.

        Where `present` [task] is false a task has no loss in this step: the number that stands
        there means nothing, its weight is 0, and the others sum to their own number.
        """
        ...

    def update(self, state: StateT, losses: Tensor, present: Tensor | None = None) -> StateT:
        """The state after a step with these losses."""
        ...


@dataclass(frozen=True)
class Balance(Generic[StateT]):
    """What a gradient weighting makes of one step.

    >>> products = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    >>> balance = NashMTL().balance(None, torch.ones(2), products)
    >>> [round(weight, 4) for weight in balance.weights.tolist()], balance.state
    ([1.0, 1.0], None)
    """

    weights: Tensor  # [task], float64 on the CPU, in the paper's own scale
    state: StateT  # after the step
    # [parameter]: the step of the shared part, where it is not a combination of these gradients.
    combination: Tensor | None = None


@runtime_checkable
class GradientWeighting(Protocol[StateT]):
    """Weights from the tasks' gradients with respect to what they share.

    One verb instead of two: weights and state come out of the same costly solution.
    """

    needs: ClassVar[Needs]

    def init(self, losses: Tensor) -> StateT:
        """The state before the first step; `losses` [task] gives number, type and device."""
        ...

    def balance(
        self,
        state: StateT,
        losses: Tensor,  # [task], of the tasks that have one in this step
        gradients: Tensor,  # [task, task] Gramian; [task, parameter] where `needs` says GRADIENTS
        tasks: Tensor | None = None,  # [task], their places among all tasks; None where none misses
    ) -> Balance[StateT]:
        """Weights for this step and the state after it."""
        ...


@runtime_checkable
class LearnsAfterStep(Protocol[StateT]):
    """A method that compares the losses of a batch before and after the optimiser's step."""

    def after_step(self, state: StateT, losses: Tensor) -> StateT:
        """The state once the losses [task] of the same batch after the step are known."""
        ...


@runtime_checkable
class CountsEpochs(Protocol[StateT]):
    """A method that changes its weights from epoch to epoch."""

    def end_epoch(self, state: StateT) -> StateT:
        """The state at the beginning of the next epoch."""
        ...


@runtime_checkable
class HasOwnScale(Protocol[StateContra]):
    """A method of losses whose weights, in its paper, sum to something else than the number of tasks."""

    def unscaled(self, state: StateContra, losses: Tensor, present: Tensor | None = None) -> Tensor:
        """The paper's own weights [task], which `Balancer(normalize=None)` asks for."""
        ...


@dataclass(frozen=True, kw_only=True)
class Registration:
    """A method that people can name, and what its weights do when the losses change."""

    method: type[Any]
    # Of a task's loss: the weights do not see it, a factor of all losses cancels, twice the loss has
    # half the weight, or it moves the weights in the method's own way.
    scale: Literal["ignored", "common cancels", "inverse", "counts"]
    shift: Literal["ignored", "counts"]  # a number added to all losses


WEIGHTINGS: dict[str, Registration] = {}  # by the words that are typed


def registered(
    word: str,
    *,
    scale: Literal["ignored", "common cancels", "inverse", "counts"],
    shift: Literal["ignored", "counts"],
) -> Callable[[type[MethodT]], type[MethodT]]:
    """Enters a method into `WEIGHTINGS`: it can be typed, and the conformance suite takes it up."""

    def register(method: type[MethodT]) -> type[MethodT]:
        WEIGHTINGS[word] = Registration(method=method, scale=scale, shift=shift)
        return method

    return register


AnyLossWeighting = LossWeighting[Any]
AnyGradientWeighting = GradientWeighting[Any]
AnyWeighting = AnyLossWeighting | AnyGradientWeighting

# What a method may have to be told of, by what it needs: the protocol of the call, and the call's name.
CALL_OF_NEED = {
    Needs.LOSSES_AFTER: (LearnsAfterStep, "after_step"),
    Needs.EPOCH: (CountsEpochs, "end_epoch"),
}


def check_method(method: AnyWeighting) -> None:
    """Refuses a method whose calls are not those that its `needs` announce."""
    name = type(method).__name__
    family, calls = (
        (GradientWeighting, "`init` and `balance`")
        if method.needs.gradients_of_tasks
        else (LossWeighting, "`init`, `weigh` and `update`")
    )
    if not isinstance(method, family):
        raise OptionError(
            f"`{name}` should have {calls}, since its `needs` are {method.needs}. Found one missing. "
            "See `taskmix.weighting.Needs`."
        )
    for need, (protocol, call) in CALL_OF_NEED.items():
        if isinstance(method, protocol) and need not in method.needs:
            raise OptionError(
                f"`{name}` should say Needs.{need.name} in its `needs`, since it has `{call}`. Found "
                f"{method.needs}. Without it nobody would make the call."
            )
        if need in method.needs and not isinstance(method, protocol):
            raise OptionError(
                f"`{name}` should have `{call}`, since its `needs` say {need.name}. Found none. Write "
                "it, or take the need away."
            )

"""What the methods that weigh the directions of gradients have in common: a preference, and no state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from taskmix.records import later_option
from taskmix.weighting._gramian import Matrix, Vector, weigh_directions
from taskmix.weighting._preference import check_preference, preferred
from taskmix.weighting._weighting import Balance, Needs


@dataclass(frozen=True, kw_only=True)
class Preferring:
    """A method of gradients whose paper, or its common code, says what a preference means."""

    needs: ClassVar[Needs] = Needs.LOSSES | Needs.GRAMIAN

    preference: tuple[float, ...] | None = later_option(None)  # above 0, one a task, in order

    def __post_init__(self) -> None:
        check_preference(self.preference)


@dataclass(frozen=True, kw_only=True)
class Directional(Preferring):
    """Weights that follow from the lengths of the gradients and the cosines between them alone."""

    def solve(self, norms: Vector, cosines: Matrix, preference: Vector) -> Vector:
        """The weights [task] of tasks whose gradients are not 0; the mean of `preference` is 1."""
        raise NotImplementedError

    def init(self, losses: Tensor) -> None:
        return None

    def balance(
        self, state: None, losses: Tensor, gradients: Tensor, tasks: Tensor | None = None
    ) -> Balance[None]:
        wanted = preferred(self.preference, len(gradients), tasks)
        return Balance(weigh_directions(gradients, self.solve, wanted), None)

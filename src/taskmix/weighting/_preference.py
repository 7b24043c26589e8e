"""A preference: how many times as much each task is wanted, where a method would treat all alike.

It is one idea with two meanings. A method of gradients that has an option `preference` defines it: where
the paper or its common code has one, theirs (UPGrad and Aligned-MTL: of the mean at the end; ConFIG and
IMTL-G: of the cosines or projections; CAGrad: of the mean gradient; PCGrad and GradVac: of the losses,
which changes no projection; Nash-MTL and FairGrad: of the tasks' gains). Other methods of gradients
promise something that a factor would break, and refuse it. For a method of losses it is a factor
of the weight, which the method does not see.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from functools import lru_cache
from typing import Any, cast

import torch
from torch import Tensor

from taskmix.errors import OptionError, ShapeError
from taskmix.weighting._weighting import WEIGHTINGS, AnyWeighting, Needs


def check_preference(preference: Sequence[float] | None) -> None:
    """Raises where a preference is not made of numbers above 0."""
    if preference is not None and not all(math.isfinite(each) and each > 0 for each in preference):
        raise OptionError(
            f"`preference` should be numbers above 0. Found {tuple(preference)}. Leave a task out that "
            "is not wanted."
        )


def preferred(
    preference: tuple[float, ...] | None, count: int, tasks: Tensor | None
) -> list[float]:
    """The preference of each of `count` tasks in a step; their mean is 1. `tasks` are their places."""
    if preference is None:
        return [1.0] * count
    places = range(count) if tasks is None else tasks.tolist()
    if tasks is None and count != len(preference):
        raise ShapeError(
            f"`preference` should have one number for each task. Found {len(preference)} numbers and "
            f"{count} tasks. Give them in the order of the tasks."
        )
    if max(places, default=0) >= len(preference):
        raise ShapeError(
            f"`preference` should have one number for each task. Found {len(preference)}, and a task "
            f"{max(places) + 1}. Give it to the balancer by name: a task that has none has 1."
        )
    chosen = [preference[place] for place in places]
    return [each * count / sum(chosen) for each in chosen]


def _with_option(name: str) -> list[str]:
    """The registered methods that have an option."""
    kinds = (each.method for each in WEIGHTINGS.values())
    return sorted(kind.__name__ for kind in kinds if name in {each.name for each in fields(kind)})


class Preference:
    """What a user gave a balancer, and what it means to the method."""

    def __init__(self, method: AnyWeighting, given: Mapping[str, float] | Sequence[float]) -> None:
        self._method = method
        self._given = dict(given) if isinstance(given, Mapping) else tuple(given)
        check_preference(list(given.values() if isinstance(given, Mapping) else given))
        name = type(method).__name__
        options: set[str] = (
            {item.name for item in fields(method)} if is_dataclass(method) else set()
        )
        if method.needs.gradients_of_tasks and "preference" not in options:
            raise OptionError(
                f"A preference should go to a method that defines one. Found `{name}`, whose promise a "
                f"factor would break. {', '.join(_with_option('preference'))} have one."
            )
        if "weights" in options:
            raise OptionError(
                f"A preference of `{name}` should be its option `weights`. Found `preference` as well."
            )
        if Needs.LOSSES_AFTER in method.needs:
            raise OptionError(
                f"A preference should go to a method that keeps to it. Found `{name}`, which evens out "
                "what each task gains, a preference too. Tchebycheff or UPGrad have one."
            )

    def method(self, names: tuple[str, ...]) -> Any:
        """The method of gradients, with the preference of these tasks."""
        return _with_preference(cast("Hashable", self._method), self._of(names))

    def applied(self, weights: Tensor, names: tuple[str, ...], *, keep: bool) -> Tensor:
        """The weights [task] of a method of losses times the preference; `keep` keeps their sum."""
        factors = torch.tensor(self._of(names), dtype=weights.dtype, device=weights.device)
        moved = weights * factors
        total = moved.sum()
        return torch.where(total == 0, moved, moved * (weights.sum() / total)) if keep else moved

    def _of(self, names: tuple[str, ...]) -> tuple[float, ...]:
        if isinstance(self._given, tuple):
            if len(self._given) != len(names):
                raise ShapeError(
                    f"`preference` should have one number for each task. Found {len(self._given)} "
                    f"numbers and {len(names)} tasks. Give it by name: a task that has none has 1."
                )
            return self._given
        unknown = [name for name in self._given if name not in names]
        if unknown:
            raise ShapeError(
                f"`preference` should name tasks of the step, {', '.join(names)}. Found "
                f"{', '.join(unknown)}. Give None as the loss of a task that comes later."
            )
        return tuple(self._given.get(name, 1.0) for name in names)


@lru_cache(maxsize=64)
def _with_preference(method: Hashable, preference: tuple[float, ...]) -> Any:
    return replace(cast("Any", method), preference=preference)

r"""Models that were trained apart from one start, made into one without training.

What a task taught its model is the difference of the model's parameters and those that all began with, a
task vector. A method makes one vector of all of them; how far to go along it is chosen on dev rows.

    `TaskArithmetic`: Ilharco et al., "Editing Models with Task Arithmetic", ICLR 2023, Section 4. The
    paper's $\tau_t$ is a row of `vectors`, its $\lambda$ one of `scales`, chosen on held-out rows. The
    paper tries 0.05, 0.1, ..., 1; the default here is a third of these, as each costs an evaluation.

    `WeightAverage`: Wortsman et al., "Model soups: averaging weights of multiple fine-tuned models
    improves accuracy without increasing inference time", ICML 2022, the uniform soup of Section 2. The
    average of the models is their start plus the average of their task vectors.

Of adapters the two factors of each product are merged, as in LoraHub (Huang et al., 2023): all of them
began with the same A and with B at 0, so A hardly moves, and the product of the merged factors is nearly
the merge of the products.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import torch
from torch import Tensor

from taskmix.errors import InputError, OptionError, ShapeError

State = Mapping[str, Tensor]


class Merging(Protocol):
    """Makes one vector of several."""

    @property
    def scales(self) -> tuple[float, ...]:
        """How far along the combined vector is tried, on dev rows."""
        ...

    def combine(self, vectors: Tensor) -> Tensor:
        """[task, parameter] to [parameter]."""
        ...


def _checked_scales(scales: Sequence[float]) -> tuple[float, ...]:
    """At least one finite number."""
    if not scales or not all(isinstance(s, float | int) and math.isfinite(s) for s in scales):
        raise OptionError(
            f"`scales` should be finite numbers, at least one. Found {tuple(scales)!r}."
        )
    return tuple(float(scale) for scale in scales)


@dataclass(frozen=True, kw_only=True)
class TaskArithmetic:
    """The sum; a scale of one over the number of tasks is the plain average.

    >>> TaskArithmetic().combine(torch.tensor([[1.0, 0.0], [3.0, 2.0]])).tolist()
    [4.0, 2.0]
    """

    scales: tuple[float, ...] = (0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "scales", _checked_scales(self.scales))

    def combine(self, vectors: Tensor) -> Tensor:
        return vectors.sum(dim=0)


@dataclass(frozen=True, kw_only=True)
class WeightAverage:
    """All models count alike, and there is nothing to choose.

    >>> WeightAverage().combine(torch.tensor([[1.0, 0.0], [3.0, 2.0]])).tolist()
    [2.0, 1.0]
    """

    @property
    def scales(self) -> tuple[float, ...]:
        return (1.0,)

    def combine(self, vectors: Tensor) -> Tensor:
        return vectors.mean(dim=0)


@dataclass(frozen=True, kw_only=True)
class Merge:
    """How models become one: by which method, and what is chosen on dev rows.

    The scale is chosen first, all tasks counting alike. Then each task's vector is tried at the
    `multiples`, task after task, and keeps the one with the best mean score.

    >>> Merge().method
    TaskArithmetic(scales=(0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0))
    """

    method: Merging = field(default_factory=TaskArithmetic)
    multiples: tuple[float, ...] = ()  # of a task's vector; (): every task counts once

    def __post_init__(self) -> None:
        if not callable(getattr(self.method, "combine", None)):
            raise InputError(
                "What merges models should be a method of `taskmix.models`, such as TaskArithmetic. "
                f"Found {self.method!r}."
            )
        if self.multiples:
            object.__setattr__(self, "multiples", _checked_scales(self.multiples))

    def evaluations(self, tasks: int) -> int:
        """How often models of so many tasks are evaluated on dev rows to choose what is best."""
        return len(self.method.scales) + tasks * len(self.multiples)


def task_vectors(start: State, ends: Sequence[State]) -> Tensor:
    """[task, parameter]: what each model's parameters changed by, all of them in one row.

    >>> task_vectors({"w": torch.ones(2)}, [{"w": torch.tensor([1.0, 3.0])}]).tolist()
    [[0.0, 2.0]]
    """
    for end in ends:
        other = sorted(set(start) ^ set(end))
        if other or any(end[name].shape != start[name].shape for name in start):
            raise ShapeError(
                "Models should have the same parameters to be merged. Found others"
                f"{f' ({other[0]})' if other else ', of another shape'}. Merge models of one kind."
            )
    names = _merged_names(start)
    if not names or not ends:
        raise ShapeError("There should be parameters and models to merge. Found none.")
    rows = [torch.cat([(end[n] - start[n]).float().flatten() for n in names]) for end in ends]
    return torch.stack(rows)


def merge_states(
    start: State,
    vectors: Tensor,  # [task, parameter], as `task_vectors` gives them
    method: Merging,
    *,
    scale: float,
    multiples: Sequence[float] | None = None,  # [task]; None: every task counts once
) -> dict[str, Tensor]:
    """The start moved along the combined vectors; what is no float stays as it was.

    >>> start = {"w": torch.zeros(2)}
    >>> vectors = task_vectors(start, [{"w": torch.ones(2)}, {"w": torch.tensor([1.0, -1.0])}])
    >>> merge_states(start, vectors, TaskArithmetic(), scale=0.5)
    {'w': tensor([1., 0.])}
    """
    if multiples is not None:
        vectors = vectors * torch.tensor(multiples, device=vectors.device).float().unsqueeze(1)
    moved = scale * method.combine(vectors)
    merged = dict(start)
    place = 0
    for name in _merged_names(start):
        size = start[name].numel()
        part = moved[place : place + size].view_as(start[name])
        merged[name] = (start[name] + part).to(start[name].dtype)
        place += size
    return merged


def _merged_names(start: State) -> list[str]:
    return [name for name, value in start.items() if value.is_floating_point()]

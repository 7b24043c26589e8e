"""A study of transfer described whole: which runs it takes to learn which tasks help which.

    Li, Nguyen and Zhang, "Identification of Negative Transfers in Multitask Learning Using
    Surrogate Models", TMLR 2023, "Constructing training data".

Every run trains some of the tasks together, all of them every step. Where one target is asked for,
a run is the target with a subset of the others; where all tasks are targets, a run is any subset,
and gives an outcome for each of its members. Beside them there are runs of every target alone, in
which effects are anchored, and runs of subsets of other sizes, on which surrogates are tried.

Every run has a seed of its own. Were one seed used for all subsets, its luck with the first
parameters would be in all rows at once, and no interval would know of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from taskmix.engine import Run
from taskmix.errors import InputError, OptionError
from taskmix.tasks import MISSING, Task, TaskSet, find_metric
from taskmix.transfer._design import SubsetDesign, draw_held_out, draw_subsets
from taskmix.transfer._subsets import check_sources
from taskmix.weighting import Equal

OutcomeKind = Literal["loss", "margin", "metric"]
OUTCOMES: tuple[OutcomeKind, ...] = ("loss", "margin", "metric")
Budget = Literal["per-task", "total"]
BUDGETS: tuple[Budget, ...] = ("per-task", "total")
Role = Literal["alone", "design", "held out", "prefix"]


@dataclass(frozen=True, kw_only=True)
class Trial:
    """A run, and what it is for; `TransferStudy.alone` and `subsets` give them."""

    run: Run
    tasks: tuple[str, ...]  # that it trains, in the order of the folder
    role: Role
    target: str | None = None  # the one it was drawn for; None: every member


@dataclass(frozen=True, kw_only=True)
class TransferStudy:
    """What is asked: the targets, the subsets, the outcome, and what a run is apart from its tasks."""

    template: Run  # its tasks (all, where None) are the ones studied; its seed is the first one
    targets: tuple[str, ...]  # one, some, or all of the tasks
    design: SubsetDesign = field(default_factory=SubsetDesign)
    outcome: OutcomeKind = "loss"
    # `per-task`: every task gets `template.steps` batches, whatever it is trained with.
    # `total`: so many batches are divided over the tasks of a run.
    budget: Budget = "per-task"

    def __post_init__(self) -> None:
        if self.outcome not in OUTCOMES:
            raise OptionError(
                f"The outcome should be one of {', '.join(OUTCOMES)}. Found {self.outcome!r}."
            )
        if self.budget not in BUDGETS:
            raise OptionError(
                f"The budget should be {' or '.join(BUDGETS)}. Found {self.budget!r}."
            )
        if not self.targets or len(set(self.targets)) != len(self.targets):
            raise InputError(
                "There should be at least one target, each named once. Found "
                f"{', '.join(self.targets) or 'none'}."
            )
        names = self.tasks
        for target in self.targets:
            if target not in names:
                raise InputError(
                    f"The target should be one of the tasks {', '.join(names)}. Found `{target}`. "
                    "Name one of them, spelt as there."
                )
        check_sources(len(names) - 1)
        self.design.source_size(len(names) - 1)
        # With one head for all tasks, a task of one class still says something about the others'.
        one_class = bool(getattr(self.template.architecture, "one_head", False))
        for task in self.loaded:
            is_target = task.name in self.targets
            _check_task(
                task, self.outcome, is_target=is_target, one_class=one_class and not is_target
            )
        if self.budget == "total" and self.template.steps < len(names):
            raise OptionError(
                f"With the total budget, a run of all {len(names)} tasks should have a batch of each. "
                f"Found {self.template.steps} batches for all. Ask for more steps."
            )

    @cached_property
    def loaded(self) -> TaskSet:
        """The tasks with their rows."""
        return self.template.load()

    @property
    def tasks(self) -> tuple[str, ...]:
        return self.loaded.names

    @property
    def shared(self) -> bool:
        """Whether all tasks are targets, so that every run serves all of its members."""
        return set(self.targets) == set(self.tasks)

    @property
    def higher_is_better(self) -> dict[str, bool]:
        """Of each task's outcome."""
        if self.outcome == "metric":
            return {task.name: find_metric(task.metric).higher_is_better for task in self.loaded}
        return dict.fromkeys(self.tasks, self.outcome == "margin")

    def steps(self, tasks: int) -> int:
        """Of a run of so many tasks."""
        if self.budget == "per-task":
            return self.template.steps
        return max(round(self.template.steps / tasks), 1)

    def run(self, tasks: Sequence[str], seed: int) -> Run:
        """The run of these tasks."""
        count = len(tasks)
        return replace(
            self.template,
            label="alone" if count == 1 else f"{count} together",
            tasks=tuple(tasks),
            steps=self.steps(count),
            policy=None,
            reward=None,
            weighting=self.template.weighting or Equal(),
            seed=seed,
        )

    def alone(self) -> list[Trial]:
        """Every target by itself."""
        return [
            self._trial([target], number, "alone", None if self.shared else target)
            for target in self.targets
            for number in range(self.design.alone)
        ]

    def subsets(self, count: int, *, whole: bool = False) -> list[Trial]:
        """About `count` subsets of each target, to learn from.

        `whole` rounds them up so that every larger number has them among its own.
        """
        share = self._row_share() if self.shared else 1.0
        draw = partial(draw_subsets, self.design, count=math.ceil(count / share), whole=whole)
        return self._trials("design", draw)

    def held_out(self, count: int) -> list[Trial]:
        """About `count` subsets of each target, of other sizes, to be tried on."""
        sizes = self.design.other_sizes(len(self.tasks) - 1)
        share = (sum(sizes) / len(sizes) + 1) / len(self.tasks) if self.shared else 1.0
        draw = partial(draw_held_out, self.design, count=math.ceil(count / share))
        return self._trials("held out", draw)

    def prefix(self, target: str, sources: Sequence[str], seeds: int) -> list[Trial]:
        """The target with chosen sources, under a few seeds."""
        members = [name for name in self.tasks if name == target or name in sources]
        return [self._trial(members, number, "prefix", target) for number in range(seeds)]

    def _row_share(self) -> float:
        """Which share of the drawn subsets is a row of a given target, where targets share them."""
        every = len(self.tasks)
        match self.design.kind:
            case "leave-one-out":
                return every / (every + 1)
            case "all-sizes":
                return (every + 2) / 2 / every  # sizes from two to all, each as often
            case _:
                return (self.design.source_size(every - 1) + 1) / every

    def _trials(
        self,
        role: Role,
        draw: Callable[..., NDArray[np.bool_]],  # items, extra to [subset, item]
    ) -> list[Trial]:
        names = self.tasks
        if self.shared:
            return self._trials_of_subsets(draw(items=len(names), extra=1), names, role, None)
        trials = []
        for target in self.targets:
            sources = [name for name in names if name != target]
            trials += self._trials_of_subsets(
                draw(items=len(sources), extra=0), sources, role, target
            )
        return trials

    def _trials_of_subsets(
        self, drawn: NDArray[np.bool_], items: Sequence[str], role: Role, target: str | None
    ) -> list[Trial]:
        trials = []
        for number, row in enumerate(drawn):
            inside = {items[place] for place in np.flatnonzero(row).tolist()} | (
                {target} if target else set()
            )
            members = [name for name in self.tasks if name in inside]
            first = number * self.design.repeats
            trials += [
                self._trial(members, seed, role, target)
                for seed in range(first, first + self.design.repeats)
            ]
        return trials

    def _trial(self, tasks: Sequence[str], number: int, role: Role, target: str | None) -> Trial:
        run = self.run(tasks, self.template.seed + number)
        return Trial(run=run, tasks=tuple(tasks), role=role, target=target)


def _check_task(task: Task, outcome: OutcomeKind, *, is_target: bool, one_class: bool) -> None:
    if task.kind in ("classification", "tagging") and task.size and not one_class:
        given = task.splits["train"].targets
        classes = len(np.unique(given[given != MISSING]))
        if classes < 2:
            raise InputError(
                "Every task should have rows of at least two classes to train on. Found "
                f"{classes} in `{task.name}`. Leave the task out."
            )
    if is_target and not task.sizes.get("dev"):
        raise InputError(
            "A target should have a dev split, on which its outcome is measured. Found no row in that "
            f"of `{task.name}`. Give it a dev file, or choose another target."
        )
    if is_target and outcome == "margin" and task.kind not in ("classification", "tagging"):
        raise InputError(
            f"The margin should be that of a task with one class a row. Found the {task.kind} task "
            f"`{task.name}`. Ask for another outcome."
        )

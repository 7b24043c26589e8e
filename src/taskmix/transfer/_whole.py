"""A study of transfer from its description to its lessons."""

from __future__ import annotations

import numpy as np

from taskmix.engine import Auto, Executor
from taskmix.errors import InputError
from taskmix.records import Study
from taskmix.transfer._estimate import (
    EstimateComparison,
    compare_estimates,
    estimate_by_gradients,
)
from taskmix.transfer._grouping import GroupLimits
from taskmix.transfer._learning import LearningOptions, TransferLessons, learn
from taskmix.transfer._measuring import TransferStudy, train_trials


def study_transfer(
    description: TransferStudy,
    study: Study,
    *,
    executor: Executor | None = None,
    options: LearningOptions | None = None,
    limits: GroupLimits | None = None,
    estimate: bool = False,
    compare: bool = False,
) -> tuple[TransferLessons, EstimateComparison | None]:
    """Trains the subsets and learns from them; `taskmix transfer` does this.

    With `estimate` outcomes come from the gradients of one model instead, and with `compare` the
    subsets are trained too: the second thing returned says how well the two agree.

    >>> from taskmix.engine import DigitsSource, Fleet, Run
    >>> from taskmix.models import Perceptron
    >>> from taskmix.records import Study
    >>> source = DigitsSource(tasks=("half", "loop", "prime", "parity"))
    >>> run = Run(label="demo", source=source, architecture=Perceptron(hidden=(4,)), steps=1, seed=0)
    >>> design = SubsetDesign(size=1, count=3, alone=1, held_out=3)
    >>> study = TransferStudy(template=run, targets=("half",), design=design)
    >>> how = {"executor": Fleet(workers=1), "options": LearningOptions(prefixes=0)}
    >>> lessons, _ = study_transfer(study, Study("study"), **how)
    >>> lessons.targets[0].table.sizes  # of the subsets the surrogate was fitted to
    array([1, 1, 1])
    """
    _check_subsets(description, options or LearningOptions())
    does = executor or Auto()
    if not estimate:
        trained = train_trials(description, study, executor=does)
        return learn(trained, study, executor=does, options=options, limits=limits), None
    compared = train_trials(description, study, executor=does) if compare else None
    estimated = estimate_by_gradients(description, study, executor=does)
    lessons = learn(estimated, study, options=options, limits=limits)
    return lessons, None if compared is None else compare_estimates(estimated, compared, study)


def _check_subsets(description: TransferStudy, options: LearningOptions) -> None:
    """Whether the subsets that will be trained can be learned from; asked before any of them is."""
    if description.design.precision is not None:  # the pilot has enough of them
        return
    names = description.tasks
    trials = description.subsets(description.design.usual_count(len(names) - 1))
    for target in description.targets:
        rows = {trial.tasks for trial in trials if trial.target in (None, target)}
        members = np.array(
            [[name in row for name in names if name != target] for row in rows if target in row],
            dtype=np.float64,
        ).reshape(-1, len(names) - 1)
        never = ~members.any(axis=0)
        if never.any():
            source = [name for name in names if name != target][int(never.argmax())]
            raise InputError(
                f"Every source should be in a subset of `{target}`. Found none with `{source}` among "
                f"{len(members)}. Ask for more `subsets`.",
                arguments=("subsets",),
            )
        rank = int(np.linalg.matrix_rank(members))
        if rank < members.shape[1] and not (options.ridge or options.shrinks):
            raise InputError(
                f"The subsets should tell {members.shape[1]} sources of `{target}` apart. Found that "
                f"{len(members)} different ones would be trained, of rank {rank}. Ask for more "
                "`subsets`, or pass `shrink` or `ridge`.",
                arguments=("subsets", "shrink", "ridge"),
            )

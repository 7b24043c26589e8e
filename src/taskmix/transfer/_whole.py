"""A study of transfer from its description to its lessons."""

from __future__ import annotations

from taskmix.engine import Auto, Executor
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
    does = executor or Auto()
    if not estimate:
        trained = train_trials(description, study, executor=does)
        return learn(trained, study, executor=does, options=options, limits=limits), None
    compared = train_trials(description, study, executor=does) if compare else None
    estimated = estimate_by_gradients(description, study, executor=does)
    lessons = learn(estimated, study, options=options, limits=limits)
    return lessons, None if compared is None else compare_estimates(estimated, compared, study)

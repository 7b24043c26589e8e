"""A study of transfer from its description to its lessons."""

from __future__ import annotations

from taskmix.engine import Auto, Executor
from taskmix.records import Document, Study
from taskmix.transfer._estimate import compare_estimates, estimate_by_gradients
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
) -> tuple[TransferLessons, Document | None]:
    """Trains the subsets and learns from them; `taskmix transfer` does this.

    With `estimate` outcomes come from the gradients of one model instead, and with `compare` the
    subsets are trained too: the second thing returned says how well the two agree.
    """
    does = executor or Auto()
    if not estimate:
        trained = train_trials(description, study, executor=does)
        return learn(trained, study, executor=does, options=options, limits=limits), None
    compared = train_trials(description, study, executor=does) if compare else None
    estimated = estimate_by_gradients(description, study, executor=does)
    lessons = learn(estimated, study, options=options, limits=limits)
    return lessons, None if compared is None else compare_estimates(estimated, compared, study)

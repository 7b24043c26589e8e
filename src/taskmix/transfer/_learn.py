"""What a study of transfer teaches: effects, verdicts, selections, a test of all that, and groups.

Nothing is trained here but the few prefixes that the third rule of selection measures.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from taskmix.engine import Auto, Executor
from taskmix.errors import InputError, OptionError
from taskmix.numerics import Interval, mean_interval
from taskmix.records import Study
from taskmix.transfer._extrapolation import (
    FEWEST_TO_TEST_ON,
    Extrapolation,
    extrapolate,
    hold_out_share,
)
from taskmix.transfer._grouping import GroupLimits, group_tasks
from taskmix.transfer._lessons import TargetLesson, TransferLessons
from taskmix.transfer._linear import LinearSurrogate, fit_linear_surrogate
from taskmix.transfer._matrix import TransferMatrix
from taskmix.transfer._outcomes import SubsetOutcomes
from taskmix.transfer._selection import PrefixChoice, best_prefixes, choose_prefix, select_below
from taskmix.transfer._shrunken import Gains, fit_shrunken_surrogates
from taskmix.transfer._study import TransferStudy, Trial
from taskmix.transfer._trials import TrialOutcomes, measure_trials, train_trials
from taskmix.transfer._verdicts import effect_of_company, judge_sources, select_unless_harmful

# Of a gain that was told: so little that no number of untold pairs outweighs one that was.
UNTOLD_COUNTS = 1e-6


@dataclass(frozen=True, kw_only=True)
class LearningOptions:
    """How lessons are drawn from outcomes."""

    ridge: float = 0.0  # above zero the linear surrogate works with fewer subsets than sources
    shrink: bool = False  # draw effects towards those of other pairs, as far as runs are few
    prior: Gains | None = None  # what a cheaper study found; effects are drawn towards it too
    level: float = 0.95
    false_discovery: bool = False  # hold the expected share of wrong verdicts at 1 − level
    smallest: float = 0.0  # changes of the outcome below this do not matter
    prefixes: int = 4  # selections that the third rule measures; 0: it is left out
    prefix_seeds: int = 3
    seed: int = 0  # of folds and resamples

    def __post_init__(self) -> None:
        if self.prefixes < 0 or self.prefix_seeds < 1:
            raise OptionError(
                "`prefixes` should be 0 or more, and `prefix_seeds` 1 or more. Found "
                f"{self.prefixes} and {self.prefix_seeds}."
            )
        if self.ridge and self.shrinks:
            raise OptionError(
                "`ridge` should be 0 where effects are shrunken, which finds by itself how far. Found "
                f"{self.ridge:g}. Leave it out."
            )

    @property
    def shrinks(self) -> bool:
        """Whether effects are drawn towards others; a cheaper study cannot do without it."""
        return self.shrink or self.prior is not None


def learn(
    measured: TrialOutcomes,
    study: Study,
    *,
    executor: Executor | None = None,  # needed to measure prefixes
    options: LearningOptions | None = None,
    limits: GroupLimits | None = None,
) -> TransferLessons:
    """Fits, tests, judges and selects for every target; groups where all tasks are targets.

    >>> from taskmix.engine import DigitsSource, Run
    >>> from taskmix.models import Perceptron
    >>> from taskmix.records import Study
    >>> run = Run(label="demo", source=DigitsSource(), architecture=Perceptron(), steps=24, seed=0)
    >>> study = TransferStudy(template=run, targets=("half",), design=SubsetDesign(size=1, alone=1))
    >>> trials = (*study.alone(), *study.subsets(7))  # alone, then with each of the seven others
    >>> losses = np.array([[len(one.tasks) - 1.5 * ("loop" in one.tasks)] * 8 for one in trials])
    >>> measured = TrialOutcomes(description=study, trials=trials, outcomes=losses, errors=(None,) * 8)
    >>> lessons = learn(measured, Study("study"))
    >>> [(one.target, one.selections[0].sources) for one in lessons.targets]  # by the paper's rule
    [('half', ('loop',))]
    """
    options = options or LearningOptions()
    description = measured.description
    names = tuple(name for name in description.tasks if name in description.targets)
    tables = [measured.table(target) for target in names]
    agreement = None
    if options.shrinks:
        shrunken = fit_shrunken_surrogates(tables, prior=options.prior)
        surrogates, agreement = list(shrunken.surrogates), shrunken.prior
    else:
        surrogates = [fit_linear_surrogate(table, ridge=options.ridge) for table in tables]
    choices: list[tuple[PrefixChoice, Interval] | None] = [None] * len(names)
    if executor is not None and options.prefixes:
        choices = list(_measure_prefixes(measured, surrogates, study, executor, options))
    lessons = tuple(
        _lesson(measured, table, surrogate, choice, options)
        for table, surrogate, choice in zip(tables, surrogates, choices, strict=True)
    )
    if not description.shared:
        return TransferLessons(
            measured=measured, targets=lessons, matrix=None, grouping=None, prior=agreement
        )
    matrix = TransferMatrix(
        tasks=names,
        surrogates=tuple(surrogates),
        failed=tuple(table.failed for table in tables),
    )
    grouping = group_tasks(_told_gains(matrix, lessons), limits)
    return TransferLessons(
        measured=measured, targets=lessons, matrix=matrix, grouping=grouping, prior=agreement
    )


def _told_gains(matrix: TransferMatrix, lessons: Sequence[TargetLesson]) -> NDArray[np.float64]:
    """[target, source], the gains that verdicts tell of; all others keep tasks apart, if barely.

    Groups by everything that was found would contradict the verdicts: a source that harms a target
    would join it for a gain of its own that is noise, and largest where outcomes are near zero. What is
    not told still orders the companions where limits force tasks together.
    """
    gains = np.nan_to_num(matrix.relative_gains)
    told = np.zeros(gains.shape, dtype=np.bool_)
    for target, lesson in enumerate(lessons):
        untold = ("negligible", "cannot tell")
        answers = [verdict.answer not in untold for verdict in lesson.verdicts]
        told[target] = np.insert(answers, target, False)
    largest = np.abs(gains).max(initial=0.0) or 1.0
    return np.where(told, gains, UNTOLD_COUNTS * (gains - largest))


def _lesson(
    measured: TrialOutcomes,
    table: SubsetOutcomes,
    surrogate: LinearSurrogate,
    choice: tuple[PrefixChoice, Interval] | None,
    options: LearningOptions,
) -> TargetLesson:
    judge = partial(
        judge_sources,
        level=options.level,
        false_discovery=options.false_discovery,
        smallest=options.smallest,
    )
    selections = [
        select_below(surrogate),
        select_unless_harmful(
            surrogate,
            level=options.level,
            false_discovery=options.false_discovery,
            smallest=options.smallest,
        ),
    ]
    test, held_out = _test_surrogate(measured, table.target, options)
    return TargetLesson(
        target=table.target,
        table=table,
        surrogate=surrogate,
        verdicts=judge(surrogate),
        relative=judge(surrogate.centred()),
        company=effect_of_company(surrogate, level=options.level),
        selections=(*selections, choice[0].selection) if choice else tuple(selections),
        prefixes=choice[0] if choice else None,
        measured=choice[1] if choice else None,
        test=test,
        held_out=held_out,
    )


def _test_surrogate(
    measured: TrialOutcomes, target: str, options: LearningOptions
) -> tuple[Extrapolation | None, NDArray[np.bool_]]:
    """The linear surrogate tried on held-out subsets, and which those are."""
    generator = np.random.default_rng(options.seed)
    try:
        everything, held = measured.with_held_out(target)
    except InputError:  # no held-out subset finished
        everything, held = measured.table(target), np.zeros(0, dtype=np.bool_)
    if held.sum() < FEWEST_TO_TEST_ON:
        everything = measured.table(target)
        held = hold_out_share(everything, 0.2, generator=generator)
    fit = partial(fit_linear_surrogate, ridge=options.ridge)
    subsets = everything.subsets[held]
    try:
        test = extrapolate(everything, fit, held, generator=generator, level=options.level)
    except InputError:  # too few subsets even for a line
        return None, subsets
    return test, subsets


def _measure_prefixes(
    measured: TrialOutcomes,
    surrogates: Sequence[LinearSurrogate],
    study: Study,
    executor: Executor,
    options: LearningOptions,
) -> list[tuple[PrefixChoice, Interval] | None]:
    """For every target the best of the few prefixes that its surrogate predicts best."""
    description = measured.description
    trials: list[Trial] = []
    places = []
    for surrogate in surrogates:
        prefixes = best_prefixes(surrogate, count=options.prefixes)
        rows = []
        for row in prefixes:
            sources = [surrogate.sources[place] for place in np.flatnonzero(row)]
            rows.append(range(len(trials), len(trials) + options.prefix_seeds))
            trials += description.prefix(surrogate.target, sources, options.prefix_seeds)
        places.append((prefixes, rows))
    found = measure_trials(description, trials, study, executor)
    choices: list[tuple[PrefixChoice, Interval] | None] = []
    for surrogate, (prefixes, rows) in zip(surrogates, places, strict=True):
        column = description.tasks.index(surrogate.target)
        values = np.array([found.outcomes[list(row), column] for row in rows])
        if not np.isfinite(values).any():  # the other rules need none of these runs
            choices.append(None)
            continue
        choice = choose_prefix(
            surrogate,
            prefixes,
            values,
            higher_is_better=description.higher_is_better[surrogate.target],
        )
        best = int(np.flatnonzero((prefixes == choice.selection.kept).all(axis=1))[0])
        finished = values[best][np.isfinite(values[best])]
        choices.append((choice, mean_interval(finished, options.level)))
    return choices


def study_transfer(
    description: TransferStudy,
    study: Study,
    *,
    executor: Executor | None = None,
    options: LearningOptions | None = None,
    limits: GroupLimits | None = None,
) -> TransferLessons:
    """Trains the subsets and learns from them; `taskmix transfer` does this.

    >>> from taskmix.engine import DigitsSource, Fleet, Run
    >>> from taskmix.models import Perceptron
    >>> from taskmix.records import Study
    >>> source = DigitsSource(tasks=("half", "loop", "prime", "parity"))
    >>> run = Run(label="demo", source=source, architecture=Perceptron(hidden=(4,)), steps=1, seed=0)
    >>> design = SubsetDesign(size=1, count=3, alone=1, held_out=3)
    >>> study = TransferStudy(template=run, targets=("half",), design=design)
    >>> how = {"executor": Fleet(workers=1), "options": LearningOptions(prefixes=0)}
    >>> lessons = study_transfer(study, Study("study"), **how)
    >>> lessons.targets[0].table.sizes  # of the subsets the surrogate was fitted to
    array([1, 1, 1])
    """
    _check_subsets(description, options or LearningOptions())
    does = executor or Auto()
    trained = train_trials(description, study, executor=does)
    return learn(trained, study, executor=does, options=options, limits=limits)


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

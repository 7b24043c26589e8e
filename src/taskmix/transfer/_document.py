"""`transfer.json`: what a study of transfer taught, beside its runs and readable without taskmix.

Gains are improvements of the outcome in its own unit, above zero where a source helps, whichever
way the outcome runs; outcomes themselves are as measured. `docs/transfer-reference.md` has every entry.
A number that is not defined is null in the file and NaN here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Self

import numpy as np

from taskmix.errors import InputError
from taskmix.numerics import Interval
from taskmix.records import LEFT_OUT_IF_NONE, read_document, write_document
from taskmix.transfer._design import SubsetDesign
from taskmix.transfer._extrapolation import Extrapolation
from taskmix.transfer._lessons import TargetLesson, TransferLessons
from taskmix.transfer._selection import Selection
from taskmix.transfer._shrunken import PriorAgreement
from taskmix.transfer._trials import TrialOutcomes
from taskmix.transfer._verdicts import Answer, Verdict

VERSION = 1
NAME = "transfer.json"


@dataclass(frozen=True)
class MeasuredValue:
    """A number with its interval."""

    value: float
    low: float
    high: float
    n: int

    @classmethod
    def of(cls, interval: Interval) -> Self:
        return cls(interval.mean, interval.low, interval.high, interval.n)


@dataclass(frozen=True, kw_only=True)
class UsedDesign(SubsetDesign):
    """The design of the subsets, with what a pilot found where a precision was asked for."""

    pilot: int | None = None  # subsets
    noise: float | None = None  # the deviation of one run


@dataclass(frozen=True)
class FailureRow:
    """A run that failed."""

    tasks: tuple[str, ...]
    seed: int
    error: str


@dataclass(frozen=True, kw_only=True)
class SourceRow:
    """What a source does to a target; gains are improvements."""

    source: str
    gain: float
    low: float
    high: float
    p_value: float
    verdict: Answer
    further_subsets: int | None = None  # that would tell; None where told, or not known
    further_single_runs: int | None = None
    relative_gain: float  # against the target's average source
    relative_low: float
    relative_high: float


@dataclass(frozen=True, kw_only=True)
class SelectionRow:
    """The sources that a rule would train a target with."""

    rule: str
    sources: tuple[str, ...]
    threshold: float | None = None  # on the gain, where the rule has one
    predicted: float  # the outcome with them


@dataclass(frozen=True, kw_only=True)
class HeldOutTest:
    """How well a surrogate predicts subsets that it was not fitted to."""

    spearman: MeasuredValue
    r_squared: MeasuredValue
    f1_positive: MeasuredValue  # of telling that a subset helps
    f1_negative: MeasuredValue
    positive_share: float  # of the subsets, that do help
    subsets: int


@dataclass(frozen=True, kw_only=True)
class HeldOutRow:
    """A held-out subset: what came of it, and what the linear surrogate predicted."""

    sources: tuple[str, ...]
    observed: float
    predicted: float


@dataclass(frozen=True, kw_only=True)
class TargetRow:
    """What was learned about one target."""

    target: str
    higher_is_better: bool
    alone: float  # its outcome alone: mean, runs, deviation over seeds
    alone_runs: int
    alone_deviation: float
    subsets: int  # different ones
    subset_runs: int
    noise: float  # the deviation of one run
    failed: int = 0  # runs
    lost: tuple[tuple[str, ...], ...] = ()  # subsets of which all runs failed
    sources: tuple[SourceRow, ...]
    selections: tuple[SelectionRow, ...] = ()
    chosen: tuple[str, ...]  # the sources to train with
    measured: MeasuredValue | None = None  # the outcome with them, where it was measured
    extrapolation: Mapping[str, HeldOutTest] = field(default_factory=dict)  # by surrogate
    held_out: tuple[HeldOutRow, ...] = ()
    # Gain by any other task, over the sources; not there where it does not differ from zero.
    company: MeasuredValue | None = field(default=None, metadata=LEFT_OUT_IF_NONE)
    # Whose choice the errors allow for; not there where they are of these dev rows alone.
    dev_rows: int | None = field(default=None, metadata=LEFT_OUT_IF_NONE)

    @property
    def best_first(self) -> list[SourceRow]:
        """The sources by their gains."""
        return sorted(self.sources, key=lambda row: -row.gain)


@dataclass(frozen=True, kw_only=True)
class TransferDocument:
    """What `transfer.json` says; `load_transfer` reads it and `save_transfer` writes it."""

    version: int = VERSION
    command: str
    outcome: str  # loss, margin or metric
    measure: str  # its name, such as accuracy
    split: str = "dev"
    budget: str
    steps: int
    estimate: str | None = None  # `gradients` in files of earlier versions, which are refused
    design: UsedDesign
    runs: int  # distinct ones
    failed: int = 0
    failures: tuple[FailureRow, ...] = ()
    tasks: tuple[str, ...]
    targets: tuple[TargetRow, ...]
    groups: tuple[tuple[str, ...], ...]  # to train together; none unless all tasks are targets
    # How far a cheaper study agreed, where effects were drawn towards it.
    prior: PriorAgreement | None = field(default=None, metadata=LEFT_OUT_IF_NONE)

    @property
    def gains(self) -> dict[str, dict[str, float]]:
        """By target and source: a prior for another study."""
        return {
            target.target: {row.source: row.gain for row in target.sources}
            for target in self.targets
        }


def save_transfer(folder: Path, document: TransferDocument) -> Path:
    """Writes `transfer.json` into a study, whole or not at all.

    >>> from pathlib import Path
    >>> document = TransferDocument(
    ...     command="taskmix transfer digits --all", outcome="loss", measure="loss",
    ...     budget="per-task", steps=100, design=UsedDesign(), runs=60,
    ...     tasks=("a", "b"), targets=(), groups=(("a", "b"),))
    >>> save_transfer(Path("study"), document).name, load_transfer(Path("study")).groups
    ('transfer.json', (('a', 'b'),))
    """
    return write_document(folder / NAME, document)


def load_transfer(folder: Path) -> TransferDocument | None:
    """What `save_transfer` wrote; None where there is none.

    >>> from pathlib import Path
    >>> load_transfer(Path("no-study")) is None
    True
    """
    path = folder / NAME
    document = read_document(path, TransferDocument, version=VERSION, command="taskmix transfer")
    if document is not None and document.estimate is not None:
        raise InputError(
            f"The outcomes in `{path}` should be those of trained subsets. Found estimates by "
            f"{document.estimate}, which are gone. Run the command again, without --estimate."
        )
    return document


def transfer_document(lessons: TransferLessons, *, command: str) -> TransferDocument:
    """The lessons in plain words and numbers.

    >>> from taskmix.engine import DigitsSource, Run
    >>> from taskmix.models import Perceptron
    >>> from taskmix.records import Study
    >>> run = Run(label="demo", source=DigitsSource(), architecture=Perceptron(), steps=24, seed=0)
    >>> study = TransferStudy(template=run, targets=("half",), design=SubsetDesign(size=1, alone=1))
    >>> trials, losses = (*study.alone(), *study.subsets(7)), np.ones((8, 8))  # all alike
    >>> measured = TrialOutcomes(description=study, trials=trials, outcomes=losses, errors=(None,) * 8)
    >>> document = transfer_document(learn(measured, Study("study")), command="taskmix transfer x")
    >>> document.targets[0].target, document.targets[0].alone, document.runs
    ('half', 1.0, 8)
    """
    measured = lessons.measured
    description = measured.description
    design = asdict(description.design)
    return TransferDocument(
        command=command,
        outcome=description.outcome,
        measure=_measure(lessons),
        budget=description.budget,
        steps=description.template.steps,
        design=UsedDesign(**design, pilot=measured.pilot, noise=measured.noise),
        runs=len({(trial.tasks, trial.run.seed) for trial in measured.trials}),
        failed=measured.failed,
        failures=_failures(measured),
        tasks=description.tasks,
        targets=tuple(
            _target(lesson, description.higher_is_better[lesson.target])
            for lesson in lessons.targets
        ),
        groups=lessons.groups,
        prior=lessons.prior,
    )


def _measure(lessons: TransferLessons) -> str:
    """What the outcome is called: the metric by its name where all targets have the same."""
    description = lessons.measured.description
    metrics = {task.metric for task in description.loaded if task.name in description.targets}
    return (
        metrics.pop()
        if description.outcome == "metric" and len(metrics) == 1
        else description.outcome
    )


def _failures(measured: TrialOutcomes) -> tuple[FailureRow, ...]:
    failed = {
        (trial.tasks, trial.run.seed): error
        for trial, error in zip(measured.trials, measured.errors, strict=True)
        if error is not None
    }
    return tuple(FailureRow(tasks, seed, error) for (tasks, seed), error in failed.items())


def _target(lesson: TargetLesson, higher_is_better: bool) -> TargetRow:
    sign = -1.0 if higher_is_better else 1.0  # losses inside, the outcome as measured outside
    table = lesson.table
    return TargetRow(
        target=lesson.target,
        higher_is_better=higher_is_better,
        alone=sign * table.anchor,
        alone_runs=table.anchor_runs,
        alone_deviation=math.sqrt(table.anchor_variance),
        subsets=len(table.losses),
        subset_runs=int(table.weights.sum()),
        noise=lesson.surrogate.deviation,
        failed=table.failed,
        lost=table.lost,
        sources=tuple(map(_source, lesson.verdicts, lesson.relative)),
        selections=tuple(_selection(selection, sign) for selection in lesson.selections),
        chosen=lesson.chosen.sources,
        measured=None if lesson.measured is None else MeasuredValue.of(lesson.measured),
        extrapolation={} if lesson.test is None else {"linear": _test(lesson.test)},
        held_out=_held_out(lesson, sign),
        company=None if lesson.company is None else _gain_of(lesson.company),
        dev_rows=lesson.surrogate.dev_rows or None,
    )


def _gain_of(effect: Interval) -> MeasuredValue:
    return MeasuredValue(-effect.mean, -effect.high, -effect.low, effect.n)


def _source(verdict: Verdict, relative: Verdict) -> SourceRow:
    return SourceRow(
        source=verdict.source,
        gain=-verdict.effect,
        low=-verdict.high,
        high=-verdict.low,
        p_value=verdict.p_value,
        verdict=verdict.answer,
        further_subsets=verdict.further_subsets,
        further_single_runs=verdict.further_single_runs,
        relative_gain=-relative.effect,
        relative_low=-relative.high,
        relative_high=-relative.low,
    )


def _selection(selection: Selection, sign: float) -> SelectionRow:
    return SelectionRow(
        rule=selection.rule,
        sources=selection.sources,
        threshold=selection.threshold,
        predicted=sign * selection.predicted,
    )


def _test(test: Extrapolation) -> HeldOutTest:
    return HeldOutTest(
        spearman=MeasuredValue.of(test.spearman),
        r_squared=MeasuredValue.of(test.r_squared),
        f1_positive=MeasuredValue.of(test.f1_positive),
        f1_negative=MeasuredValue.of(test.f1_negative),
        positive_share=test.positive_share,
        subsets=len(test.observed),
    )


def _held_out(lesson: TargetLesson, sign: float) -> tuple[HeldOutRow, ...]:
    if lesson.test is None:
        return ()
    sources = lesson.table.sources
    return tuple(
        HeldOutRow(
            sources=tuple(sources[place] for place in np.flatnonzero(row)),
            observed=sign * float(observed),
            predicted=sign * float(predicted),
        )
        for row, observed, predicted in zip(
            lesson.held_out, lesson.test.observed, lesson.test.predicted, strict=True
        )
    )

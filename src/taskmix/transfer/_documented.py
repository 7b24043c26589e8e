"""From lessons of transfer to the document that is written, printed and drawn."""

from __future__ import annotations

import math
from dataclasses import asdict, replace

import numpy as np

from taskmix.transfer._document import (
    FailureRow,
    HeldOutRow,
    HeldOutTest,
    MeasuredValue,
    SelectionRow,
    SourceRow,
    TargetRow,
    TransferDocument,
    UsedDesign,
)
from taskmix.transfer._estimate import EstimateComparison
from taskmix.transfer._judging import Extrapolation, Selection, Verdict
from taskmix.transfer._learning import TargetLesson, TransferLessons
from taskmix.transfer._measuring import TrialOutcomes


def transfer_document(
    lessons: TransferLessons, *, command: str, comparison: EstimateComparison | None = None
) -> TransferDocument:
    """The lessons in plain words and numbers, and how well estimates agree with training if known.

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
    document = TransferDocument(
        command=command,
        outcome=description.outcome,
        measure=_measure(lessons),
        budget=description.budget,
        steps=description.template.steps,
        estimate=measured.estimate,
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
        comparison=comparison,
        agreement=None if measured.agreement is None else dict(measured.agreement),
        prior=lessons.prior,
    )
    targets = tuple(
        _untold(row) if row.target in document.refused else row for row in document.targets
    )
    return replace(document, targets=targets)


def _untold(target: TargetRow) -> TargetRow:
    """A target whose sources the models of an estimate put in different orders."""
    sources = (
        replace(row, verdict="cannot tell", further_subsets=None, further_single_runs=None)
        for row in target.sources
    )
    return replace(target, sources=tuple(sources))


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
        extrapolation={}
        if lesson.test is None
        else {name: _test(test) for name, test in lesson.test.results.items()},
        held_out=_held_out(lesson, sign),
        surrogate=None if lesson.choice is None else lesson.choice.name,
        left_out_errors=None if lesson.choice is None else lesson.choice.errors,
    )


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
    test = lesson.test.results["linear"]
    sources = lesson.table.sources
    return tuple(
        HeldOutRow(
            sources=tuple(sources[place] for place in np.flatnonzero(row)),
            observed=sign * float(observed),
            predicted=sign * float(predicted),
        )
        for row, observed, predicted in zip(
            lesson.held_out, test.observed, test.predicted, strict=True
        )
    )

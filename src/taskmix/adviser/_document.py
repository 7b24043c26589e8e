"""The answer and all it rests on as a document, `advice.json`.

The report page is made of it and of the records, so `taskmix report STUDY` shows the same later.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from taskmix.adviser._advice import Advice
from taskmix.adviser._answer import Answer, plan_of
from taskmix.adviser._history import History
from taskmix.adviser._race import Standing
from taskmix.adviser._scores import mean_comparable
from taskmix.numerics import Interval, mean_interval
from taskmix.plans import (
    AdviceDocument,
    CandidateRow,
    ExpectedRow,
    FindingRow,
    LearnedRow,
    Outlook,
    Plan,
    PlanSummary,
    Weighted,
)
from taskmix.records import describe


def advice_document(
    advice: Advice,
    found: Answer,
    *,
    title: str,
    seconds: float,
    history: History,
    outlook: Outlook | None = None,  # None before the end
    commands: Mapping[str, str],  # what each is for, and the line to type
) -> AdviceDocument:
    """Everything in plain words and numbers, for `--json`, for the page and for programs."""
    return AdviceDocument(
        title=title,
        seconds=seconds,
        level=advice.options.level,
        lines=found.lines,
        chosen=found.chosen.name,
        plan=_summary(plan_of(advice, found)),
        targets=advice.targets,
        judged=advice.judged,
        unlearned=advice.unlearned,
        batches_of_a_run=advice.batches,
        length=advice.promised,
        batches_of_a_longer_run=advice.long_batches or None,
        learned=tuple(
            LearnedRow(
                task=each.task,
                answer=each.answer,
                best=each.best,
                guess=each.guess,
                words=each.words,
                rows_needed=each.rows_needed,
            )
            for each in advice.learned
        ),
        agreement=dict(advice.race.agreement),
        row_error=advice.row_error,
        settled=advice.race.is_settled and not advice.nothing_learned,
        batches=advice.budget.batches,
        batches_spent=round(advice.spent),
        budget_seconds=advice.options.budget.seconds,
        candidates=tuple(_candidate(advice, history, each) for each in advice.race.standings),
        milestones=tuple(history.milestones),
        dev_gain=found.gains,
        test_gain=found.confirmed,
        expected=tuple(
            ExpectedRow(**asdict(each), test=_observed(advice, found.chosen.name, each.task))
            for each in found.expected
        ),
        outlook=outlook,
        findings=tuple(
            FindingRow(kind=each.kind, tasks=each.tasks, words=each.words, warning=each.is_warning)
            for each in advice.findings
        ),
        notes=tuple(advice.notes),
        commands=dict(commands),
    )


def _summary(plan: Plan) -> PlanSummary:
    divisions = [part.division for part in plan.parts]
    methods = [each.method for each in divisions if isinstance(each, Weighted)]
    weighting: Any = describe(methods[0]) if methods else None
    return PlanSummary(
        tasks=plan.tasks,
        probabilities=tuple(plan.overall.values()),
        groups=tuple(part.tasks for part in plan.models),
        weighting=weighting,
    )


def _candidate(advice: Advice, history: History, standing: Standing) -> CandidateRow:
    name = standing.name
    entries = advice.entries.get(name, [])
    # A way that only a cheaper model has run is told by that one's runs.
    shown = entries or next(some[name] for some in advice.rungs.values() if name in some)
    longer = [
        mean_comparable(advice.tasks, entry.dev, advice.judged)
        for entry in advice.long.get(name, ())
    ]
    return CandidateRow(
        name=name,
        words=shown[0].candidate.words,
        seeds=standing.seeds,
        dev=standing.mean,
        behind=standing.behind,
        open=standing.is_open,
        out_after=history.out_after(name),
        batches=_mean([entry.batches for entry in entries]),
        cost=_mean([sum(run.cost for run in entry.runs) for entry in entries]),
        seconds=_mean([entry.seconds for entry in entries]),
        runs=tuple(folder for entry in entries for folder in entry.folders),
        chance=standing.chance,
        longer=_mean(longer),
    )


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if values else float("nan")


def _observed(advice: Advice, name: str, task: str) -> Interval | None:
    """The chosen candidate's test scores of a task, which nothing was chosen by."""
    scores = [entry.test[task] for entry in advice.entries[name] if task in entry.test]
    return mean_interval(scores, advice.options.level) if scores else None

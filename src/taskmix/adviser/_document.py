"""The answer and all it rests on as a document, `advice.json`.

The report page is made of it and of the records, so `taskmix report STUDY` shows the same later.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from taskmix.adviser._advice import Advice
from taskmix.adviser._answer import Answer, is_settled, plan_of
from taskmix.adviser._judge import Standing
from taskmix.adviser._scores import mean_comparable
from taskmix.numerics import Interval, mean_interval
from taskmix.plans import (
    AdviceDocument,
    BlendRow,
    CandidateRow,
    DeliveredRow,
    ExpectedRow,
    FindingRow,
    LearnedRow,
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
    commands: Mapping[str, str],  # what each is for, and the line to type
) -> AdviceDocument:
    """Everything in plain words and numbers, for `--json`, for the page and for programs."""
    race, budget = advice.race, advice.options.budget
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
        alike=() if race is None else race.alike,
        within=float("nan") if race is None else race.within,
        rung=advice.rung,
        row_error=float("nan") if race is None else race.row_error,
        settled=is_settled(advice),
        batches=budget.batches,
        batches_spent=round(advice.spent),
        budget_seconds=budget.seconds,
        candidates=() if race is None else tuple(_candidate(advice, s) for s in race.standings),
        delivered=_delivered(advice),
        dev_gain=found.gains,
        test_gain=found.confirmed,
        expected=tuple(
            ExpectedRow(**asdict(each), test=_observed(advice, found.chosen.name, each.task))
            for each in found.expected
        ),
        findings=tuple(
            FindingRow(kind=each.kind, tasks=each.tasks, words=each.words, warning=each.is_warning)
            for each in advice.findings
        ),
        notes=tuple(advice.notes),
        commands=dict(commands),
    )


def _delivered(advice: Advice) -> DeliveredRow | None:
    found = advice.delivered
    if found is None:
        return None
    names = found.names
    dev = {member.name: member.scores(advice.tasks, "dev") for member in advice.peers}
    return DeliveredRow(
        members=names,
        refitted=found.is_refitted,
        batches=found.batches,
        split=found.split,
        tasks=tuple(
            BlendRow(
                task=name,
                weights={
                    names[place]: weight
                    for place, weight in zip(blend.members, blend.weights, strict=True)
                },
                metric=advice.tasks[name].metric,
                delivered=found.scores.get(name, float("nan")),
                checked=found.checked.get(name, float("nan")),
            )
            for name, blend in found.blends.of_task.items()
        ),
        gains=dict(found.gains),
        plain=found.plain,
        peer=found.peer,
        peers={name: mean_comparable(advice.tasks, dev[name], advice.judged) for name in dev},
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


def _candidate(advice: Advice, standing: Standing) -> CandidateRow:
    name = standing.name
    entries = advice.entries[name]
    return CandidateRow(
        name=name,
        words=entries[0].candidate.words,
        seeds=standing.seeds,
        dev=standing.mean,
        behind=standing.behind,
        open=standing.is_open,
        batches=_mean([entry.batches for entry in entries]),
        cost=_mean([sum(run.cost for run in entry.runs) for entry in entries]),
        seconds=_mean([entry.seconds for entry in entries]),
        runs=tuple(folder for entry in entries for folder in entry.folders),
        chance=standing.chance,
    )


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if values else float("nan")


def _observed(advice: Advice, name: str, task: str) -> Interval | None:
    """The test score that came: of the delivered model, or the mean over seeds of the network."""
    found = advice.delivered
    if found is not None:
        # Of the model that was checked: for that one the dev rows were new.
        if found.split != "test" or task not in found.checked:
            return None
        return mean_interval([found.checked[task]], advice.options.level)
    scores = [entry.test[task] for entry in advice.entries[name] if task in entry.test]
    return mean_interval(scores, advice.options.level) if scores else None

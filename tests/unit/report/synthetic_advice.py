"""An `advice.json` whose truth is plain: the first label leads, the last is out early."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from taskmix.numerics import Interval
from taskmix.plans import (
    AdviceDocument,
    AdviceStage,
    CandidateRow,
    ComparisonDocument,
    ComparisonRow,
    Evaluation,
    ExpectedRow,
    FindingRow,
    FittedLaw,
    Length,
    Milestone,
    Outlook,
    PlanSummary,
)

TRAIN = "taskmix train digits --plan advice/plan.json --steps 400"


def advice_document(
    tasks: Sequence[str],
    labels: Sequence[str],
    *,
    runs: Mapping[str, Sequence[str]] | None = None,  # names of each label's runs
    words: str = "Task `which digit` has only 40 rows to train on.",
) -> AdviceDocument:
    last = len(labels) - 1
    same = "Two tasks have inputs in common."
    return AdviceDocument(
        title="Advice for digits",
        seconds=61.5,
        level=0.9,
        lines=(f"Train together: {', '.join(tasks)}.", "Draw them equally often."),
        chosen=labels[0],
        plan=PlanSummary(
            tasks=tuple(tasks),
            probabilities=(1 / len(tasks),) * len(tasks),
            groups=(tuple(tasks),),
        ),
        targets=tuple(tasks),
        judged=tuple(tasks),
        batches_of_a_run=400,
        batches=10_000,
        batches_spent=7_500,
        candidates=tuple(
            CandidateRow(
                name=label,
                words=f"what {label} does",
                seeds=3,
                dev=0.9 - 0.01 * place,
                behind=Interval(0.01 * place, 0.01 * place - 0.015, 0.01 * place + 0.015, 3, 0.9),
                open=place < last or not last,
                out_after=0 if place == last and last else None,
                batches=300.0,
                runs=tuple((runs or {}).get(label, ())),
            )
            for place, label in enumerate(labels)
        ),
        milestones=(
            _milestone("baselines", 2_000.0, labels),
            _milestone("transfer", 4_000.0, labels),
            _milestone("race", 6_000.0, labels),
            _milestone("race", 7_500.0, labels),
        ),
        dev_gain={"uniform": Interval(0.02, 0.01, 0.03, 3, 0.9)},
        test_gain={"uniform": Interval(0.015, -0.005, 0.035, 3, 0.9)},
        expected=tuple(
            ExpectedRow(
                task=task,
                metric="accuracy",
                value=0.9,
                low=0.85,
                high=0.95,
                test=Interval(0.91, 0.9, 0.92, 3, 0.9),
            )
            for task in tasks
        ),
        outlook=_outlook(labels[0]),
        findings=(
            FindingRow(kind="few rows", tasks=(tasks[0],), words=words, warning=True),
            FindingRow(kind="same inputs", tasks=tuple(tasks[:2]), words=same, warning=False),
        ),
        commands={"Train by the plan": TRAIN, "Make this page again": "taskmix report advice"},
    )


def comparison_document(promised: Sequence[ExpectedRow]) -> ComparisonDocument:
    """What training by the plan brought: the first task less than was promised."""
    length = Length(batches=400, batch_size=32)
    rows = tuple(
        ComparisonRow(
            task=row.task,
            metric=row.metric,
            split="test",
            expected=row.value,
            low=row.low,
            high=row.high,
            found=row.low - 0.02 if place == 0 else row.value - 0.01,
            seeds=2,
            inside=place > 0,
            better=False,
        )
        for place, row in enumerate(promised)
    )
    inside = f"{len(rows) - 1} of {len(rows)} tasks are inside their 90 % intervals"
    return ComparisonDocument(
        plan="advice/plan.json",
        level=0.9,
        promised=length,
        trained=length,
        rows=rows,
        lines=(
            f"{inside}; worse than promised: `{rows[0].task}`.",
            "So many outside may be chance.",
        ),
    )


def _milestone(stage: AdviceStage, spent: float, labels: Sequence[str]) -> Milestone:
    return Milestone(
        stage=stage,
        spent=spent,
        leader=labels[0],
        score=0.88 + spent / 1e6,
        seeds=2,
        open=tuple(labels[:-1]),
        out=tuple(labels[-1:]),
    )


def _outlook(candidate: str) -> Outlook:
    return Outlook(
        candidate=candidate,
        words="Twice the batches, 800, should change the mean dev score by +0.013.",
        evaluations=tuple(
            Evaluation(seed=seed, batches=batches, score=0.95 - 10 / batches + 0.01 * seed)
            for seed in (0, 1)
            for batches in (100.0, 200.0, 300.0, 400.0)
        ),
        law=FittedLaw(
            formula="0.95 - 10/batches",
            explained=0.9,
            batches=400.0,
            more=800.0,
            before=0.925,
            gain=Interval(0.0125, 0.01, 0.015, 2, 0.9),
            predicted=0.02,
            observed=0.024,
            curve=tuple((float(batches), 0.95 - 10 / batches) for batches in range(100, 801, 50)),
        ),
    )

"""An `advice.json` whose truth is plain: the first label leads, the last is out, a blend is given."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from taskmix.numerics import Interval
from taskmix.plans import (
    AdviceDocument,
    BlendRow,
    CandidateRow,
    ComparisonDocument,
    ComparisonRow,
    DeliveredRow,
    ExpectedRow,
    FindingRow,
    Length,
    PlanSummary,
)

WORDS = "words, a model a task"  # a shallow model
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
        lines=(
            f"The delivered model is 1.9 points (+1.1 to +2.7) above the best plain way ({labels[-1]}).",
            f"The model: a blend of network {labels[0]} and {WORDS}.",
            f"Train together: {', '.join(tasks)}.",
            "Draw them equally often.",
        ),
        chosen=labels[0],
        plan=PlanSummary(
            tasks=tuple(tasks),
            probabilities=(1 / len(tasks),) * len(tasks),
            groups=(tuple(tasks),),
        ),
        targets=tuple(tasks),
        judged=tuple(tasks),
        batches_of_a_run=400,
        alike=tuple(labels[:-1]),
        within=0.03,
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
                batches=300.0,
                runs=tuple((runs or {}).get(label, ())),
            )
            for place, label in enumerate(labels)
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
                test=Interval(0.91, math.nan, math.nan, 1, 0.9),
            )
            for task in tasks
        ),
        delivered=delivered_row(tasks, labels),
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


def delivered_row(tasks: Sequence[str], labels: Sequence[str]) -> DeliveredRow:
    """A network beside a shallow model; each task is a hundredth worse than the one before it."""
    network = f"network {labels[0]}"
    return DeliveredRow(
        members=(network, WORDS),
        refitted=True,
        batches=400,
        split="test",
        tasks=tuple(
            BlendRow(
                task=task,
                weights={network: 0.75, WORDS: 0.25},
                metric="accuracy",
                delivered=0.95 - 0.01 * place,
                checked=0.91,
            )
            for place, task in enumerate(tasks)
        ),
        gains={
            "plain": Interval(0.019, 0.011, 0.027, len(tasks), 0.9),
            "alone": Interval(0.034, 0.024, 0.044, len(tasks), 0.9),
            "peer": Interval(-0.001, -0.008, 0.006, len(tasks), 0.9),
        },
        plain=labels[-1],
        peer=WORDS,
        peers={WORDS: 0.875, "words, one model for all": 0.85},
    )

"""An `advice.json` whose truth is plain: the first label leads, the last is out early."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

TRAIN = "taskmix train digits --plan advice/plan.json --steps 400"


def advice_document(
    tasks: Sequence[str],
    labels: Sequence[str],
    *,
    runs: Mapping[str, Sequence[str]] | None = None,  # names of each label's runs
    law: bool = True,
    words: str = "Task `which digit` has only 40 rows to train on.",
) -> dict[str, Any]:
    last = len(labels) - 1
    gain = {"mean": 0.02, "low": 0.01, "high": 0.03, "n": 3, "level": 0.9}
    return {
        "version": 1,
        "title": "Advice for digits",
        "seconds": 61.5,
        "level": 0.9,
        "lines": [f"Train together: {', '.join(tasks)}.", "Draw them equally often."],
        "chosen": labels[0],
        "plan": {
            "tasks": list(tasks),
            "probabilities": [1 / len(tasks)] * len(tasks),
            "groups": [list(tasks)],
            "weighting": None,
        },
        "targets": list(tasks),
        "judged": list(tasks),
        "unlearned": [],
        "batches_of_a_run": 400,
        "batches": 10_000,
        "batches_spent": 7_500,
        "candidates": [
            {
                "name": label,
                "words": f"what {label} does",
                "seeds": 3,
                "dev": 0.9 - 0.01 * place,
                "behind": {
                    "mean": 0.01 * place,
                    "low": 0.01 * place - 0.015,
                    "high": 0.01 * place + 0.015,
                    "n": 3,
                    "level": 0.9,
                },
                "open": place < last or not last,
                "out_after": 0 if place == last and last else None,
                "batches": 300.0,
                "runs": list((runs or {}).get(label, ())),
            }
            for place, label in enumerate(labels)
        ],
        "milestones": [
            _milestone("baselines", 2_000.0, labels),
            _milestone("transfer", 4_000.0, labels),
            _milestone("race", 6_000.0, labels),
            _milestone("race", 7_500.0, labels),
        ],
        "dev_gain": {"uniform": gain},
        "test_gain": {"uniform": gain | {"mean": 0.015, "low": -0.005, "high": 0.035}},
        "expected": [
            {
                "task": task,
                "metric": "accuracy",
                "value": 0.9,
                "low": 0.85,
                "high": 0.95,
                "test": {"mean": 0.91, "low": 0.9, "high": 0.92, "n": 3, "level": 0.9},
            }
            for task in tasks
        ],
        "outlook": _outlook(labels[0], law),
        "findings": [
            {"kind": "few rows", "tasks": [tasks[0]], "words": words, "warning": True},
            {
                "kind": "same inputs",
                "tasks": list(tasks[:2]),
                "words": "Two tasks have inputs in common.",
                "warning": False,
            },
        ],
        "notes": [],
        "commands": {"Train by the plan": TRAIN, "Make this page again": "taskmix report advice"},
    }


def _milestone(stage: str, spent: float, labels: Sequence[str]) -> dict[str, Any]:
    return {
        "stage": stage,
        "spent": spent,
        "leader": labels[0],
        "score": 0.88 + spent / 1e6,
        "seeds": 2,
        "open": list(labels[:-1]),
        "out": list(labels[-1:]),
    }


def _outlook(candidate: str, law: bool) -> dict[str, Any]:
    evaluations = [
        {"seed": seed, "batches": batches, "score": 0.95 - 10 / batches + 0.01 * seed}
        for seed in (0, 1)
        for batches in (100.0, 200.0, 300.0, 400.0)
    ]
    return {
        "candidate": candidate,
        "words": "Twice the batches, 800, should change the mean dev score by +0.013.",
        "evaluations": evaluations,
        "law": {
            "formula": "0.95 - 10/batches",
            "explained": 0.9,
            "batches": 400.0,
            "more": 800.0,
            "before": 0.925,
            "gain": {"mean": 0.0125, "low": 0.01, "high": 0.015, "n": 2, "level": 0.9},
            "predicted": 0.02,
            "observed": 0.024,
            "curve": [[batches, 0.95 - 10 / batches] for batches in range(100, 801, 50)],
        }
        if law
        else None,
    }

"""The answer and all it rests on as a document, `advice.json`.

The report page is made of it and of the records, so `taskmix report STUDY` shows the same later.
Scores are dev scores unless they are said to be of test; means over tasks are on the scale of
`Race`: higher is better, and an error counts in deviations of its target, negative.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict

import numpy as np

from taskmix.adviser._adviser import Advice
from taskmix.adviser._answer import Answer, plan_of
from taskmix.adviser._history import History
from taskmix.adviser._outlook import Outlook
from taskmix.adviser._race import Standing
from taskmix.numerics import mean_interval
from taskmix.plans import ADVICE_VERSION, Weighted
from taskmix.records import Document, describe, without_nan


def advice_document(
    advice: Advice,
    found: Answer,
    *,
    title: str,
    seconds: float,
    history: History,
    outlook: Outlook | None = None,  # None before the end
    commands: Mapping[str, str],  # what each is for, and the line to type
) -> Document:
    """Everything as plain values, for `--json`, for the page and for programs."""
    plan = plan_of(advice, found)
    document: Document = {
        "version": ADVICE_VERSION,
        "title": title,
        "seconds": seconds,
        "level": advice.options.level,
        "lines": list(found.lines),
        "chosen": found.chosen.name,
        "plan": {
            "tasks": plan.tasks,
            "probabilities": list(plan.overall.values()),
            "groups": [part.tasks for part in plan.parts],
            "weighting": next(
                (
                    describe(part.division.method)
                    for part in plan.parts
                    if isinstance(part.division, Weighted)
                ),
                None,
            ),
        },
        "targets": advice.targets,
        "judged": advice.judged,
        "unlearned": advice.unlearned,
        "batches_of_a_run": advice.batches,
        "batches": advice.budget.batches,
        "batches_spent": round(advice.spent),
        "candidates": [_candidate(advice, history, each) for each in advice.race.standings],
        "milestones": [asdict(each) for each in history.milestones],
        "dev_gain": {name: asdict(gain) for name, gain in found.gains.items()},
        "test_gain": {name: asdict(gain) for name, gain in found.confirmed.items()},
        "expected": [
            {**asdict(each), "test": _observed(advice, found.chosen.name, each.task)}
            for each in found.expected
        ],
        "outlook": None if outlook is None else asdict(outlook),
        "findings": [
            {
                "kind": each.kind,
                "tasks": list(each.tasks),
                "words": each.words,
                "warning": each.is_warning,
            }
            for each in advice.findings
        ],
        "notes": list(advice.notes),
        "commands": dict(commands),
    }
    plain: Document = without_nan(document)
    return plain


def _candidate(advice: Advice, history: History, standing: Standing) -> Document:
    entries = advice.entries[standing.name]
    runs = [name for entry in entries for name in entry.folders]
    return {
        "name": standing.name,
        "words": entries[0].candidate.words,
        "seeds": standing.seeds,
        "dev": standing.mean,
        "behind": asdict(standing.behind),
        "open": standing.is_open,
        "out_after": history.out_after(standing.name),  # a place among the milestones
        "batches": float(np.mean([entry.batches for entry in entries])),  # until its best score
        "runs": runs,  # names of their folders
    }


def _observed(advice: Advice, name: str, task: str) -> Document | None:
    """The chosen candidate's test scores of a task, which nothing was chosen by."""
    scores = [entry.test[task] for entry in advice.entries[name] if task in entry.test]
    return asdict(mean_interval(scores, advice.options.level)) if scores else None

"""`advice.json`: the answer and all it rests on, beside the runs and readable without taskmix.

The report page is made of it and of the records, so `taskmix report STUDY` shows the same later.
Scores are dev scores unless they are said to be of test; means over tasks are on the scale of
`Race`: higher is better, and an error counts in deviations of its target, negative.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np

from taskmix.advise._adviser import Advice
from taskmix.advise._answer import Answer, plan_of
from taskmix.advise._history import History
from taskmix.advise._outlook import Outlook
from taskmix.advise._race import Standing
from taskmix.numerics import mean_interval
from taskmix.plans import Weighted
from taskmix.records import (
    Document,
    describe,
    must_have,
    read_document,
    without_nan,
    write_document,
)

VERSION = 1
NAME = "advice.json"


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
        "version": VERSION,
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
        "batches": advice.purse.batches,
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


def save_advice(folder: Path, document: Document) -> Path:
    """Writes `advice.json` into a study, whole or not at all."""
    return write_document(folder / NAME, document)


def load_advice(folder: Path) -> Document | None:
    """What `save_advice` wrote; None where there is none."""
    path = folder / NAME
    return read_document(path, version=VERSION, command="taskmix advise", check=_check)


def _check(document: Document) -> None:
    must_have(document, "title", "seconds", "level", "lines", "chosen", "judged", "batches")
    must_have(document, "batches_of_a_run", "batches_spent", "notes", "unlearned")
    must_have(document["plan"], "tasks", "probabilities", "groups", "weighting")
    _each(document["candidates"], "name", "words", "seeds", "dev", "open", "out_after", "runs")
    _each([each["behind"] for each in document["candidates"]], "mean", "low", "high", "n")
    _each(document["milestones"], "stage", "spent", "leader", "score", "seeds", "open", "out")
    _each(document["expected"], "task", "metric", "value", "low", "high", "test")
    _each(document["findings"], "tasks", "words", "warning")
    for gains in (document["dev_gain"], document["test_gain"]):
        _each(list(gains.values()), "mean", "low", "high", "n")
    if document["outlook"] is not None:
        must_have(document["outlook"], "words", "evaluations", "law")
    for words in ("lines", "judged", "unlearned", "notes"):
        "".join(document[words])
    for pair in document["commands"].items():
        "".join(pair)


def _each(parts: Sequence[Document], *names: str) -> None:
    for part in parts:
        must_have(part, *names)

"""`transfer.json`: what a study of transfer taught, beside its runs and readable without taskmix.

Gains are improvements of the outcome in its own unit, above zero where a source helps, whichever
way the outcome runs; outcomes themselves are as measured. `docs/transfer-reference.md` has every entry.
"""

from __future__ import annotations

import math
from dataclasses import asdict
from pathlib import Path

import numpy as np

from taskmix.numerics import Interval
from taskmix.records import Document, must_have, read_document, without_nan, write_document
from taskmix.transfer._judging import Extrapolation, Selection, Verdict
from taskmix.transfer._learning import TargetLesson, TransferLessons
from taskmix.transfer._measuring import TrialOutcomes

VERSION = 1
NAME = "transfer.json"


def transfer_document(
    lessons: TransferLessons, *, command: str, comparison: Document | None = None
) -> Document:
    """The lessons as plain values, and how well estimates agree with training where that is known.

    >>> from pathlib import Path
    >>> from taskmix.engine import DigitsSource, Run
    >>> from taskmix.models import Perceptron
    >>> from taskmix.records import Study
    >>> run = Run(label="demo", source=DigitsSource(), architecture=Perceptron(), steps=24, seed=0)
    >>> study = TransferStudy(template=run, targets=("half",), design=SubsetDesign(size=1, alone=1))
    >>> trials, losses = (*study.alone(), *study.subsets(7)), np.ones((8, 8))  # all alike
    >>> measured = TrialOutcomes(description=study, trials=trials, outcomes=losses, errors=(None,) * 8)
    >>> document = transfer_document(learn(measured, Study("study")), command="taskmix transfer digits")
    >>> "taskmix transfer digits" in save_transfer(Path("study"), document).read_text()
    True
    """
    measured = lessons.measured
    description = measured.description
    design = description.design
    document: Document = {
        "version": VERSION,
        "command": command,
        "outcome": description.outcome,
        "measure": _measure(lessons),
        "split": "dev",
        "budget": description.budget,
        "steps": description.template.steps,
        "estimate": measured.estimate,
        "design": asdict(design) | {"pilot": measured.pilot, "noise": measured.noise},
        "runs": len({(trial.tasks, trial.run.seed) for trial in measured.trials}),
        "failed": measured.failed,
        "failures": _failures(measured),
        "tasks": list(description.tasks),
        "targets": [_target(lesson, description.higher_is_better) for lesson in lessons.targets],
        "groups": [list(group) for group in lessons.groups],
    }
    if comparison is not None:
        document["comparison"] = comparison
    plain: Document = without_nan(document)
    return plain


def _measure(lessons: TransferLessons) -> str:
    """What the outcome is called: the metric by its name where all targets have the same."""
    description = lessons.measured.description
    metrics = {task.metric for task in description.loaded if task.name in description.targets}
    return (
        metrics.pop()
        if description.outcome == "metric" and len(metrics) == 1
        else description.outcome
    )


def save_transfer(folder: Path, document: Document) -> Path:
    """Writes `transfer.json` into a study, whole or not at all.

    >>> from pathlib import Path
    >>> from taskmix.engine import DigitsSource, Run
    >>> from taskmix.models import Perceptron
    >>> from taskmix.records import Study
    >>> run = Run(label="demo", source=DigitsSource(), architecture=Perceptron(), steps=24, seed=0)
    >>> study = TransferStudy(template=run, targets=("half",), design=SubsetDesign(size=1, alone=1))
    >>> trials, losses = (*study.alone(), *study.subsets(7)), np.ones((8, 8))  # all alike
    >>> measured = TrialOutcomes(description=study, trials=trials, outcomes=losses, errors=(None,) * 8)
    >>> document = transfer_document(learn(measured, Study("study")), command="taskmix transfer x")
    >>> save_transfer(Path("study"), document).name
    'transfer.json'
    """
    return write_document(folder / NAME, document)


def load_transfer(folder: Path) -> Document | None:
    """What `save_transfer` wrote; None where there is none.

    >>> from pathlib import Path
    >>> print(load_transfer(Path("study")))  # no study of transfer was saved there
    None
    """
    path = folder / NAME
    return read_document(path, version=VERSION, command="taskmix transfer", check=_check)


def _check(document: Document) -> None:
    must_have(document, "tasks", "groups", "measure", "estimate")
    for target in document["targets"]:
        must_have(target, "target", "alone", "subsets", "subset_runs", "chosen")
        must_have(target, "extrapolation", "held_out")
        for source in target["sources"]:
            must_have(source, "source", "gain", "low", "high", "verdict", "further_subsets")


def _failures(measured: TrialOutcomes) -> list[Document]:
    failed = {
        (trial.tasks, trial.run.seed): error
        for trial, error in zip(measured.trials, measured.errors, strict=True)
        if error is not None
    }
    return [
        {"tasks": list(tasks), "seed": seed, "error": error}
        for (tasks, seed), error in failed.items()
    ]


def _target(lesson: TargetLesson, higher_is_better: dict[str, bool]) -> Document:
    higher = higher_is_better[lesson.target]
    sign = -1.0 if higher else 1.0  # losses inside, the outcome as measured outside
    table = lesson.table
    return {
        "target": lesson.target,
        "higher_is_better": higher,
        "alone": sign * table.anchor,
        "alone_runs": table.anchor_runs,
        "alone_deviation": math.sqrt(table.anchor_variance),
        "subsets": len(table.losses),
        "subset_runs": int(table.weights.sum()),
        "noise": lesson.surrogate.deviation,
        "failed": table.failed,
        "lost": [list(names) for names in table.lost],
        "sources": [
            _source(verdict, relative)
            for verdict, relative in zip(lesson.verdicts, lesson.relative, strict=True)
        ],
        "selections": [_selection(selection, sign) for selection in lesson.selections],
        "chosen": list(lesson.chosen.sources),
        "measured": None if lesson.measured is None else _interval(lesson.measured),
        "extrapolation": {}
        if lesson.test is None
        else {name: _test(test) for name, test in lesson.test.results.items()},
        "held_out": _held_out(lesson, sign),
    }


def _source(verdict: Verdict, relative: Verdict) -> Document:
    return {
        "source": verdict.source,
        "gain": -verdict.effect,
        "low": -verdict.high,
        "high": -verdict.low,
        "p_value": verdict.p_value,
        "verdict": verdict.answer,
        "further_subsets": verdict.further_subsets,
        "further_single_runs": verdict.further_single_runs,
        # The same relative to the target's average source.
        "relative_gain": -relative.effect,
        "relative_low": -relative.high,
        "relative_high": -relative.low,
    }


def _selection(selection: Selection, sign: float) -> Document:
    return {
        "rule": selection.rule,
        "sources": list(selection.sources),
        "threshold": selection.threshold,
        "predicted": sign * selection.predicted,
    }


def _test(test: Extrapolation) -> Document:
    return {
        "spearman": _interval(test.spearman),
        "r_squared": _interval(test.r_squared),
        "f1_positive": _interval(test.f1_positive),
        "f1_negative": _interval(test.f1_negative),
        "positive_share": test.positive_share,
        "subsets": len(test.observed),
    }


def _held_out(lesson: TargetLesson, sign: float) -> list[Document]:
    if lesson.test is None:
        return []
    test = lesson.test.results["linear"]
    sources = lesson.table.sources
    return [
        {
            "sources": [sources[place] for place in np.flatnonzero(row)],
            "observed": sign * float(observed),
            "predicted": sign * float(predicted),
        }
        for row, observed, predicted in zip(
            lesson.held_out, test.observed, test.predicted, strict=True
        )
    ]


def _interval(interval: Interval) -> Document:
    return {"value": interval.mean, "low": interval.low, "high": interval.high, "n": interval.n}

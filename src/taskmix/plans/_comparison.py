"""What a plan promised beside what came of training by it.

A plan's interval is for one score of one new run, so it should hold the score of a run in nine cases
of ten, if the plan says 90 %. The runs of several seeds are compared by their mean.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from taskmix.engine import Run
from taskmix.files import check_output, has_keys
from taskmix.plans._plan import Expected, Length, Plan
from taskmix.plans._script import settings_of
from taskmix.records import RunSummary, read_document, write_document
from taskmix.tasks import find_metric

COMPARISON_VERSION = 1
NAME = "comparison.json"
LEVEL = 0.9  # of a plan that does not say
UNLIKELY = 0.05  # so few intervals that hold, by chance
_MOST_NAMED = 4


@dataclass(frozen=True, kw_only=True)
class ComparisonRow:
    """One task: the score that was promised, and the one that came."""

    task: str
    metric: str
    split: str  # that the score is of: test, or dev where a task has no test rows
    expected: float
    low: float
    high: float
    found: float | None  # the mean over seeds; None where the metric is not defined
    seeds: int
    inside: bool  # whether it is in the interval
    better: bool  # whether it is better than was promised


@dataclass(frozen=True, kw_only=True)
class ComparisonDocument:
    """What `comparison.json` says; `load_comparison` reads it and `save_comparison` writes it."""

    version: int = COMPARISON_VERSION
    plan: str  # its file
    level: float  # of the intervals
    promised: Length | None
    trained: Length
    rows: tuple[ComparisonRow, ...]
    differences: tuple[str, ...] = ()  # between the training promised for and this one, in words
    lines: tuple[str, ...]  # what came of it, and what to make of that


def compare_with_promise(
    plan: Plan,
    path: Path | str,  # of the plan
    template: Run,  # that the plan's runs were made from
    summaries: Sequence[RunSummary | None],  # [seed, part], as `plan.runs` has them
) -> ComparisonDocument | None:
    """The promised scores beside those of finished runs; None where nothing was promised or came.

    >>> from taskmix.engine import DigitsSource, Run
    >>> from taskmix.models import Perceptron
    >>> from taskmix.plans import Part, Shares
    >>> run = Run(label="", source=DigitsSource(), architecture=Perceptron(), steps=9, seed=0)
    >>> part = Part(tasks=("parity",), scored=("parity",), share=1.0, division=Shares.equal(1))
    >>> compare_with_promise(Plan(parts=(part,)), "plan.json", run, [None]) is None
    True
    """
    scores = _scores(plan, summaries)
    rows = tuple(
        _row(expected, scores[expected.task])
        for expected in plan.expected
        if expected.task in scores
    )
    if not rows:
        return None
    said = plan.evidence.get("level")
    level = said if isinstance(said, float) and 0 < said < 1 else LEVEL
    differences = tuple(_differences(plan, template))
    return ComparisonDocument(
        plan=str(path),
        level=level,
        promised=plan.length,
        trained=Length(batches=template.steps, batch_size=template.batch_size),
        rows=rows,
        differences=differences,
        lines=tuple(_lines(rows, level, differences)),
    )


def check_comparison_path(folder: Path) -> None:
    """Raises where a study has a file of somebody else's in that place, before any work is done.

    >>> from pathlib import Path
    >>> check_comparison_path(Path("study"))
    """
    check_output(
        folder / NAME, is_ours=has_keys("version", "plan", "promised"), what="the comparison"
    )


def save_comparison(folder: Path, document: ComparisonDocument) -> Path:
    """Writes `comparison.json` into a study, whole or not at all.

    >>> from pathlib import Path
    >>> length = Length(batches=9, batch_size=32)
    >>> document = ComparisonDocument(
    ...     plan="plan.json", level=0.9, promised=length, trained=length, rows=(), lines=())
    >>> save_comparison(Path("study"), document).name, load_comparison(Path("study")) == document
    ('comparison.json', True)
    """
    return write_document(folder / NAME, document)


def load_comparison(folder: Path) -> ComparisonDocument | None:
    """What `save_comparison` wrote; None where there is none.

    >>> from pathlib import Path
    >>> load_comparison(Path("no-study")) is None
    True
    """
    return read_document(
        folder / NAME,
        ComparisonDocument,
        version=COMPARISON_VERSION,
        command="taskmix train --plan",
    )


def _scores(
    plan: Plan, summaries: Sequence[RunSummary | None]
) -> dict[str, list[dict[str, float]]]:
    """For each task, of each finished run that is for it: split to value of its metric."""
    found: dict[str, list[dict[str, float]]] = {}
    for place, summary in enumerate(summaries):
        if summary is None or summary.status != "finished":
            continue
        for name in plan.parts[place % len(plan.parts)].scored:
            values = {
                score.split: score.value
                for score in summary.scores
                if score.task == name and score.metric != "loss"
            }
            if values:
                found.setdefault(name, []).append(values)
    return found


def _row(expected: Expected, scores: Sequence[Mapping[str, float]]) -> ComparisonRow:
    split = "test" if all("test" in each for each in scores) else "dev"
    values = [each[split] for each in scores if split in each]
    mean = float(np.mean(values)) if values else math.nan
    return ComparisonRow(
        task=expected.task,
        metric=expected.metric,
        split=split,
        expected=expected.value,
        low=expected.low,
        high=expected.high,
        found=None if math.isnan(mean) else mean,
        seeds=len(values),
        inside=expected.low <= mean <= expected.high,
        better=mean > expected.value
        if find_metric(expected.metric).higher_is_better
        else mean < expected.value,
    )


def _differences(plan: Plan, run: Run) -> Iterator[str]:
    """How the training differs from the one that scores were promised for."""
    length = plan.length
    if length is not None and length.batches != run.steps:
        more = run.steps > length.batches
        yield (
            f"it was trained for {run.steps:,} batches, {'more' if more else 'fewer'} than the "
            f"{length.batches:,} of the promise"
        )
    if length is not None and length.batch_size != run.batch_size:
        yield f"batches had {run.batch_size} rows, not {length.batch_size}"
    promised = plan.evidence.get("settings")
    if isinstance(promised, Mapping):
        mine = settings_of(run)
        if promised.get("tuning") != mine["tuning"]:  # which changes all the rest
            promised, mine = ({"tuning": each.get("tuning")} for each in (promised, mine))
        yield from _changed(promised, mine)


def _changed(
    promised: Mapping[str, Any], found: Mapping[str, Any], place: str = ""
) -> Iterator[str]:
    if promised.get("kind") != found.get("kind"):
        yield f"the {place or 'setting'} was {found.get('kind')}, not {promised.get('kind')}"
        return
    for key in sorted({*promised, *found}):
        mine, theirs = found.get(key), promised.get(key)
        if isinstance(mine, Mapping) and isinstance(theirs, Mapping):
            yield from _changed(theirs, mine, _PLACES.get(key, key))
        elif mine != theirs:
            yield f"the {_PLACES.get(key, f'`{key}`')} was {mine}, not {theirs}"


_PLACES = {
    "architecture": "model",
    "optimization": "optimiser",
    "optimizer": "optimiser",
    "learning_rate": "learning rate",
    "tune": "tuning",
    "tuning": "tuning",
}


def _lines(
    rows: Sequence[ComparisonRow], level: float, differences: Sequence[str]
) -> Iterator[str]:
    inside, percent = sum(row.inside for row in rows), f"{100 * level:.0f} %"
    if len(rows) == 1:
        where = "inside" if inside else "outside"
        yield f"The score of `{rows[0].task}` is {where} its {percent} interval."
    else:
        worse = [row.task for row in rows if not row.inside and not row.better]
        better = [row.task for row in rows if not row.inside and row.better]
        parts = [f"{inside} of {len(rows)} tasks are inside their {percent} intervals"]
        parts += [f"worse than promised: {_named(worse)}"] if worse else []
        parts += [f"better than promised: {_named(better)}"] if better else []
        yield "; ".join(parts) + "."
    if differences:
        yield (
            f"The promise was for another training: {'; '.join(differences)}. So this says little "
            "about the promise."
        )
    elif inside < len(rows) and _by_chance(inside, len(rows), level) < UNLIKELY:
        yield (
            f"A sound promise holds for about {level * len(rows):.0f} of {len(rows)}, so this one was "
            "too sure of itself. More seeds (--seeds 3) show by how much; `taskmix advise` with a "
            "larger budget promises better."
        )
    elif inside < len(rows):
        yield "So many outside may be chance."


def _by_chance(inside: int, count: int, level: float) -> float:
    """How probable it is that so few intervals hold, if each does by itself as often as it says."""
    return sum(
        math.comb(count, held) * level**held * (1 - level) ** (count - held)
        for held in range(inside + 1)
    )


def _named(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMED
    shown = ", ".join(f"`{name}`" for name in names[:_MOST_NAMED])
    return f"{shown} and {more} more" if more > 0 else shown

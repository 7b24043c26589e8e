"""A record as the events it was written from, for listeners that come later.

Runs that trained in other processes, or together as a fleet, are told of that way.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any

import numpy as np

from taskmix.records import RunFolder
from taskmix.training import EndEvent, EvaluationEvent, Event, Score, StepEvent


def events_of(folder: RunFolder) -> Iterator[Event]:
    """Steps and evaluations in order, and the end where the run is finished; no checkpoints.

    >>> from taskmix.models import Perceptron
    >>> from taskmix.records import Study
    >>> run = Run(label="demo", source=DigitsSource(), architecture=Perceptron(), steps=2, seed=0)
    >>> study = Study("study")
    >>> _ = Here(workers=1).run([run], study)
    >>> [(type(event).__name__, event.step) for event in events_of(run.folder(study))]
    [('StepEvent', 1), ('StepEvent', 2), ('EvaluationEvent', 2), ('EndEvent', 2)]
    """
    summary = folder.summary()
    if summary is None:
        return
    evaluations = {
        step: tuple(
            Score(row["task"], row["split"], row["metric"], _number(row["value"])) for row in rows
        )
        for step, rows in groupby(folder.scores().to_pylist(), key=lambda row: row["step"])
    }
    best = -np.inf
    places = {name: place for place, name in enumerate(summary.task_names)}
    for step, rows in groupby(_rows(folder), key=lambda row: row["step"]):
        yield _step(list(rows), places)
        if step in evaluations:
            scores = evaluations[step]
            known = [s.value for s in scores if s.metric != "loss" and s.value == s.value]
            mean = float(np.mean(known)) if known else float("nan")
            yield EvaluationEvent(step=step, scores=scores, mean=mean, best=mean > best)
            best = max(best, mean) if mean == mean else best
    if summary.status == "finished":
        yield EndEvent(
            step=summary.step,
            best_step=summary.best_step or summary.step,
            stopped_early=summary.step < summary.steps,
            scores=tuple(Score(*score) for score in summary.scores),
        )


def _rows(folder: RunFolder) -> Iterator[dict[str, Any]]:
    for batch in folder.iter_step_batches():
        yield from batch.to_pylist()


def _step(rows: list[dict[str, Any]], places: dict[str, int]) -> StepEvent:
    first = rows[0]
    weights = tuple(row["weight"] for row in rows)
    given = first["probabilities"]
    return StepEvent(
        step=first["step"],
        tasks=tuple(places[row["task"]] for row in rows),
        losses=tuple(_number(row["loss"]) for row in rows),
        examples=tuple(row["examples"] for row in rows),
        seconds=sum(row["seconds"] for row in rows),
        probability=first["probability"],
        probabilities=None if given is None else np.array(given),
        weights=None if weights[0] is None else weights,
        reward=first["reward"],
        loss_after=first["loss_after"],
    )


def _number(value: float | None) -> float:
    return float("nan") if value is None else value

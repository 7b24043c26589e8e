"""A run that is made and not trained: the models of other runs, merged into one.

All of them began with the same parameters, those of one pretrained model under one seed, and each task
keeps the head it was trained with. How far the shared parameters move is chosen on the dev rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from taskmix.engine._run import Listener, Run, best_of_run, build, record_event, score_row
from taskmix.errors import InputError, RunError
from taskmix.models import (
    Merge,
    merge_states,
    target_scale,
    task_vectors,
    tuning_of,
)
from taskmix.records import RecordWriter, Study
from taskmix.tasks import EncodedTasks
from taskmix.training import (
    EndEvent,
    EvaluationEvent,
    Score,
    evaluate,
    mean_score,
    task_loss,
)

SHARED, HEADS = "encoder.", "heads."  # what the names of a model's parameters begin with


@dataclass(frozen=True)
class _Choice:
    """Where a merged model lies, and how well it does there."""

    scale: float
    multiples: tuple[float, ...]  # of each source's vector
    mean: float  # dev score over tasks
    state: dict[str, Tensor]


def check_mergeable_sources(run: Run) -> None:
    """Raises where the models of a run's sources cannot be merged."""
    if tuning_of(run.architecture) is None:
        raise InputError(
            "Models should begin as one pretrained model to be merged. Found "
            f"{type(run.architecture).__name__}. Give `model` the folder or the name of one."
        )
    served = [name for source in run.sources for name in source.load().names]
    if sorted(served) != sorted(run.load().names) or len(run.sources) < 2:
        raise InputError(
            "Models that are merged should be two or more, each for tasks of its own. Found models for "
            f"{', '.join(served) or 'none'}."
        )
    for source in run.sources:
        if source.seed != run.seed or source.architecture != run.architecture:
            raise InputError(
                "Models that are merged should begin alike, with one architecture and one seed. Found "
                f"seeds {source.seed} and {run.seed}, or other options. Train them with the same."
            )


def merge_into(
    writer: RecordWriter,
    run: Run,
    study: Study,
    listener: Listener | None,
    should_stop: Callable[[], bool] | None,
) -> bool:
    """Merges, chooses on dev and writes the record; False where it was stopped before the end."""
    check_mergeable_sources(run)
    assert run.merge is not None
    merger = _Merger(run, study)
    best: _Choice | None = None
    for choice in merger.choices(run.merge):
        if best is None or choice.mean > best.mean or best.mean != best.mean:
            best = choice
            merger.best = choice
        if should_stop is not None and should_stop():
            writer.stop()
            return False
    assert best is not None
    scores = merger.final_scores(best)
    dev = tuple(score for score in scores if score.split == "dev")
    end = EndEvent(step=run.steps, best_step=merger.best_step, stopped_early=False, scores=scores)
    evaluation = EvaluationEvent(step=run.steps, scores=dev, mean=best.mean, best=True)
    record_event(writer, evaluation)
    writer.finish(
        scores=[score_row(score) for score in scores],
        best_step=merger.best_step,
        step=run.steps,
        best=best.state,
    )
    writer.notes.append(_told(run, best))
    if listener is not None:
        listener(evaluation)
        listener(end)
    return True


class _Merger:
    """The models of a run's sources, and the merged one at whichever place is tried."""

    def __init__(self, run: Run, study: Study) -> None:
        self._run = run
        self._model, tasks = build(run)
        self._tasks: EncodedTasks = tasks.to(next(self._model.parameters()).device)
        self._deviations = {task.name: target_scale(tasks, task)[1] for task in tasks}
        self._losses = [task_loss(task, self._deviations[task.name]) for task in self._tasks]
        first = self._model.state_dict()
        self._start = {
            name: value.clone() for name, value in first.items() if name.startswith(SHARED)
        }
        self._heads: dict[str, Tensor] = {}
        ends = []
        self.best_step = 0
        for source in run.sources:
            summary = source.folder(study).summary()
            if summary is None or summary.status != "finished":
                names = ", ".join(source.load().names)
                found = "missing" if summary is None else summary.status
                raise RunError(
                    f"The models to merge should be trained. Found that of {names} {found}. Train it "
                    "first."
                )
            self.best_step += summary.best_step or summary.step
            ends.append(self._take(source, best_of_run(source, study)))
        self._vectors = task_vectors(self._start, ends)
        self.best: _Choice | None = None

    def _take(self, source: Run, state: dict[str, Tensor]) -> dict[str, Tensor]:
        """The shared parameters of a source; its heads get their places in the merged model."""
        names = self._run.load().names
        for place, task in enumerate(source.load().names):
            old, new = f"{HEADS}{place}.", f"{HEADS}{names.index(task)}."
            self._heads |= {
                new + name.removeprefix(old): value
                for name, value in state.items()
                if name.startswith(old)
            }
        device = next(self._model.parameters()).device
        return {name: value.to(device) for name, value in state.items() if name.startswith(SHARED)}

    def choices(self, merge: Merge) -> Iterator[_Choice]:
        """Every place that is tried; who reads them says in `best` which is the best so far."""
        alike = (1.0,) * len(self._vectors)
        for scale in merge.method.scales:
            yield self._try(merge, scale, alike)
        for place in range(len(self._vectors)):
            for multiple in merge.multiples:
                assert self.best is not None
                changed = list(self.best.multiples)
                changed[place] = multiple
                yield self._try(merge, self.best.scale, tuple(changed))

    def _try(self, merge: Merge, scale: float, multiples: tuple[float, ...]) -> _Choice:
        shared = merge_states(
            self._start,
            self._vectors,
            merge.method,
            scale=scale,
            multiples=multiples,
        )
        state = {**shared, **self._heads}
        self._model.load_state_dict(state)
        mean = mean_score(self._scores("dev"), self._deviations)
        return _Choice(scale, multiples, mean, {name: value.cpu() for name, value in state.items()})

    def final_scores(self, choice: _Choice) -> tuple[Score, ...]:
        """On dev and test."""
        self._model.load_state_dict(choice.state)
        return tuple(score for split in ("dev", "test") for score in self._scores(split))

    def _scores(self, split: str) -> tuple[Score, ...]:
        precision: Any = getattr(torch, self._run.precision)
        return evaluate(self._model, self._tasks, split, losses=self._losses, precision=precision)


def _told(run: Run, choice: _Choice) -> str:
    method = type(run.merge.method).__name__ if run.merge is not None else ""
    counted = ""
    if len(set(choice.multiples)) > 1:
        names = ["+".join(source.load().names) for source in run.sources]
        pairs = zip(names, choice.multiples, strict=True)
        counted = ", counting " + ", ".join(f"{name} {times:g} times" for name, times in pairs)
    return f"{len(run.sources)} models merged by {method} at a scale of {choice.scale:g}{counted}."

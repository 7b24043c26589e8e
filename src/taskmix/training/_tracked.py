"""What of an event is worth a curve: one name and one value at a step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from taskmix.training._events import EndEvent, EvaluationEvent, Event, StepEvent

Point = tuple[str, float, int]  # name, value, step


def points_of(event: Event, tasks: Sequence[str]) -> Iterator[Point]:
    """Losses, weights and probabilities of each task, the reward, and scores; NaN is left out."""
    for name, value, step in _points(event, tasks):
        if value == value:
            yield name, value, step


def _points(event: Event, tasks: Sequence[str]) -> Iterator[Point]:
    if isinstance(event, StepEvent):
        for place, task in enumerate(event.tasks):
            yield f"loss/{tasks[task]}", event.losses[place], event.step
            if event.weights is not None:
                yield f"weight/{tasks[task]}", event.weights[place], event.step
        if event.probabilities is not None:
            for name, share in zip(tasks, event.probabilities.tolist(), strict=True):
                yield f"probability/{name}", share, event.step
        if event.reward is not None:
            yield "reward", event.reward, event.step
    elif isinstance(event, EvaluationEvent | EndEvent):
        where = "" if isinstance(event, EvaluationEvent) else "final/"
        for score in event.scores:
            yield f"{where}{score.split}/{score.task}/{score.metric}", score.value, event.step
        if isinstance(event, EvaluationEvent):
            yield "dev/mean", event.mean, event.step

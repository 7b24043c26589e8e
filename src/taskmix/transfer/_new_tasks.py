"""Who will help tasks that were never trained, from a finished study and the rows of all tasks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from taskmix.errors import InputError
from taskmix.tasks import Task
from taskmix.transfer._document import TransferDocument
from taskmix.transfer._features import task_features
from taskmix.transfer._unseen import FEWEST_TASKS, predict_transfer


@dataclass(frozen=True)
class NewSource:
    """What a known task is predicted to do for a new one; above zero is help.

    >>> NewSource(source="books", gain=0.2, low=0.1, high=0.3, answer="helps").answer
    'helps'
    """

    source: str
    gain: float
    low: float
    high: float
    answer: Literal["helps", "harms", "cannot tell"]


@dataclass(frozen=True, kw_only=True)
class NewTaskAnswer:
    """Who will help a task that was never trained, and what that is worth.

    >>> answer = NewTaskAnswer(task="x", sources=(), correlation=0.1, coverage=0.94, tells=False)
    >>> answer.tells  # known tasks, left out, were not predicted better than by chance
    False
    """

    task: str
    sources: tuple[NewSource, ...]  # the best first
    correlation: float  # of ranks, of predicted with measured gains of known tasks left out
    coverage: float  # of their gains by the intervals
    tells: bool  # whether that correlation is significantly above zero (one-sided 95 %)


def answer_for_new_tasks(
    document: TransferDocument,
    known: Sequence[Task],
    new: Sequence[Task],
    *,
    model: str | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> tuple[NewTaskAnswer, ...]:
    """Predicts what each known task would do for each new one; trains nothing.

    `document` is of a study with all known tasks as targets, and `model` a pretrained one that reads
    texts, to compare them by; `on_progress` hears how many rows it has read, of how many.

    >>> import pyarrow as pa
    >>> from taskmix.tasks import tables_as_tasks
    >>> rows = {"train": pa.table({"x": [0.5, 1.5, 3.0], "label": ["no", "yes", "yes"]})}
    >>> tasks = tables_as_tasks({name: rows for name in "abcdef"})
    >>> names = tasks.names[:5]
    >>> targets = [
    ...     TargetRow(
    ...         target=name, higher_is_better=False, alone=0.8, alone_runs=10, alone_deviation=0.02,
    ...         subsets=30, subset_runs=30, noise=0.03, chosen=(),
    ...         sources=tuple(
    ...             SourceRow(
    ...                 source=other, gain=0.1, low=0.0, high=0.2, p_value=0.1, verdict="cannot tell",
    ...                 relative_gain=0.0, relative_low=-0.1, relative_high=0.1)
    ...             for other in names if other != name))
    ...     for name in names]
    >>> document = TransferDocument(
    ...     command="taskmix transfer known/ --all", outcome="loss", measure="loss",
    ...     budget="per-task", steps=100, estimate=None, design=UsedDesign(), runs=60,
    ...     tasks=names, targets=tuple(targets), groups=())
    >>> answer = answer_for_new_tasks(document, tasks[:5], tasks[5:])[0]
    >>> answer.task, answer.sources[0].answer  # the known tasks are all alike
    ('f', 'cannot tell')
    """
    names = [task.name for task in known]
    if sorted(names) != sorted(document.tasks):
        raise InputError(
            f"The known tasks should be those of the study, {', '.join(document.tasks)}. Found "
            f"{', '.join(names)}. Name the folder that the study was made from, with the same options."
        )
    if both := [task.name for task in new if task.name in names]:
        raise InputError(
            f"A new task should not be one of the study. Found {', '.join(both)}, which "
            "it has measured. Leave it out, or rename it."
        )
    told = document.gains
    if len(told) < FEWEST_TASKS:
        raise InputError(
            f"The study should tell of {FEWEST_TASKS} targets or more. Found {len(told)}. Make one of "
            "all tasks as targets."
        )
    gains = np.array(
        [[told.get(target, {}).get(source, np.nan) for source in names] for target in names]
    )
    features, asked = task_features(known, new, model=model, on_progress=on_progress)
    answers = []
    for task, row in zip(new, asked, strict=True):
        found = predict_transfer(gains, features, row, tasks=names)
        rows = zip(found.sources, found.gains.tolist(), found.answers(), strict=True)
        sources = [
            NewSource(name, gain, gain - found.half_width, gain + found.half_width, answer)
            for name, gain, answer in rows
        ]
        answers.append(
            NewTaskAnswer(
                task=task.name,
                sources=tuple(sorted(sources, key=lambda each: -each.gain)),
                correlation=found.correlation,
                coverage=found.coverage,
                tells=found.tells,
            )
        )
    return tuple(answers)

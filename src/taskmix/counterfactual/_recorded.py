"""Recorded runs that can be learned from together: the same tasks, the same reward, whole records.

Whether a task learned anything shows on held-out rows. The reward of a step is measured on the rows
trained on. A task whose labels mean nothing has a high loss that falls at every other visit, and is
memorised in the end: the reward of Eq. 16 and the training losses both take that for progress. Only dev
scores tell.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow.compute as pc

from taskmix.errors import InputError, RecordError
from taskmix.numerics import Interval, mean_interval
from taskmix.records import RunFolder, RunSummary, Study


@dataclass(frozen=True)
class RecordedRun:
    """A finished run that drew one task a step from several."""

    folder: RunFolder
    summary: RunSummary


def recorded_runs(
    studies: Sequence[Study], labels: Sequence[str] | None = None
) -> tuple[tuple[RecordedRun, ...], tuple[str, ...]]:
    """All such runs of some studies, and a note for each whose record is not all there.

    With `labels` only runs of these.
    """
    runs: list[RecordedRun] = []
    notes: list[str] = []
    seen: Counter[str] = Counter()
    for study in studies:
        if not study.path.is_dir():
            raise InputError(
                f"`{study.path}` should be a study, a folder with runs in it. Found no such folder. "
                "Make one with `taskmix train FOLDER --out STUDY`."
            )
        for folder in study.runs():
            try:
                summary = folder.summary()
            except RecordError as error:  # the others are as good as they were
                notes.append(str(error))
                continue
            if summary is None or not _drew_tasks(summary):
                continue
            if folder.lacks_steps(summary):
                notes.append(
                    f"Run `{summary.name}` ({summary.label}) has no whole record of its steps, so "
                    "nothing was learned from it. Restore the folder `steps` from a copy, or train "
                    "it again from the start."
                )
                continue
            seen.update(summary.labels)
            if labels is None or not set(labels).isdisjoint(summary.labels):
                runs.append(RecordedRun(folder, summary))
    if not runs:
        raise _nothing(studies, seen, notes)
    _check_alike([run.summary for run in runs])
    return tuple(runs), tuple(notes)


def _drew_tasks(summary: RunSummary) -> bool:
    return (
        not summary.lean
        and summary.status == "finished"
        and len(summary.tasks) > 1
        and summary.specification.get("weighting") is None
    )


def _nothing(
    studies: Sequence[Study], seen: Counter[str], notes: Sequence[str]
) -> InputError | RecordError:
    where = ", ".join(str(study.path) for study in studies)
    if not seen and notes:
        return RecordError(f"There is no run in {where} to learn from. {notes[0]}")
    there = f"runs labelled {', '.join(seen)}" if seen else "none"
    return InputError(
        "There should be finished runs that drew one task a step from several. Found "
        f"{there} in {where}. Train with `taskmix train FOLDER --policy uniform --out STUDY`."
    )


def _check_alike(runs: Sequence[RunSummary]) -> None:
    """Runs that are pooled are of the same tasks, and their rewards mean the same."""
    first = runs[0]
    for other in runs[1:]:
        if other.task_names != first.task_names:
            raise InputError(
                "Runs that are pooled should be of the same tasks in the same order. Found "
                f"`{first.label}` with {', '.join(first.task_names)} and `{other.label}` with "
                f"{', '.join(other.task_names)}. Choose runs by their labels."
            )
    rewards = {
        json.dumps(run.specification.get("reward"), sort_keys=True): run.label for run in runs
    }
    if len(rewards) > 1:
        raise InputError(
            "Runs that are pooled should have the same reward. Found different ones in runs labelled "
            f"{' and '.join(f'`{label}`' for label in rewards.values())}. Choose runs by their "
            "labels."
        )
    if rewards.keys() & {"null"}:
        raise InputError(
            "Runs to learn from should have recorded a reward. Found none in runs labelled "
            f"`{first.label}`. Train with the reward `hard`."
        )


def rises_of_scores(
    runs: Sequence[RunFolder], *, better_lower: Sequence[str] = (), split: str = "dev"
) -> dict[str, Interval]:
    """How much each task's score rose within a run, with an interval over runs.

    From the mean of the first quarter of a run's evaluations to that of the last quarter. A metric
    in `better_lower` has its sign changed. A task that was evaluated fewer than twice is left out.
    """
    found: dict[str, list[float]] = {}
    for run in runs:
        table = run.scores()
        table = table.filter(
            pc.and_(pc.equal(table["split"], split), pc.not_equal(table["metric"], "loss"))
        ).sort_by("step")
        tasks = np.array(table["task"].to_pylist())
        metrics = table["metric"].to_pylist()
        values = table["value"].to_numpy(zero_copy_only=False)
        for task in dict.fromkeys(tasks.tolist()):
            here = np.flatnonzero(tasks == task)
            if len(here) < 2:
                continue
            part = max(len(here) // 4, 1)
            sign = -1.0 if metrics[here[0]] in better_lower else 1.0
            rise = values[here[-part:]].mean() - values[here[:part]].mean()
            found.setdefault(task, []).append(sign * float(rise))
    return {task: mean_interval(rises) for task, rises in found.items()}

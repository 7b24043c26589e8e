"""From the records of a study to the tables of its report."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from taskmix.errors import InputError, OptionError, RecordError
from taskmix.records import RunFolder, RunSummary, Study
from taskmix.report._data import (
    Binned,
    ReportData,
    ReportScore,
    RunRow,
    TaskRow,
    Trace,
    bin_edges,
    bin_of,
    binned_sum,
    divided,
)
from taskmix.report._scoreboard import scoreboard
from taskmix.report._words import counted

if TYPE_CHECKING:
    from taskmix.plans import AdviceDocument, ComparisonDocument
    from taskmix.transfer import TransferDocument

_MOST_LABELS = 12  # beside each other in a table
_MOST_TRACES = 400  # runs whose steps are read
_POINTS = 50  # of a line
_FEWEST_POINTS = 24
_MOST_ROWS = 9000  # of a figure, all its lines together: keeps the page near a megabyte
_NAMED = 3  # runs in a note
_SPLITS = ("test", "dev", "valid")  # what a run may be judged by, the first before the others
_COLUMNS = ["step", "task", "loss", "weight", "examples", "probabilities"]


def gather_report(
    study: Study | Path,
    *,
    labels: Sequence[str] | None = None,  # which, and in this order; None: all, the oldest first
    title: str | None = None,
    command: str = "",
    notes: Sequence[str] = (),
    delivered: Path | None = None,  # a study trained by the plan; None: this one, where it was
) -> ReportData:
    """Reads all summaries, and the steps of as many runs as a chart has use for.

    >>> from pathlib import Path
    >>> gather_report(Path("."))
    Traceback (most recent call last):
    taskmix.errors.InputError: `.` should be a study, a folder with a folder for each run. Found...
    """
    study = study if isinstance(study, Study) else Study(study)
    found = list(notes)
    advice = _advice(study.path)
    # A run of several labels is one of each kind: it stands in every comparison that it is part of.
    summaries = sorted(
        (each for run in study.summaries(note=found.append) for each in run.under_each_label()),
        key=lambda run: (run.created, run.label),
    )
    if not summaries and not found and advice is None:
        raise InputError(
            f"`{study.path}` should be a study, a folder with a folder for each run. Found no run in "
            "it. Train first, or check the path."
        )
    if advice is not None and labels is None:
        # A study may hold more: the small runs about transfer, and what was asked before.
        labels = tuple(row.name for row in advice.candidates)
        theirs = {(row.name, run) for row in advice.candidates for run in row.runs}
        summaries = [run for run in summaries if (run.label, run.name) in theirs]
    order = (
        tuple(dict.fromkeys(run.label for run in summaries)) if labels is None else tuple(labels)
    )
    summaries = [run for run in summaries if run.label in order]
    order = tuple(label for label in order if any(run.label == label for run in summaries))
    tasks = _tasks(summaries)
    data = ReportData(
        title=title or (advice.title if advice else "") or study.path.resolve().name,
        labels=order,
        tasks=tasks,
        runs=_rows(summaries),
        scores=_final_scores(summaries, {task.name: task.metric for task in tasks}),
        notes=tuple(found),
        command=command,
        transfer=_transfer(study.path),
        advice=advice,
        comparison=_comparison(study.path, delivered),
    )
    data = _fewer_labels(data)
    return _with_traces(data, study, [run for run in summaries if run.label in data.labels])


def _transfer(folder: Path) -> TransferDocument | None:
    """What `taskmix transfer` wrote beside the runs; its package is loaded only where it did."""
    if not (folder / "transfer.json").exists():
        return None
    from taskmix.transfer import load_transfer

    return load_transfer(folder)


def _advice(folder: Path) -> AdviceDocument | None:
    """What `taskmix advise` wrote beside the runs, if it did."""
    if not (folder / "advice.json").exists():
        return None
    from taskmix.plans import load_advice

    return load_advice(folder)


def _comparison(folder: Path, delivered: Path | None) -> ComparisonDocument | None:
    """What `taskmix train --plan` wrote beside the runs, if it did."""
    if delivered is None and not (folder / "comparison.json").exists():
        return None
    from taskmix.plans import load_comparison

    found = load_comparison(delivered or folder)
    if found is None:
        raise InputError(
            f"`{delivered}` should be a study that was trained by a plan. Found no comparison.json in "
            "it. Make one with `taskmix train FOLDER --plan PLAN --out STUDY`."
        )
    return found


def _rows(summaries: Sequence[RunSummary]) -> tuple[RunRow, ...]:
    """One row a run, with the labels that are shown of it."""
    labels: dict[str, list[str]] = {}
    for run in summaries:
        labels.setdefault(run.name, []).append(run.label)
    firsts = {run.name: run for run in reversed(summaries)}
    return tuple(_row(firsts[name], labels[name]) for name in labels)


def _row(run: RunSummary, labels: Sequence[str]) -> RunRow:
    return RunRow(
        name=run.name,
        label=labels[0],
        other_labels=tuple(labels[1:]),
        seed=run.seed,
        status=run.status,
        tasks=run.task_names,
        step=run.step,
        steps=run.steps,
        seconds=run.seconds,
        best_step=run.best_step,
        error=run.error,
        specification=run.specification,
        versions=run.versions,
        updated=run.updated,
    )


def _tasks(summaries: Sequence[RunSummary]) -> tuple[TaskRow, ...]:
    """All tasks, in the order of the runs that have most of them."""
    rows: dict[str, TaskRow] = {}
    for run in sorted(summaries, key=lambda run: -len(run.tasks)):
        for task in run.tasks:
            if task["name"] not in rows:
                rows[task["name"]] = _task(task, run)
    return tuple(rows.values())


def _task(task: Mapping[str, Any], run: RunSummary) -> TaskRow:
    """What a record says of a task; it is asked for its name only, so all else may be missing."""
    scored = [score.metric for score in run.scores if score.task == task["name"]]
    metric = str(task.get("metric") or next((name for name in scored if name != "loss"), "score"))
    sizes, labels = task.get("sizes"), task.get("labels")
    classes = len(labels) if isinstance(labels, list) else labels
    return TaskRow(
        name=task["name"],
        metric=metric,
        higher_is_better=_higher_is_better(metric),
        kind=str(task.get("kind") or ""),
        inputs=str(task.get("inputs") or ""),
        classes=classes if isinstance(classes, int) and classes > 0 else None,
        sizes={str(split): int(size) for split, size in sizes.items()}
        if isinstance(sizes, dict)
        else {},
    )


def _higher_is_better(metric: str) -> bool:
    from taskmix.tasks import find_metric

    try:
        return find_metric(metric).higher_is_better
    except OptionError:  # a metric of another version or of the user's own
        return True


def _final_scores(
    summaries: Sequence[RunSummary], metrics: Mapping[str, str]
) -> tuple[ReportScore, ...]:
    kept = [
        ReportScore(
            task=score.task, label=run.label, seed=run.seed, split=score.split, value=score.value
        )
        for run in summaries
        if run.status == "finished"
        for score in run.scores
        if score.split in _SPLITS and metrics.get(score.task) == score.metric
    ]
    return tuple(sorted(kept, key=lambda score: _SPLITS.index(score.split)))


def _fewer_labels(data: ReportData) -> ReportData:
    """The labels with the best means, where there are more than a table can show."""
    if len(data.labels) <= _MOST_LABELS:
        return data
    board = scoreboard(data)
    sign = -1.0 if board.higher_is_better else 1.0
    cells = board.overall.cells if board.overall is not None else (None,) * len(data.labels)
    ranked = sorted(
        range(len(cells)),
        key=lambda place: (
            sign * cell.interval.mean if (cell := cells[place]) is not None else math.inf
        ),
    )
    kept = set(ranked[:_MOST_LABELS])
    labels = tuple(label for place, label in enumerate(data.labels) if place in kept)
    note = (
        f"The page shows the {_MOST_LABELS} best of {len(data.labels)} labels, by their score over "
        "all tasks; a lead among so many is flattered by chance."
    )
    runs = tuple(run for run in data.runs if not set(labels).isdisjoint(run.labels))
    scores = tuple(score for score in data.scores if score.label in labels)
    return replace(data, labels=labels, runs=runs, scores=scores, notes=(*data.notes, note))


def _with_traces(data: ReportData, study: Study, summaries: Sequence[RunSummary]) -> ReportData:
    lines = max(1, len(data.tasks) * len(data.labels))
    points = min(_POINTS, max(_FEWEST_POINTS, _MOST_ROWS // lines))
    notes = list(data.notes)
    edges: dict[str, NDArray[np.float64]] = {}
    traces: list[Trace] = []
    each = max(1, _MOST_TRACES // max(1, len(data.labels)))
    metrics = {task.name: task.metric for task in data.tasks}
    left_out, lacking = 0, []
    for label in data.labels:
        runs = sorted((run for run in summaries if run.label == label), key=lambda run: run.seed)
        left_out += max(0, len(runs) - each)
        edges[label] = bin_edges(max(run.step for run in runs), points)
        for run in runs[:each]:
            folder = RunFolder(study.path / run.name)
            if folder.lacks_steps(run):
                lacking.append(run)
                continue
            try:
                traces.append(_trace(folder, run, edges[label], metrics))
            except RecordError as error:  # one damaged run should not cost the page of the others
                notes.append(str(error))
    if lacking:
        one = len(lacking) == 1
        names = ", ".join(f"`{run.name}` ({run.label})" for run in lacking[:_NAMED])
        names += f" and {len(lacking) - _NAMED} more" if len(lacking) > _NAMED else ""
        notes.append(
            f"{counted(len(lacking), 'run')} {'has' if one else 'have'} no whole record of "
            f"{'its' if one else 'their'} steps, so {'its' if one else 'their'} lines are missing "
            f"from the plots: {names}. Restore the folder `steps` from a copy, or train again "
            "from the start."
        )
    if left_out:
        notes.append(f"Curves leave out {counted(left_out, 'run')}: a chart shows no more of them.")
    return replace(data, traces=tuple(traces), edges=edges, notes=tuple(notes))


def _trace(
    folder: RunFolder, run: RunSummary, edges: NDArray[np.float64], metrics: Mapping[str, str]
) -> Trace:
    # Batch by batch: a log may be longer than memory.
    shape = (len(run.task_names), len(edges) - 1)
    totals = {name: np.zeros(shape) for name in ("loss", "weight", "examples")}
    known = {name: np.zeros(shape) for name in totals}
    drawn, counts = np.zeros(shape), np.zeros(shape[1])
    vector = np.full(shape[0], np.nan)
    for batch in folder.iter_step_batches(_COLUMNS):
        bins = bin_of(batch.column("step").to_numpy(), edges)
        task = batch.column("task").indices.to_numpy().astype(np.int64)
        for name, total in totals.items():
            values = batch.column(name).to_numpy(zero_copy_only=False).astype(np.float64)
            total += binned_sum(values, task, bins, shape)
            known[name] += binned_sum(np.isfinite(values).astype(np.float64), task, bins, shape)
        vector = _add_probabilities(batch.column("probabilities"), bins, vector, drawn)
        counts += np.bincount(bins, minlength=shape[1])
    return Trace(
        label=run.label,
        seed=run.seed,
        tasks=run.task_names,
        losses=divided(totals["loss"], known["loss"]),
        weights=divided(totals["weight"], known["weight"]),
        examples=totals["examples"],
        probabilities=divided(drawn, counts),
        scores=_curves(folder, metrics),
    )


def _add_probabilities(
    column: Any,  # a list for each row, null where it is that of the row before
    bins: NDArray[np.int64],
    vector: NDArray[np.float64],  # that holds before the first row
    total: Binned,  # added to
) -> NDArray[np.float64]:
    """Adds each row's probabilities to its bin; gives the vector that holds after the last row."""
    given = np.flatnonzero(column.is_valid().to_numpy(zero_copy_only=False))
    values = column.flatten().to_numpy(zero_copy_only=False)
    vectors = np.vstack([vector, values.reshape(len(given), len(vector))])
    # How many rows of each bin each vector holds for: a vector may hold for many.
    holds = np.searchsorted(given, np.arange(len(bins)), side="right")
    pairs, counts = np.unique(holds * total.shape[1] + bins, return_counts=True)
    places, at = np.divmod(pairs, total.shape[1])
    np.add.at(total.T, at, counts[:, None] * vectors[places])
    return np.asarray(vectors[-1])


def _curves(
    folder: RunFolder, metrics: Mapping[str, str]
) -> dict[str, tuple[NDArray[np.int64], NDArray[np.float64]]]:
    """The dev scores of each task by its own metric, in the order of the steps."""
    found: dict[str, dict[int, float]] = {}
    table = folder.scores()
    for row in table.filter(_is_in(table["split"], _SPLITS[1:])).to_pylist():
        if metrics.get(row["task"]) == row["metric"]:
            value = row["value"]
            found.setdefault(row["task"], {})[row["step"]] = math.nan if value is None else value
    return {
        task: (np.array(list(curve), dtype=np.int64), np.array(list(curve.values())))
        for task, curve in found.items()
    }


def _is_in(column: Any, words: Sequence[str]) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    return pc.is_in(column, value_set=pa.array(words, pa.string()))

"""The page of a study: everything that its records say, as words, tables and charts."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import taskmix
from taskmix.extras import require
from taskmix.records import Study
from taskmix.report._advice_figures import (
    delivered_figure,
    expected_figure,
    gap_figure,
)
from taskmix.report._advice_words import advice_contents, delivered_contents
from taskmix.report._charts import LABEL_COLOURS
from taskmix.report._data import ReportData, RunRow
from taskmix.report._figures import Figure, palette, score_figure
from taskmix.report._gather import gather_report
from taskmix.report._scoreboard import Scoreboard, ScoreRow, scoreboard
from taskmix.report._shell import CHART_PACKAGES, PURPOSE, by_name, render_page, write_whole
from taskmix.report._traces import (
    curve_figure,
    loss_figure,
    share_figure,
    variance_figure,
    weight_figure,
)
from taskmix.report._transfer_figures import effect_figure, prediction_figure
from taskmix.report._transfer_words import TransferContents, transfer_contents
from taskmix.report._words import (
    count_of,
    counted,
    decimals_for,
    duration,
    explained_candidates,
    headline,
    listed,
    number,
    overall_name,
    specifications,
)

_SHOWN_PANELS = 12  # of a figure, until the reader asks for all
_LISTED_RUNS = 300
_SECTIONS = {  # title, and its name in the list of sections
    "effects": ("Gains from each source", "Gains"),
    "predictions": ("Predicted against observed", "Predictions"),
    "curves": ("Learning curves", "Curves"),
    "shares": ("Shares of the tasks over time", "Shares"),
    "losses": ("Training losses", "Losses"),
    "variance": ("Variance of the task losses over time", "Variance"),
    "weights": ("Weights of the losses over time", "Weights"),
}
_ADVICE_SECTIONS = {  # of a study with advice; the others are folded after these
    "model": "The model",
    "divide": "How to divide",
    "delivered": "Training by the plan",
    "transfer": "Transfer",
    "warnings": "Warnings",
    "repeat": "Repeat it",
}
_TRANSFER_SECTIONS = {  # of a study of transfer without advice
    "answers": "Answers",
    "transfer": "Map",
    "groups": "Groups",
    "effects": "Gains",
    "predictions": "Predictions",
}
_UNTITLED = ("scores", "variance", "gaps")  # one panel says no more
_HOW_TO_READ = (
    "How to read an interval: repeated with other seeds, 95 of 100 such intervals hold the true mean "
    "(Student's t over seeds). Labels are compared seed by seed; where the interval of the difference "
    "holds zero, these runs cannot tell which is better."
)


def _contents(data: ReportData, board: Scoreboard, figures: Mapping[str, Figure]) -> dict[str, Any]:
    """Everything the template shows, as text."""
    advice, transfer = advice_contents(data), transfer_contents(data.transfer)
    first = _first_sections(advice, transfer, figures)
    delivered = delivered_contents(data.comparison)
    drawn = {
        section: names
        for section, names in _SECTIONS.items()
        if section in figures and section not in dict(first)
    }
    tail = [
        ("specification", "Specification"),
        ("data", "Data"),
        ("runs", "Runs"),
        ("about", "Notes"),
    ]
    has_runs = bool(data.runs) or advice is None  # advice may be of shallow models alone
    unfinished = [run for run in data.runs if run.status != "finished"]
    splits = list(dict.fromkeys(split for task in data.tasks for split in task.sizes))
    versions: dict[str, dict[str, None]] = {}
    for run in data.runs:
        for package, version in run.versions.items():
            versions.setdefault(package, {})[version] = None
    return {
        "kicker": f"taskmix {'advice' if advice else 'transfer' if transfer else 'report'}",
        "title": data.title,
        "labels": data.labels,
        "label_colours": LABEL_COLOURS,
        "palette": palette(data),
        "shown_panels": _SHOWN_PANELS,
        "headline": headline(data, board),
        "facts": _facts(data),
        "advice": advice,
        "transfer": transfer,
        "delivered": delivered,
        "ways": [] if advice else explained_candidates(data.labels),
        "untitled": _UNTITLED,
        "first_sections": first,
        "sections": [
            *(
                [("delivered", _ADVICE_SECTIONS["delivered"])]
                if delivered and "delivered" not in dict(first)
                else []
            ),
            *([("scores", "Scores")] if has_runs else []),
            *((section, short) for section, (_, short) in drawn.items()),
            *(tail if has_runs else tail[-1:]),
        ],
        "has_runs": has_runs,
        "figure_sections": [(section, title) for section, (title, _) in drawn.items()],
        "best": board.lead.best if board.lead is not None else "",
        "table": _table(board),
        "table_caption": _table_caption(board),
        "specification": specifications(data.runs, data.labels),
        "splits": splits,
        "tasks": [
            {
                "name": task.name,
                "kind": task.kind,
                "inputs": task.inputs,
                "classes": task.classes,
                "metric": task.metric,
                "sizes": [count_of(task.sizes.get(split)) for split in splits],
            }
            for task in data.tasks
        ],
        "known": {
            name: any(getattr(task, name) for task in data.tasks)
            for name in ("kind", "inputs", "classes")
        },
        "unfinished": [_run(run) for run in unfinished[:_LISTED_RUNS]],
        "unfinished_words": f"{counted(len(unfinished), 'run')} did not finish; "
        "the scores above are without them.",
        "runs": [_run(run) for run in data.runs[:_LISTED_RUNS]],
        "runs_summary": _runs_summary(data),
        "notes": (*data.notes, *board.notes),
        "how_to_read": _HOW_TO_READ,
        "command": data.command,
        "updated": max((run.updated for run in data.runs), default=""),
        "versions": ", ".join(
            f"{package} {'/'.join(found)}" for package, found in sorted(versions.items())
        )
        or f"taskmix {taskmix.__version__}",
    }


def _first_sections(
    advice: dict[str, Any] | None,
    transfer: TransferContents | None,
    figures: Mapping[str, Figure],
) -> list[tuple[str, str]]:
    """Those that stand before the details, with their names; none on a page of plain runs."""
    if advice is None and transfer is None:
        return []
    absent = {
        "transfer": transfer is None,
        "answers": transfer is None or len(transfer.answers) < 2,
        "groups": transfer is None or not transfer.groups,
        "effects": "effects" not in figures,
        "predictions": "predictions" not in figures,
        "delivered": "delivered" not in figures,
        "model": advice is None or not advice["model"],
        "warnings": advice is None or not (advice["warnings"] or advice["remarks"]),
    }
    wanted = _TRANSFER_SECTIONS if advice is None else _ADVICE_SECTIONS
    return [pair for pair in wanted.items() if not absent.get(pair[0], False)]


def _facts(data: ReportData) -> list[tuple[str, str]]:
    seconds = sum(run.seconds for run in data.runs if math.isfinite(run.seconds))
    counts = {
        "run": len(data.runs),
        "task": len(data.tasks),
        "label": len(data.labels),
        "seed": len(data.seeds),
    }
    facts = [(noun if n == 1 else f"{noun}s", count_of(n)) for noun, n in counts.items()]
    return [*facts, ("training", duration(seconds))]


def _table(board: Scoreboard) -> list[dict[str, Any]]:
    rows = []
    if board.overall is not None and (len(board.rows) > 1 or board.measure == "rank"):
        rows.append(_table_row(board.overall, overall_name(board), board))
    rows += [_table_row(row, row.task.name, board) for row in board.rows if row.task is not None]
    return rows


def _table_row(row: ScoreRow, name: str, board: Scoreboard) -> dict[str, Any]:
    decimals = decimals_for(cell.interval.mean for cell in row.cells if cell is not None)
    if row.task is None and board.measure == "rank":
        decimals = 2
    metric = row.task.metric if row.task is not None else ""
    return {
        "name": name,
        "overall": row.task is None,
        "metric": f"{metric} (dev)" if metric and row.split != "test" else metric,
        "size": count_of(row.task.size) if row.task is not None else "",
        "cells": [
            None
            if cell is None
            else {
                "mean": number(cell.interval.mean, decimals),
                "spread": number(cell.interval.half_width, decimals) if cell.interval.n > 1 else "",
                "standing": cell.standing,
            }
            for cell in row.cells
        ],
    }


def _table_caption(board: Scoreboard) -> str:
    counts = sorted({cell.interval.n for row in board.rows for cell in row.cells if cell})
    splits = sorted({row.split for row in board.rows})
    several = bool(counts) and counts[-1] > 1
    seeds = f"{counts[0]} to {counts[-1]}" if len(counts) > 1 else "".join(map(str, counts))
    over = f"mean over {seeds} seeds ± 95 % interval" if several else "one seed, so no intervals"
    words = [f"Scores on {listed(splits)}: {over}; rows are those of the training split."]
    lower = [row.task.metric for row in board.rows if row.task and not row.task.higher_is_better]
    if lower:
        words.append(f"Lower is better for {listed(sorted(set(lower)))}.")
    if board.measure == "rank":
        words.append(
            "The metrics cannot be averaged, so tasks are put together by rank: 1 is best."
        )
    words.append("Bold: the best mean of a row.")
    if several:
        words.append("Grey: worse than that by more than chance, paired by seed.")
    return " ".join(words)


def _run(run: RunRow) -> dict[str, Any]:
    return {
        "name": run.name[:16],
        "label": ", ".join(run.labels),
        "seed": run.seed,
        "tasks": run.tasks[0] if len(run.tasks) == 1 else counted(len(run.tasks), "task"),
        # Who was killed still says so; the time tells.
        "status": f"running, last commit {run.updated[:16].replace('T', ' ')}"
        if run.status == "running"
        else run.status,
        "step": f"{count_of(run.step)} / {count_of(run.steps)}"
        if run.steps
        else count_of(run.step),
        "best_step": count_of(run.best_step),
        "time": duration(run.seconds),
        "error": run.error,
    }


def _runs_summary(data: ReportData) -> str:
    total = len(data.runs)
    if total > _LISTED_RUNS:
        return f"The first {_LISTED_RUNS} of {counted(total, 'run')}"
    return "The one run" if total == 1 else f"All {counted(total, 'run')}"


def report_html(data: ReportData, *, live: str = "") -> str:
    """The page as text. It asks for nothing from outside and runs no script but its own.

    `taskmix report STUDY` makes it; it takes seconds. A page that is served while its study grows has
    the stamp of its records as `live`, and is loaded again once the server has another.
    """
    board = scoreboard(data)
    figures = _figures(data, board)
    return render_page("page.html.j2", _contents(data, board, figures), figures=figures, live=live)


def _figures(data: ReportData, board: Scoreboard) -> dict[str, Figure]:
    colours = palette(data)
    found = (
        expected_figure(data.advice),
        delivered_figure(data.comparison),
        gap_figure(data.advice),
        score_figure(data, board),
        effect_figure(data.transfer),
        prediction_figure(data.transfer),
        curve_figure(data),
        share_figure(data, colours),
        loss_figure(data, colours),
        variance_figure(data),
        weight_figure(data, colours),
    )
    return by_name(found)


def write_report(
    study: Study | Path,
    out: Path,
    *,
    labels: Sequence[str] | None = None,
    title: str | None = None,
    command: str = "",
    notes: Sequence[str] = (),
    delivered: Path | None = None,
    on_note: Callable[[str], object] = lambda note: None,
) -> Path:
    """Writes the page of a study to `out` and gives its path; its notes are told to `on_note`.

    `delivered` is another study, trained by this one's plan: what came of it stands beside what was
    promised. `taskmix report STUDY` does it.
    """
    require(*CHART_PACKAGES, purpose=PURPOSE)  # before everything is read
    command = command or f"taskmix report {study.path if isinstance(study, Study) else study}"
    data = gather_report(
        study, labels=labels, title=title, command=command, notes=notes, delivered=delivered
    )
    # Names may come from file names that are no Unicode; those characters show as `?`.
    page = report_html(data).encode("utf-8", "replace")
    written = write_whole(out, page, "the report")
    for note in data.notes:
        on_note(note)
    return written

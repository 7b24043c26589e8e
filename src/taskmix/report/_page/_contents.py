"""What the page says in words and tables, as text for the template."""

from __future__ import annotations

import math
from collections.abc import Mapping

import taskmix
from taskmix.report._advice import AdviceContents, advice_contents, delivered_contents
from taskmix.report._drawing import LABEL_COLOURS, Figure, palette
from taskmix.report._page._rows import (
    PageContents,
    RunTableRow,
    ScoreTableCell,
    ScoreTableRow,
    TaskTableRow,
)
from taskmix.report._study import (
    ReportData,
    RunRow,
    Scoreboard,
    ScoreRow,
    count_of,
    counted,
    decimals_for,
    duration,
    explained_ways,
    headline,
    listed,
    number,
    overall_name,
    specifications,
)
from taskmix.report._transfer import TransferContents, transfer_contents

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
    "expected": "The plan",
    "delivered": "Delivered",
    "comparison": "Comparison",
    "transfer": "Transfer",
    "spending": "Budget",
    "outlook": "More batches",
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
_UNTITLED = ("scores", "variance", "gaps", "spending", "law")  # one panel says no more
_HOW_TO_READ = (
    "How to read an interval: repeated with other seeds, 95 of 100 such intervals hold the true mean "
    "(Student's t over seeds). Labels are compared seed by seed; where the interval of the difference "
    "holds zero, these runs cannot tell which is better."
)


def contents(data: ReportData, board: Scoreboard, figures: Mapping[str, Figure]) -> PageContents:
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
    unfinished = [run for run in data.runs if run.status != "finished"]
    splits = list(dict.fromkeys(split for task in data.tasks for split in task.sizes))
    versions: dict[str, dict[str, None]] = {}
    for run in data.runs:
        for package, version in run.versions.items():
            versions.setdefault(package, {})[version] = None
    return PageContents(
        kicker=f"taskmix {'advice' if advice else 'transfer' if transfer else 'report'}",
        title=data.title,
        labels=data.labels,
        label_colours=LABEL_COLOURS,
        palette=palette(data),
        shown_panels=_SHOWN_PANELS,
        headline=headline(data, board),
        facts=_facts(data),
        advice=advice,
        transfer=transfer,
        delivered=delivered,
        ways=[] if advice else explained_ways(data.labels),
        untitled=_UNTITLED,
        first_sections=first,
        sections=[
            *([("delivered", "Delivered")] if delivered and "delivered" not in dict(first) else []),
            ("scores", "Scores"),
            *((section, short) for section, (_, short) in drawn.items()),
            *tail,
        ],
        figure_sections=[(section, title) for section, (title, _) in drawn.items()],
        best=board.lead.best if board.lead is not None else "",
        table=_table(board),
        table_caption=_table_caption(board),
        specification=specifications(data.runs, data.labels),
        splits=splits,
        tasks=[
            TaskTableRow(
                name=task.name,
                kind=task.kind,
                inputs=task.inputs,
                classes=task.classes,
                metric=task.metric,
                sizes=[count_of(task.sizes.get(split)) for split in splits],
            )
            for task in data.tasks
        ],
        known={
            name: any(getattr(task, name) for task in data.tasks)
            for name in ("kind", "inputs", "classes")
        },
        unfinished=[_run(run) for run in unfinished[:_LISTED_RUNS]],
        unfinished_words=f"{counted(len(unfinished), 'run')} did not finish; "
        "the scores above are without them.",
        runs=[_run(run) for run in data.runs[:_LISTED_RUNS]],
        runs_summary=_runs_summary(data),
        notes=(*data.notes, *board.notes),
        how_to_read=_HOW_TO_READ,
        command=data.command,
        updated=max((run.updated for run in data.runs), default=""),
        versions=", ".join(
            f"{package} {'/'.join(found)}" for package, found in sorted(versions.items())
        )
        or f"taskmix {taskmix.__version__}",
    )


def _first_sections(
    advice: AdviceContents | None,
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
        "spending": "spending" not in figures,
        "delivered": "delivered" not in figures,
        "outlook": advice is None or not advice.outlook,
        "warnings": advice is None or not (advice.warnings or advice.remarks),
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


def _table(board: Scoreboard) -> list[ScoreTableRow]:
    rows = []
    if board.overall is not None and (len(board.rows) > 1 or board.measure == "rank"):
        rows.append(_table_row(board.overall, overall_name(board), board))
    rows += [_table_row(row, row.task.name, board) for row in board.rows if row.task is not None]
    return rows


def _table_row(row: ScoreRow, name: str, board: Scoreboard) -> ScoreTableRow:
    decimals = decimals_for(cell.interval.mean for cell in row.cells if cell is not None)
    if row.task is None and board.measure == "rank":
        decimals = 2
    metric = row.task.metric if row.task is not None else ""
    return ScoreTableRow(
        name=name,
        overall=row.task is None,
        metric=f"{metric} (dev)" if metric and row.split != "test" else metric,
        size=count_of(row.task.size) if row.task is not None else "",
        cells=[
            None
            if cell is None
            else ScoreTableCell(
                mean=number(cell.interval.mean, decimals),
                spread=number(cell.interval.half_width, decimals) if cell.interval.n > 1 else "",
                standing=cell.standing,
            )
            for cell in row.cells
        ],
    )


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


def _run(run: RunRow) -> RunTableRow:
    return RunTableRow(
        name=run.name[:16],
        label=", ".join(run.labels),
        seed=run.seed,
        tasks=run.tasks[0] if len(run.tasks) == 1 else counted(len(run.tasks), "task"),
        status=run.status,
        step=f"{count_of(run.step)} / {count_of(run.steps)}" if run.steps else count_of(run.step),
        best_step=count_of(run.best_step),
        time=duration(run.seconds),
        error=run.error,
    )


def _runs_summary(data: ReportData) -> str:
    total = len(data.runs)
    if total > _LISTED_RUNS:
        return f"The first {_LISTED_RUNS} of {counted(total, 'run')}"
    return "The one run" if total == 1 else f"All {counted(total, 'run')}"

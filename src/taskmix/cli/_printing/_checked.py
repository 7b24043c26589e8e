"""What `taskmix check` prints: files, tasks, columns, guesses, warnings, and the line to type next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from taskmix.cli._printing._display import echo, say_flags_of, show

if TYPE_CHECKING:
    from taskmix.tasks import FileRead, Finding, TaskCheck

MOST_ROWS = 20  # of a table; the rest are counted, and --json has them all
MOST_ALIKE = 3  # findings of one kind


def print_check(check: TaskCheck, line: str) -> None:
    """Everything, in the order in which one would ask."""
    _print_files(check.files, check.source)
    _print_tasks(check)
    _print_columns(check)
    if check.notes:
        echo("Guesses, and how to say otherwise:")
        for note in check.notes:
            echo(f"  - {say_flags_of(note)}")
        echo("")
    warnings = [each for each in check.findings if each.is_warning]
    others = [each for each in check.findings if not each.is_warning]
    _print_findings("Warnings", warnings)
    _print_findings("Good to know", others)
    if not check.findings:
        echo("Nothing wrong was found.")
        echo("")
    echo(f"Next: {line}")


def _print_files(files: Sequence[FileRead], source: str) -> None:
    rows = sum(each.rows for each in files)
    plural = "1 file" if len(files) == 1 else f"{len(files)} files"
    start = f"{source.rstrip('/')}/"
    shown = ", ".join(
        f"{each.path.removeprefix(start)} ({each.rows:,})" for each in files[:MOST_ALIKE]
    )
    more = f" and {len(files) - MOST_ALIKE} more" if len(files) > MOST_ALIKE else ""
    echo(f"Read {rows:,} rows of {plural}: {shown}{more}")


def _print_tasks(check: TaskCheck) -> None:
    from rich import box
    from rich.table import Table

    count = len(check.tasks)
    title = "1 task" if count == 1 else f"{count} tasks"
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1))
    splits = list(dict.fromkeys(split for task in check.tasks for split in task.sizes))
    for name in ("task", "kind", "reads", "predicts", "metric"):
        table.add_column(name)
    for split in splits:
        table.add_column(split, justify="right", no_wrap=True)
    for task in check.tasks[:MOST_ROWS]:
        label = task.label or ""
        unit = {"tagging": "tags", "multilabel": "labels"}.get(task.kind, "classes")
        predicts = f"{label} ({task.classes} {unit})" if task.classes else label
        metric = f"{task.metric} (imbalance)" if task.by_imbalance else task.metric
        sizes = [f"{task.sizes[split]:,}" if split in task.sizes else "" for split in splits]
        table.add_row(task.name, task.kind, task.inputs, predicts, metric, *sizes)
    show(table, wide=True)
    if count > MOST_ROWS:
        echo(f"... and {count - MOST_ROWS} more tasks")


def _print_columns(check: TaskCheck) -> None:
    from rich import box
    from rich.table import Table

    table = Table(title="Columns", title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1))
    sets = max((each.files for each in check.columns), default=1)
    for name in ("column", "looks like", "used as"):
        table.add_column(name)
    for name in ("values", "missing"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("for example")
    if sets > 1:
        table.add_column("sets of files", justify="right")
    for each in check.columns[:MOST_ROWS]:
        cells = [
            each.name,
            each.kind,
            each.use,
            f"{each.values:,}" if each.values else "",
            f"{each.missing:.1%}" if each.missing else "",
            each.example,
        ]
        table.add_row(*cells, *([str(each.files)] if sets > 1 else []))
    show(table, wide=True)
    if len(check.columns) > MOST_ROWS:
        echo(f"... and {len(check.columns) - MOST_ROWS} more columns")


def _print_findings(title: str, findings: Sequence[Finding]) -> None:
    """Of each kind the first few, the worst first."""
    if not findings:
        return
    echo(f"{title}:")
    kinds = list(dict.fromkeys(each.kind for each in findings))
    for kind in kinds:
        alike = [each for each in findings if each.kind == kind]
        alike.sort(key=lambda each: -each.share if each.share == each.share else 0.0)
        for each in alike[:MOST_ALIKE]:
            echo(f"  - {each.words}")
        if len(alike) > MOST_ALIKE:
            echo(f"    ... and {len(alike) - MOST_ALIKE} more like it ({kind})")
    echo("")

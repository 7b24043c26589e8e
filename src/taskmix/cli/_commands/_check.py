"""`taskmix check`: what tasks a folder has, and what is wrong with them, before anything is trained."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from taskmix.cli._options._tasks import TaskOptions
from taskmix.cli._printing._display import draw_table, echo, print_json, say_flags_of
from taskmix.errors import InputError, OptionError

if TYPE_CHECKING:
    from taskmix.tasks import FileRead, Finding, TaskCheck

MOST_RUNS = 100_000  # of a table of mixtures: a larger one takes long to read again
MOST_ROWS = 20  # of a table; the rest are counted, and --json has them all
MOST_FILES = 3  # that are named


def check(
    context: typer.Context,
    tasks: TaskOptions,
    json_: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Say in seconds how the tasks of FOLDER are read, and what is wrong with them.

    Lists the files, the tasks, and what each column was taken for; then the guesses, with the option
    that says otherwise; then what would spoil a result: labels in the inputs, rows of test in train,
    doubles, contradictions, rare classes and more. Nothing is trained and nothing is written.

    Examples:

        taskmix check reviews/

        taskmix check table.csv --task-column product --label stars --ignore id
    """
    from taskmix.cli._printing._repeat import given_options
    from taskmix.records import to_plain
    from taskmix.tasks import check_tasks

    if tasks.folder == "digits":
        raise OptionError(
            "A folder or a file should be checked. Found `digits`, the demo's tasks, which are made and "
            "not read."
        )
    found = check_tasks(
        tasks.folder, tasks=tasks.names, settings=tasks.tasks, cache=tasks.cache, **tasks.keywords()
    )
    words = ["taskmix", "advise", tasks.folder, *given_options(context)]
    kinds = {task.kind for task in found.tasks}
    metrics = ",".join(task.label or "" for task in found.tasks)
    if kinds == {"sequences"}:
        words = ["taskmix", "sequences", tasks.folder]
        words += given_options(context, ("tasks", "task_column"))
    elif kinds == {"regression"} and _is_of_mixtures(found, metrics):
        words = ["taskmix", "mix", tasks.folder, "--metrics-columns", metrics]
    line = shlex.join(words)
    if json_:
        document = to_plain(found)
        document["notes"] = [say_flags_of(each) for each in found.notes]
        print_json({**document, "next": line})
    else:
        print_check(found, line)


def _is_of_mixtures(found: TaskCheck, metrics: str) -> bool:
    """Whether the rows of a small table are shares that make a whole, and what came of them."""
    from taskmix.mixtures import read_mixtures

    if len(found.files) != 1 or found.files[0].rows > MOST_RUNS:
        return False
    try:
        read_mixtures(found.files[0].path, metrics_columns=metrics.split(","))
    except InputError:  # it says what a table of mixtures should be
        return False
    return True


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
        f"{each.path.removeprefix(start)} ({each.rows:,})" for each in files[:MOST_FILES]
    )
    more = f" and {len(files) - MOST_FILES} more" if len(files) > MOST_FILES else ""
    echo(f"Read {rows:,} rows of {plural}: {shown}{more}")


def _print_tasks(check: TaskCheck) -> None:
    count = len(check.tasks)
    title = "1 task" if count == 1 else f"{count} tasks"
    splits = list(dict.fromkeys(split for task in check.tasks for split in task.sizes))
    words, rows = ("task", "kind", "reads", "predicts", "metric"), []
    for task in check.tasks[:MOST_ROWS]:
        label = task.label or ""
        unit = {"tagging": "tags", "multilabel": "labels"}.get(task.kind, "classes")
        predicts = f"{label} ({task.classes} {unit})" if task.classes else label
        metric = f"{task.metric} (imbalance)" if task.by_imbalance else task.metric
        sizes = [f"{task.sizes[split]:,}" if split in task.sizes else "" for split in splits]
        rows.append((task.name, task.kind, task.inputs, predicts, metric, *sizes))
    draw_table((*words, *splits), rows, title=title, left=words, whole=True, wide=True)
    if count > MOST_ROWS:
        echo(f"... and {count - MOST_ROWS} more tasks")


def _print_columns(check: TaskCheck) -> None:
    in_sets = any(each.files > 1 for each in check.columns)
    rows = []
    for each in check.columns[:MOST_ROWS]:
        cells = [
            each.name,
            each.kind,
            each.use,
            f"{each.values:,}" if each.values else "",
            f"{each.missing:.1%}" if each.missing else "",
            each.example,
        ]
        rows.append([*cells, *([str(each.files)] if in_sets else [])])
    columns = ["column", "looks like", "used as", "values", "missing", "for example"]
    columns += ["sets of files"] if in_sets else []
    left = ("looks like", "used as", "for example")
    draw_table(columns, rows, title="Columns", left=left, whole=True, wide=True)
    if len(check.columns) > MOST_ROWS:
        echo(f"... and {len(check.columns) - MOST_ROWS} more columns")


def _print_findings(title: str, findings: Sequence[Finding]) -> None:
    if findings:
        echo(f"{title}:")
        for each in findings:
            echo(f"  - {each.words}")
        echo("")

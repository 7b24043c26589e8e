"""Where the tasks are, and how they are read."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from taskmix.cli._options._completing import task_folders
from taskmix.errors import OptionError

if TYPE_CHECKING:
    from taskmix.engine import TaskSource


def _kinds(incomplete: str) -> list[str]:
    from typing import get_args

    from taskmix.tasks import TaskKind

    return [kind for kind in get_args(TaskKind) if kind.startswith(incomplete)]


def _metrics(incomplete: str) -> list[str]:
    from taskmix.tasks import METRICS

    return [name for name in METRICS if name.startswith(incomplete)]


StrictOption = Annotated[
    bool,
    typer.Option("--strict", help="Refuse cells that are no numbers in a column of numbers."),
]
CacheOption = Annotated[
    Path | None, typer.Option("--cache", help="Keep encoded tasks here for the next run.")
]


@dataclass(frozen=True, kw_only=True)
class ReadingOptions:
    """What the columns of a folder are, where the guess would be wrong; None is a guess."""

    task_column: Annotated[
        str | None, typer.Option("--task-column", help="The column of one table naming the task.")
    ] = None
    split_column: Annotated[
        str | None,
        typer.Option("--split-column", help="The column of one table saying train, dev or test."),
    ] = None
    label: Annotated[
        list[str] | None,
        typer.Option("--label", help="The label column; give several for several tasks."),
    ] = None
    text: Annotated[
        list[str] | None,
        typer.Option("--text", help="The column that holds the text; give two for a pair."),
    ] = None
    features: Annotated[
        list[str] | None,
        typer.Option("--features", help="A column of a table that is an input; give all of them."),
    ] = None
    ignore: Annotated[
        list[str] | None,
        typer.Option("--ignore", help="A column that is no input; give it again for more."),
    ] = None
    kind: Annotated[
        str | None,
        typer.Option(
            "--kind",
            help="What is learned, if the guess is wrong: classification, regression, ...",
            autocompletion=_kinds,
        ),
    ] = None
    separator: Annotated[
        str | None,
        typer.Option(
            "--separator", help="What stands between the labels of a cell: several a row."
        ),
    ] = None
    metric: Annotated[
        str | None,
        typer.Option(
            "--metric",
            help="What tasks are scored by [accuracy, or by imbalance].",
            autocompletion=_metrics,
        ),
    ] = None
    strict: StrictOption = False

    def keywords(self) -> dict[str, Any]:
        """These options as `load_tasks` and `FolderSource` take them."""
        found: dict[str, Any] = {}
        for each in fields(ReadingOptions):
            value = getattr(self, each.name)
            found[each.name] = (tuple(value) or None) if isinstance(value, list) else value
        return found


@dataclass(frozen=True, kw_only=True)
class TaskOptions(ReadingOptions):
    """The folder, and how tasks are made from it."""

    folder: Annotated[
        str,
        typer.Argument(
            help="A task folder, a table with a task column, hf:NAME, or digits for the demo's tasks.",
            autocompletion=task_folders,
        ),
    ]
    tasks: Annotated[
        Path | None,
        typer.Option("--tasks", help="A TOML file that says how tasks are made from the folder."),
    ] = None
    only: Annotated[
        str | None, typer.Option("--only", help="Names of the tasks to keep, with commas.")
    ] = None
    cache: CacheOption = None

    def source(self) -> TaskSource:
        """Where the tasks come from."""
        from taskmix.engine import DigitsSource, FolderSource

        how = self.keywords()
        names = tuple(name.strip() for name in self.only.split(",")) if self.only else None
        if self.folder == "digits" and not Path(self.folder).exists():
            if self.tasks or any(value for name, value in how.items() if name != "strict"):
                raise OptionError(
                    "The demo's tasks should be used as they are. Found an option that says how "
                    "tasks are made from a folder. Leave it out."
                )
            return DigitsSource(tasks=names)
        return FolderSource(
            path=self.folder, tasks=names, settings=self.tasks, cache=self.cache, **how
        )

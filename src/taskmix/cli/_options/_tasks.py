"""Where the tasks are, and how they are read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from taskmix.cli._options._completing import task_folders
from taskmix.errors import OptionError

if TYPE_CHECKING:
    from taskmix.engine import TaskSource

StrictOption = Annotated[
    bool,
    typer.Option("--strict", help="Refuse cells that are no numbers in a column of numbers."),
]
CacheOption = Annotated[
    Path | None, typer.Option("--cache", help="Keep encoded tasks here for the next run.")
]


@dataclass(frozen=True, kw_only=True)
class TaskOptions:
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
    task_column: Annotated[
        str | None, typer.Option("--task-column", help="The column of one table naming the task.")
    ] = None
    label: Annotated[
        list[str] | None,
        typer.Option("--label", help="The label column; give several for several tasks."),
    ] = None
    text: Annotated[
        list[str] | None,
        typer.Option("--text", help="The column that holds the text; give two for a pair."),
    ] = None
    metric: Annotated[
        str | None,
        typer.Option("--metric", help="What classes are scored by [accuracy, or by imbalance]."),
    ] = None
    strict: StrictOption = False
    cache: CacheOption = None

    def source(self) -> TaskSource:
        """Where the tasks come from."""
        from taskmix.engine import DigitsSource, FolderSource

        names = tuple(name.strip() for name in self.only.split(",")) if self.only else None
        if self.folder == "digits" and not Path(self.folder).exists():
            if self.tasks or self.task_column or self.label or self.text or self.metric:
                raise OptionError(
                    "The demo's tasks should be used as they are. Found an option that says how "
                    "tasks are made from a folder. Leave it out."
                )
            return DigitsSource(tasks=names)
        return FolderSource(
            path=self.folder,
            tasks=names,
            settings=self.tasks,
            task_column=self.task_column,
            label=tuple(self.label) if self.label else None,
            text=tuple(self.text) if self.text else None,
            metric=self.metric,
            strict=self.strict,
            cache=self.cache,
        )

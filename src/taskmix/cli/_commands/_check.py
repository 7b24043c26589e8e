"""`taskmix check`: what tasks a folder has, and what is wrong with them, before anything is trained."""

from __future__ import annotations

import shlex
from typing import Annotated

import typer

from taskmix.cli._options import TaskOptions
from taskmix.errors import OptionError


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
    from taskmix.cli._printing._checked import print_check
    from taskmix.cli._printing._display import print_json, say_flags_of
    from taskmix.cli._printing._repeat import given_options
    from taskmix.records import to_plain
    from taskmix.tasks import check_tasks

    if tasks.folder == "digits":
        raise OptionError(
            "A folder or a file should be checked. Found `digits`, the demo's tasks, which are made and "
            "not read."
        )
    names = tuple(name.strip() for name in tasks.only.split(",")) if tasks.only else None
    found = check_tasks(
        tasks.folder, tasks=names, settings=tasks.tasks, cache=tasks.cache, **tasks.keywords()
    )
    line = shlex.join(["taskmix", "advise", tasks.folder, *given_options(context)])
    if json_:
        document = to_plain(found)
        document["notes"] = [say_flags_of(each) for each in found.notes]
        print_json({**document, "next": line})
    else:
        print_check(found, line)

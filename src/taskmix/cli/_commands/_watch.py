"""`taskmix watch`: a live page of a study in progress."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from taskmix.cli._options._completing import study_folders
from taskmix.cli._printing._display import echo


def watch(
    study: Annotated[
        Path,
        typer.Argument(
            help="A folder of runs, as `train --out` or `advise --out` writes it.",
            autocompletion=study_folders,
        ),
    ],
    port: Annotated[
        int, typer.Option("--port", help="Of this machine; 0: any that is free.")
    ] = 8765,
    open_: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
    json_: Annotated[bool, typer.Option("--json", help="Print the state once, and end.")] = False,
) -> None:
    """Show a study while it runs, as a page that renews itself; only this machine can see it.

    It reads records and writes nothing. Ctrl-C ends it; the study goes on.

    Example: taskmix watch study --open
    """
    from taskmix.cli._printing._display import print_json
    from taskmix.watch import StudyServer, StudyWatcher

    watcher = StudyWatcher(study)
    state = watcher.look()  # a folder that is no study is told at once
    if json_:
        print_json(state)
        return
    with StudyServer(watcher, port=port) as server:
        echo(f"Watching {study} at {server.address} (Ctrl-C ends it).")
        if open_:
            _open(server.address)
        server.serve_forever()


def _open(address: str) -> None:
    """By a process that ends at once: what we started ourselves, Ctrl-C would end with us."""
    import subprocess
    import sys

    quiet = subprocess.DEVNULL
    subprocess.run(
        [sys.executable, "-m", "webbrowser", "-t", address],
        stdout=quiet,
        stderr=quiet,
        check=False,
        timeout=30,
    )

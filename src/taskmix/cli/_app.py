"""The application: one command a file, and errors as one sentence with an exit code."""

from __future__ import annotations

import errno
import sys
from typing import Annotated

import typer

import taskmix
from taskmix.cli._advise import advise
from taskmix.cli._demo import demo
from taskmix.cli._improve import improve
from taskmix.cli._laws import laws
from taskmix.cli._predict import predict
from taskmix.cli._report import report
from taskmix.cli._reproduce import app as reproduce
from taskmix.cli._sequences import sequences
from taskmix.cli._simulate import simulate
from taskmix.cli._train import train
from taskmix.cli._transfer import transfer
from taskmix.errors import InputError, TaskmixError

app = typer.Typer(
    name="taskmix",
    help="One model, several tasks, one budget: how much of each task, at what weight, and which "
    "tasks together.",
    epilog="Start with: taskmix demo",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(demo)
app.command()(advise)
app.command()(train)
app.command()(predict)
app.command()(report)
app.command()(improve)
app.command()(transfer)
app.command()(sequences)
app.command()(simulate)
app.command()(laws)
app.add_typer(reproduce, name="reproduce")


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"taskmix {taskmix.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


def main() -> None:
    """Runs a command. Exit codes: 0 done, 1 a run failed, 2 the input was wrong, 130 stopped."""
    try:
        app()
    except InputError as error:
        _say(f"taskmix: {error}")
        sys.exit(2)
    except TaskmixError as error:
        _say(f"taskmix: {error}")
        sys.exit(1)
    except OSError as error:
        if error.errno != errno.ENAMETOOLONG:
            raise
        found = str(error.filename)[:60]
        _say(
            f"taskmix: A path should be one that a file can have. Found one too long: {found!r}..."
        )
        sys.exit(2)


def _say(sentence: str) -> None:
    typer.echo(sentence, err=True)

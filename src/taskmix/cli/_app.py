"""The application: one command a file, and errors as one sentence with an exit code."""

from __future__ import annotations

import errno
import io
import os
import sys
import warnings
from typing import Annotated, Any

import typer

import taskmix
from taskmix.cli._commands._advise import advise_command
from taskmix.cli._commands._check import check
from taskmix.cli._commands._demo import demo
from taskmix.cli._commands._improve import improve
from taskmix.cli._commands._laws import laws
from taskmix.cli._commands._mix import mix
from taskmix.cli._commands._plan import app as plan
from taskmix.cli._commands._predict import predict
from taskmix.cli._commands._report import report
from taskmix.cli._commands._sequences_app import app as sequences
from taskmix.cli._commands._simulate import simulate
from taskmix.cli._commands._swarm import swarm
from taskmix.cli._commands._train import train_command
from taskmix.cli._commands._transfer import transfer
from taskmix.cli._commands._watch import watch
from taskmix.cli._options import grouped
from taskmix.cli._printing._display import echo, note
from taskmix.cli._reproducing._app import app as reproduce
from taskmix.errors import InputError, TaskmixError, TaskmixWarning

_show_as_usual = warnings.showwarning


app = typer.Typer(
    name="taskmix",
    help="One model, several tasks, one budget: how much of each task, at what weight, and which "
    "tasks together.",
    epilog="Start with: taskmix demo",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (
    demo,
    check,
    advise_command,
    train_command,
    predict,
    report,
    watch,
    improve,
    transfer,
    swarm,
    simulate,
    laws,
    mix,
):
    app.command(command.__name__.removesuffix("_command"))(grouped(command))
app.add_typer(sequences, name="sequences")
app.add_typer(plan, name="plan")
app.add_typer(reproduce, name="reproduce")


def _version(wanted: bool) -> None:
    if wanted:
        echo(f"taskmix {taskmix.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


def run_command() -> None:
    """Runs a command. Exit codes: 0 done, 1 a run failed, 2 the input was wrong, 130 stopped."""
    warnings.showwarning = _show_warning
    # Workers are told by it too; who wants to hear more sets it before.
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    try:
        sys.exit(app(standalone_mode=False))
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
    except Exception as error:
        if not hasattr(error, "show"):  # as the errors of options have, in click or in typer
            raise
        said = io.StringIO()
        error.show(said)
        for line in said.getvalue().rstrip("\n").split("\n"):
            _say(line)
        sys.exit(getattr(error, "exit_code", 1))


def _say(sentence: str) -> None:
    echo(sentence, err=True)


def _show_warning(
    message: Warning | str, category: type[Warning], *place: Any, **more: Any
) -> None:
    """Ours are notes; any other is a mistake of ours that should be seen."""
    if issubclass(category, TaskmixWarning):
        note(str(message))
    else:
        _show_as_usual(message, category, *place, **more)

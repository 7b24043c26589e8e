"""The application: one command a file, and errors as one sentence with an exit code."""

from __future__ import annotations

import errno
import io
import os
import sys
import tempfile
import warnings
from typing import Annotated, Any

import typer

import taskmix
from taskmix._gone import gone_command, gone_option
from taskmix.cli._commands._advise import advise_command, demo
from taskmix.cli._commands._check import check
from taskmix.cli._commands._improve import improve
from taskmix.cli._commands._laws import laws
from taskmix.cli._commands._mix import mix
from taskmix.cli._commands._plan import app as plan
from taskmix.cli._commands._predict import predict
from taskmix.cli._commands._report import report
from taskmix.cli._commands._sequence_models import adapt, next_symbol, sample, score
from taskmix.cli._commands._sequences import sequences
from taskmix.cli._commands._simulate import simulate
from taskmix.cli._commands._swarm import swarm
from taskmix.cli._commands._train import train_command
from taskmix.cli._commands._transfer import transfer
from taskmix.cli._options._groups import command_group, grouped
from taskmix.cli._printing._display import echo, note
from taskmix.errors import InputError, TaskmixError, TaskmixWarning

_show_as_usual = warnings.showwarning
_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}

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
    improve,
    transfer,
    swarm,
    mix,
):
    app.command(command.__name__.removesuffix("_command"))(grouped(command))
app.add_typer(
    command_group(
        {"find": laws, "simulate": simulate},
        "Formulas for a column of results, and artificial tasks to look for them in. "
        "Example: taskmix laws results.csv --explain f1 --inputs n,T",
        unless_named="find",
    ),
    name="laws",
)
app.add_typer(
    command_group(
        {"fit": sequences, "score": score, "next": next_symbol, "sample": sample, "adapt": adapt},
        "Tasks that are few sequences each, as mixtures of generators that all tasks share. "
        "Example: taskmix sequences names/ --characters",
        unless_named="fit",
    ),
    name="sequences",
)
app.add_typer(plan, name="plan")


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
    try:
        tempfile.gettempdir()
    except FileNotFoundError:
        # All disks are full. Libraries ask when they are imported, and most never write there.
        tempfile.tempdir = os.environ.get("TMPDIR", "/tmp")
        warnings.filterwarnings("ignore", message=".*joblib will operate in serial mode")
    # Workers are told by it too; who wants to hear more sets it before.
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    try:
        if gone := gone_command(sys.argv[1:]):
            raise InputError(gone)
        sys.exit(app(standalone_mode=False))
    except InputError as error:
        _say(f"taskmix: {error}")
        sys.exit(2)
    except TaskmixError as error:
        _say(f"taskmix: {error}")
        sys.exit(1)
    except OSError as error:
        place, reason = str(error.filename or "what is printed")[:60], error.strerror
        if error.errno == errno.ENAMETOOLONG:
            _say(
                f"taskmix: A path should be one that a file can have. Found one too long: {place!r}..."
            )
            sys.exit(2)
        if error.errno not in _NO_ROOM:
            raise
        _say(
            f"taskmix: There should be room for {place}. Found: {reason}. Free some and run again."
        )
        sys.exit(1)
    except Exception as error:
        if not hasattr(error, "show"):  # as the errors of options have, in click or in typer
            raise
        if gone := _gone_option(error):
            _say(f"taskmix: {gone}")
            sys.exit(2)
        said = io.StringIO()
        error.show(said)
        for line in said.getvalue().rstrip("\n").split("\n"):
            _say(line)
        sys.exit(getattr(error, "exit_code", 1))


def _gone_option(error: Any) -> str | None:
    """The sentence for an error about an option that is gone."""
    context, names = getattr(error, "ctx", None), list[str]()
    while context is not None and context.parent is not None:
        names.insert(0, context.info_name)
        context = context.parent
    return gone_option(" ".join(names), getattr(error, "option_name", ""))


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

"""`taskmix sequences`: a group of commands of which the first, which fits, need not be named."""

from __future__ import annotations

import typer
from typer.core import TyperGroup

from taskmix.cli._commands._sequence_models import adapt, next_symbol, sample, score
from taskmix.cli._commands._sequences import sequences
from taskmix.cli._options import grouped

FIT = "fit"  # `taskmix sequences FOLDER` is `taskmix sequences fit FOLDER`


class _FitUnlessNamed(TyperGroup):
    """Takes whatever does not begin with the name of a command for what is fitted."""

    unless_named = FIT

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        named = bool(args) and args[0] in self.commands
        return super().parse_args(ctx, args if named else [self.unless_named, *args])


app = typer.Typer(
    cls=_FitUnlessNamed,
    help="Tasks that are few sequences each, as mixtures of generators that all tasks share. "
    "Example: taskmix sequences names/ --characters",
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for name, command in (
    (FIT, sequences),
    ("score", score),
    ("next", next_symbol),
    ("sample", sample),
    ("adapt", adapt),
):
    app.command(name)(grouped(command))

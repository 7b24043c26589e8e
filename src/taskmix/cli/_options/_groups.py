"""Options and commands that belong together.

Options that belong together are declared once, as a dataclass that a command takes as one parameter.

@dataclass(frozen=True, kw_only=True)
class Paint:
    colour: Annotated[str, typer.Option()] = "red"

def draw(paint: Paint, size: Annotated[int, typer.Option("--size")] = 1) -> None: ...

app.command()(grouped(draw))  # taskmix draw --colour blue --size 2
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from typing import Any, get_type_hints

import typer
from typer.core import TyperGroup

from taskmix.errors import OptionError, TaskmixError


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """The command with every field of its dataclasses as an option of its own."""
    groups: dict[str, Any] = {}
    parameters, shared = [], []
    for parameter in inspect.signature(command, eval_str=True).parameters.values():
        if is_dataclass(parameter.annotation):
            groups[parameter.name] = parameter.annotation
            shared += _options(parameter.annotation)
        else:
            parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))
    parameters += shared  # what is special about a command comes first in its help

    flags = {each.name: _flag(each) for each in parameters}

    def called(**given: Any) -> None:
        made = {
            name: group(**{each.name: given.pop(each.name) for each in fields(group)})
            for name, group in groups.items()
        }
        try:
            command(**made, **given)
        except TaskmixError as error:
            error.args = (say_flags(error, flags),)
            raise

    called.__name__, called.__doc__ = command.__name__, command.__doc__
    called.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    called.__annotations__ = {each.name: each.annotation for each in parameters}
    return called


def say_flags(error: TaskmixError, flags: Mapping[str, str]) -> str:
    """The sentence of an error with options where it names arguments of a call.

    An `OptionError` that begins with a name in backticks is about that argument.
    """
    words = str(error)
    named = set(error.arguments)
    if isinstance(error, OptionError) and (first := re.match(r"`(\w+)`", words)):
        named.add(first[1])
    for name in named & flags.keys():
        words = words.replace(f"`{name}`", f"`{flags[name]}`")
    return words


def _flag(parameter: inspect.Parameter) -> str:
    """How an option is written: the first of its spellings."""
    for each in getattr(parameter.annotation, "__metadata__", ()):
        # Inside `Annotated` the first spelling stands where a default would otherwise.
        for spelling in (each.default, *(each.param_decls or ())):
            if isinstance(spelling, str) and spelling.startswith("-"):
                return spelling.split("/")[0]
    return f"--{parameter.name.replace('_', '-')}"


def _options(group: Any) -> list[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    return [
        inspect.Parameter(
            each.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=_default(each),
            annotation=hints[each.name],
        )
        for each in fields(group)
    ]


def _default(field: Field[Any]) -> Any:
    return inspect.Parameter.empty if field.default is MISSING else field.default


def command_group(
    commands: Mapping[str, Callable[..., None]], help_: str, *, unless_named: str
) -> typer.Typer:
    """A group of commands of which one need not be named."""

    class UnlessNamed(TyperGroup):
        """Takes whatever does not begin with the name of a command for that one's words."""

        def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
            named = bool(args) and args[0] in self.commands
            return super().parse_args(ctx, args if named else [unless_named, *args])

    UnlessNamed.unless_named = unless_named  # type: ignore[attr-defined]
    group = typer.Typer(
        cls=UnlessNamed,
        help=help_,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    for name, command in commands.items():
        group.command(name)(grouped(command))
    return group

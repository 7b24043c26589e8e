from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, get_args

import pytest
import typer

from taskmix.cli._app import app
from taskmix.cli._options import grouped
from taskmix.errors import InputError, OptionError, TaskmixError


def options(command: Any, path: str = "") -> Iterator[tuple[str, str, Any]]:
    """Every flag with the command it is of and the option."""
    for name, each in getattr(command, "commands", {}).items():
        yield from options(each, f"{path} {name}".strip())
    for option in command.params:
        for flag in option.opts:
            if flag.startswith("--"):
                yield flag, path, option


def kind_of(option: Any) -> Any:
    annotation = option.type_descriptor.annotation
    return get_args(annotation)[0] if get_args(annotation) else annotation


def test_a_flag_means_the_same_kind_of_thing_in_every_command() -> None:
    kinds: dict[str, dict[str, Any]] = {}
    for flag, path, option in options(typer.main.get_command(app)):
        kinds.setdefault(flag, {})[path] = kind_of(option)
    differ = {flag: found for flag, found in kinds.items() if len(set(found.values())) > 1}
    assert not differ


def test_out_is_always_a_folder_and_plan_is_always_read() -> None:
    for flag, path, option in options(typer.main.get_command(app)):
        if flag == "--out":
            said = option.help.lower()
            assert any(word in said for word in ("study", "folder", "where")), path
        assert flag != "--plan" or path == "train"


@dataclass(frozen=True, kw_only=True)
class PaintOptions:
    """Options that belong together."""

    colour: Annotated[str, typer.Option("--colour")] = "red"
    coats: Annotated[int, typer.Option("--coats/-c")] = 1
    drying_time: Annotated[int, typer.Option("--wait")] = 1


def run(command: Any, *words: str) -> None:
    made = typer.Typer()
    made.command()(grouped(command))
    made(list(words), standalone_mode=False)


def test_options_of_a_group_are_options_of_the_command_and_come_as_one_object() -> None:
    seen: list[tuple[PaintOptions, int]] = []

    def draw(paint: PaintOptions, size: Annotated[int, typer.Option("--size")] = 1) -> None:
        seen.append((paint, size))

    run(draw, "--colour", "blue", "--size", "3")
    run(draw)
    assert seen == [(PaintOptions(colour="blue"), 3), (PaintOptions(), 1)]


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OptionError("`coats` should be 1 or more. Found 0."), "`--coats` should be 1 or more."),
        (InputError("Give more `coats`.", arguments=("coats",)), "Give more `--coats`."),
        (OptionError("`drying_time` should be 1 or more."), "`--wait` should be 1 or more."),
        (InputError("There is no column `colour`."), "There is no column `colour`."),
        (OptionError("A wall should be flat. Found `colour`."), "Found `colour`."),
    ],
)
def test_errors_name_arguments_and_the_command_line_says_the_flag(
    error: TaskmixError, said: str
) -> None:
    def draw(paint: PaintOptions) -> None:
        raise error

    with pytest.raises(type(error)) as found:
        run(draw)
    assert said in str(found.value)

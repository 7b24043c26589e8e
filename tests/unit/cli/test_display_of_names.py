"""Names come from files, and may have anything in them that a file name may have."""

from __future__ import annotations

import ast
import shutil
from pathlib import Path

import taskmix
from taskmix.errors import printable

from .running import Program

SOURCES = sorted((Path(taskmix.__file__).parent).rglob("*.py"))
PRINTS = {"typer.echo", "typer.secho", "click.echo", "Console", "print", "sys.stdout.write"}
# The second from Python, by way of `printable`.
MAY_PRINT = {"cli/_printing/_display.py", "adviser/_showing.py"}
HOSTILE = "a\x1b[31m\x9b2J\u202e[red]b[/red]:smile:\n"


def test_only_one_file_prints() -> None:
    for path in SOURCES:
        nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        calls = [ast.unparse(node.func) for node in nodes if isinstance(node, ast.Call)]
        found = [call for call in calls if call in PRINTS or call.endswith("onsole.print")]
        place = path.relative_to(Path(taskmix.__file__).parent).as_posix()
        assert bool(found) == (place in MAY_PRINT), (path, found)


def test_a_word_is_shown_in_one_line_that_does_nothing() -> None:
    assert printable("naïve ± 東京 🙂") == "naïve ± 東京 🙂"
    assert printable(HOSTILE) == r"a\x1b[31m\x9b2J\u202e[red]b[/red]:smile:\n"
    assert printable("\udc80") == r"\udc80", "of a file name that is no Unicode"


def test_a_folder_with_a_hostile_name_is_told_safely_by_every_command(
    folder: Path, tmp_path: Path, cli: Program
) -> None:
    name = "x\x1b]0;owned\x07[bold]"
    shutil.move(folder / "tool", folder / name)
    out = tmp_path / f"study{name}"
    words = ("--steps", "12", "--batch-size", "4", "--out", out, "--keep", out / "model")
    assert cli("train", folder, *words) == 0
    assert cli("improve", out, "--write-plan", out / "plan.json") == 0
    assert cli("report", out) == 0
    rows = folder / "fruit" / "test.jsonl"
    assert cli("predict", out / "model", rows, "--task", name) == 0
    assert cli("train", folder / "no\x1b[2J", "--out", out) == 2
    assert cli("train", folder, "extra\x1b[2J") == 2
    assert cli("train", folder, "--steps", "\x1b[2J") == 2
    shown = cli.said()
    for line in (shown.out + shown.err).split("\n"):
        assert line.isprintable(), line
    assert r"x\x1b]0;owned\x07[bold]" in shown.out

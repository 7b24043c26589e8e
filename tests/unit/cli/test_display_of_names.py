"""Names come from files, and may have anything in them that a file name may have."""

from __future__ import annotations

import ast
import io
import json
import shutil
import sys
from pathlib import Path

import pytest

import taskmix
from taskmix.cli._printing import _display
from taskmix.cli._printing._display import echo, note, print_json, runs_bar, show
from taskmix.engine import DigitsSource, Progress, Run
from taskmix.errors import printable
from taskmix.models import Perceptron

from .running import run_cli

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


def test_lines_tables_and_json_have_no_control_characters(
    capsys: pytest.CaptureFixture[str],
) -> None:
    from rich.table import Table

    echo(HOSTILE)
    note(HOSTILE)
    table = Table(title=HOSTILE, caption=HOSTILE)
    table.add_column(HOSTILE)
    table.add_row(HOSTILE)
    show(table, wide=True)
    print_json({HOSTILE: [HOSTILE, float("nan")]})
    shown = capsys.readouterr()
    for line in (shown.out + shown.err).split("\n"):
        assert line.isprintable(), line
    assert shown.out.count(r"a\x1b[31m\x9b2J\u202e[red]b[/red]:smile:\n") >= 4, (
        "as it is, no markup"
    )
    found = json.loads(shown.out[shown.out.index("{") :])
    assert found == {HOSTILE: [HOSTILE, None]}, "JSON reads as what was written"


def test_a_bar_shows_names_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = io.StringIO()
    make = _display.make_console
    how = {"file": shown, "force_terminal": True, "width": 200, "color_system": None}
    monkeypatch.setattr(_display, "make_console", lambda **_: make(**how))
    run = Run(label=HOSTILE, source=DigitsSource(), architecture=Perceptron(), steps=1, seed=0)
    with runs_bar([run], quiet=False, title=HOSTILE) as tell:
        tell(Progress(0, 1))
    text = shown.getvalue()
    assert r"\x1b[31m\x9b2J\u202e[red]b[/red]:smile:\n" in text
    assert "\x1b[31m" not in text
    assert "\u202e" not in text


def test_a_folder_with_a_hostile_name_is_told_safely_by_every_command(
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    name = "x\x1b]0;owned\x07[bold]"
    shutil.move(folder / "tool", folder / name)
    out = tmp_path / f"study{name}"
    words = ("--steps", "12", "--batch-size", "4", "--out", out, "--keep", out / "model")
    assert run_cli(monkeypatch, "train", folder, *words) == 0
    assert run_cli(monkeypatch, "improve", out, "--write-plan", out / "plan.json") == 0
    assert run_cli(monkeypatch, "report", out) == 0
    rows = folder / "fruit" / "test.jsonl"
    assert run_cli(monkeypatch, "predict", out / "model", rows, "--task", name) == 0
    assert run_cli(monkeypatch, "train", folder / "no\x1b[2J", "--out", out) == 2
    assert run_cli(monkeypatch, "train", folder, "extra\x1b[2J") == 2
    assert run_cli(monkeypatch, "train", folder, "--steps", "\x1b[2J") == 2
    shown = capsys.readouterr()
    for line in (shown.out + shown.err).split("\n"):
        assert line.isprintable(), line
    assert r"x\x1b]0;owned\x07[bold]" in shown.out


def test_progress_is_not_drawn_into_a_file(
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert not sys.stderr.isatty()
    assert run_cli(monkeypatch, "train", folder, "--steps", "3", "--out", tmp_path / "study") == 0
    assert capsys.readouterr().err == ""

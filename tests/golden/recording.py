"""Runs a story's commands in this process, and tells what each printed and wrote as one document."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
import re
import shlex
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cases import STORIES
from inputs import make_inputs
from python_cases import PYTHON_CASES

from taskmix.cli import run_command

NAMES = sorted([*STORIES, *PYTHON_CASES])
DATA = Path(__file__).parent / "data"
MOST_ROWS = 40  # of a written table that are recorded


def record(name: str, folder: Path) -> list[dict[str, Any]]:
    """What a case says, run in an empty folder."""
    with _inside(folder):
        make_inputs(folder / "in")
        if name in PYTHON_CASES:
            return [{"command": name, "json": _plain(PYTHON_CASES[name]())}]
        told = [_record_command(words, folder) for words in STORIES[name]]
        return [_without_choice(each) for each in told]


def _without_choice(told: Any) -> Any:
    """Without how one of several surrogates was chosen: no golden should hold on to that."""
    if isinstance(told, dict):
        kept = told.keys() - {"surrogate", "left_out_errors"}
        return {key: _without_choice(value) for key, value in told.items() if key in kept}
    return [_without_choice(each) for each in told] if isinstance(told, list) else told


def _record_command(command: str, folder: Path) -> dict[str, Any]:
    before = _written(folder)
    code, printed, told = _run([*shlex.split(command), "--json"])
    document: dict[str, Any] = {"command": f"taskmix {command} --json", "exit": code}
    if code == 0:
        document["json"] = json.loads(printed)
    else:
        document["error"] = _error_of(told)
    new = [path for path, stamp in _written(folder).items() if before.get(path) != stamp]
    document["files"] = dict(sorted(Counter(map(_name_of, new)).items()))
    contents = {path: _contents(folder / path) for path in sorted(new)}
    document["contents"] = {path: told for path, told in contents.items() if told is not None}
    return document


def _run(words: list[str]) -> tuple[int, str, str]:
    out, error = io.StringIO(), io.StringIO()
    before = sys.argv
    sys.argv = ["taskmix", *words]
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(error):
            run_command()
        code = 0
    except SystemExit as ended:
        code = int(ended.code or 0)
    finally:
        sys.argv = before
    return code, out.getvalue(), error.getvalue()


def _error_of(told: str) -> str | None:
    """The one sentence that a refusal ends with; None for a traceback, or for silence."""
    found = re.findall(r"^(?:taskmix|Error): (.*(?:\n(?!\w).*)*)", told, flags=re.MULTILINE)
    return None if "Traceback" in told or len(found) != 1 else " ".join(found[0].split())


def _written(folder: Path) -> dict[str, tuple[int, int]]:
    """The files in a folder, and what changes where one is written again."""
    found = {}
    for path in folder.rglob("*"):
        if path.is_file():
            status = path.stat()
            found[path.relative_to(folder).as_posix()] = (status.st_mtime_ns, status.st_ino)
    return found


def _name_of(path: str) -> str:
    """A file's path without what is different in every run: hashes, process numbers, versions."""
    return re.sub(r"[0-9a-f]{8,}|\d{4,}", "*", path)


def _contents(path: Path) -> Any:
    """Plans and small tables, which people read on; None for other files."""
    if path.suffix == ".csv":
        with path.open(newline="") as file:
            return [[_number_of(cell) for cell in row] for row in csv.reader(file)][:MOST_ROWS]
    if path.name.endswith("plan.json") or path.name == "weights.json":
        return json.loads(path.read_text())
    return None


def _number_of(cell: str) -> float | str:
    try:
        return float(cell)
    except ValueError:
        return cell


def _plain(told: Any) -> Any:
    return json.loads(json.dumps(told, default=lambda each: each.tolist()))


@contextlib.contextmanager
def _inside(folder: Path) -> Iterator[None]:
    """In a folder, and without waiting for the disk."""
    before, sync = Path.cwd(), os.fsync
    os.chdir(folder)
    os.fsync = lambda descriptor: None  # type: ignore[assignment]
    try:
        yield
    finally:
        os.chdir(before)
        os.fsync = sync

"""How tasks are made from a folder, in TOML.

`task.toml` in a task's folder has the keys of `TaskSettings`; one in the folder above holds for all
tasks in it. A settings file has a `[[task]]` table for each task, with these keys and

- `name`, the task's name;
- `folder`, where its files lie, inside the source folder (`.` unless said);
- `file`, one table there, instead of the files `train`, `dev` and `test`.

What is not said is found out from the files, as `load_tasks` explains.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal, NoReturn, get_args

from taskmix.errors import OptionError, TaskFileError
from taskmix.tasks._formats._streams import open_file
from taskmix.tasks._formats._words import bad_file, is_too_long, quoted, show_path, tame
from taskmix.tasks._reading import TaskKind
from taskmix.tasks._scoring._metrics import find_metric

Symbols = Literal["words", "characters"]

_SIZE_LIMIT = 2**20
_LISTS = ("label", "labels", "columns", "features", "ignore", "values", "prompt")
_FLAGS = ("first_symbol_is_task", "extend_labels")


@dataclass(frozen=True, kw_only=True)
class TaskSettings:
    """What is known of a task before its files are read; None is to be found out."""

    label: tuple[str, ...] | None = None  # target columns; of CoNLL also by number, from 1
    labels: tuple[str, ...] | None = None  # keep the rows with these labels; their order
    metric: str | None = None
    kind: TaskKind | None = None
    separator: str | None = None  # what stands between the labels of a cell that has several
    text: str | None = None  # the column that holds the text
    text2: str | None = None  # the column that holds the second text of a pair
    tokens: str | None = None  # the column that holds lists of tokens
    prompt: tuple[str, ...] | None = None  # the columns that a prompt is made of
    answer: str | None = None  # the column that holds the answer to a prompt
    columns: tuple[str, ...] | None = None  # names for the columns of CoNLL
    features: tuple[str, ...] | None = None  # the columns of a table that are inputs
    ignore: tuple[str, ...] | None = None  # the columns of a table that are not
    task_column: str | None = None  # the column that names the task of a row
    split_column: str | None = None
    sequence: str | None = None  # the column with a sequence in each cell, or with its number
    time: str | None = None  # the column that orders the rows of a sequence
    values: tuple[str, ...] | None = None  # the columns observed at each time
    symbols: Symbols | None = None  # how a cell is cut into symbols; at white space unless said
    first_symbol_is_task: bool | None = None
    extend_labels: bool | None = None  # whether labels that train does not have are accepted

    def __post_init__(self) -> None:
        if self.metric is not None:
            find_metric(self.metric)
        _one_of("kind", self.kind, get_args(TaskKind))
        _one_of("symbols", self.symbols, get_args(Symbols))

    def over(self, other: TaskSettings) -> TaskSettings:
        """These settings, and the other ones where these say nothing."""
        said = {
            item.name: getattr(self, item.name)
            for item in fields(self)
            if getattr(self, item.name) is not None
        }
        return replace(other, **said)


@dataclass(frozen=True, kw_only=True)
class TaskEntry:
    """One `[[task]]` of a settings file."""

    name: str
    folder: str = "."
    file: str | None = None
    settings: TaskSettings = field(default_factory=TaskSettings)


def read_task_settings(folder: Path) -> TaskSettings:
    """The folder's `task.toml`; nothing said where there is none."""
    path = folder / "task.toml"
    if not path.exists():
        return TaskSettings()
    return _settings(path, _read_toml(path), "task.toml")


def read_task_entries(path: Path) -> tuple[TaskEntry, ...]:
    """The tasks of a settings file, with distinct names."""
    document = _read_toml(path)
    _refuse_unknown(path, document, {"task"}, "the top of a settings file")
    tables = document.get("task")
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        should = "A settings file should have a table `[[task]]` for each task."
        bad_file(path, should, "none" if tables is None else quoted(tables), "Add one.")
    entries: list[TaskEntry] = []
    for number, table in enumerate(tables, start=1):
        where = f"[[task]] number {number}"
        own = {key: table.pop(key) for key in ("name", "folder", "file") if key in table}
        for key, value in own.items():
            if not isinstance(value, str) or not value:
                _wrong_type(path, key, where, "text", value)
        if "name" not in own:
            should, remedy = "Every [[task]] should have a `name`.", "Add `name = ...`."
            bad_file(path, should, f"none in {where}", remedy)
        if any(entry.name == own["name"] for entry in entries):
            should, remedy = "Task names should differ.", "Rename one of the two."
            bad_file(path, should, f"{quoted(own['name'])} twice", remedy)
        entries.append(TaskEntry(**own, settings=_settings(path, table, where)))
    return tuple(entries)


def path_inside(root: Path, folder: Path, relative: str, settings: Path) -> Path:
    """The path below `folder`; one that leads out of `root`, also by a link, is refused."""
    path = Path(relative)
    should = "A path in a settings file should lie inside the source folder."
    remedy = "Give a path below it, without `..`."
    if path.is_absolute() or ".." in path.parts or "\0" in relative:
        bad_file(settings, should, quoted(relative), remedy)
    if is_too_long(folder / path):
        bad_file(settings, "A path should be one that a file can have.", quoted(relative), remedy)
    whole = folder / path
    if not whole.resolve().is_relative_to(root.resolve()):
        bad_file(settings, should, f"{quoted(relative)}, a link that leads out of it,", remedy)
    return whole


def _read_toml(path: Path) -> dict[str, Any]:
    with open_file(path) as file:
        data = file.read(_SIZE_LIMIT + 1)
    should, remedy = "A settings file should be TOML.", "Correct it; see https://toml.io."
    if len(data) > _SIZE_LIMIT:
        bad_file(path, should, f"more than {_SIZE_LIMIT} bytes", "Give a smaller file.")
    try:
        return tomllib.loads(data.decode())
    except UnicodeDecodeError as error:
        row = data.count(b"\n", 0, error.start) + 1
        bad_file(path, should, "bytes that are not UTF-8", "Save it as UTF-8.", row)
    except tomllib.TOMLDecodeError as error:
        place = re.search(r" \(at line (\d+), column \d+\)$", str(error))
        reason = str(error)[: place.start()] if place else str(error)
        bad_file(path, should, quoted(reason), remedy, int(place[1]) if place else None)
    except (RecursionError, ValueError):  # brackets, or digits, by the thousand
        bad_file(path, should, "values too large to read", remedy)


def _settings(path: Path, table: Mapping[str, Any], where: str) -> TaskSettings:
    _refuse_unknown(path, table, {item.name for item in fields(TaskSettings)}, where)
    values: dict[str, Any] = {}
    for key, value in table.items():
        if key in _LISTS:
            values[key], wanted = _texts(value), "a list of names"
        elif key in _FLAGS:
            values[key], wanted = _flag(value), "true or false"
        else:
            values[key], wanted = _text(value), "text"
        if values[key] is None:
            _wrong_type(path, key, where, wanted, value)
    try:
        return TaskSettings(**values)
    except OptionError as error:
        sentence = tame(f"{error} It stands in {show_path(path)}, {where}.")
        raise TaskFileError(sentence, path=path) from None


def _refuse_unknown(path: Path, table: Mapping[str, Any], known: set[str], where: str) -> None:
    for key in table:
        if key not in known:
            should = f"Keys of {where} should be among {', '.join(sorted(known))}."
            bad_file(path, should, quoted(key), "Check the spelling.")


def _wrong_type(path: Path, key: str, where: str, wanted: str, value: object) -> NoReturn:
    should = f"`{key}` of {where} should be {wanted}."
    bad_file(path, should, quoted(value), "Correct the value.")


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _texts(value: Any) -> tuple[str, ...] | None:
    """Names; one alone needs no brackets, numbers (of CoNLL columns, of classes) no quotes."""
    items = value if isinstance(value, list) else [value]
    if not items or not all(isinstance(item, str | int) for item in items):
        return None
    return tuple(str(item).lower() if isinstance(item, bool) else str(item) for item in items)


def _flag(value: Any) -> bool | None:
    return value if isinstance(value, bool) else None


def _one_of(name: str, value: str | None, choices: tuple[str, ...]) -> None:
    if value is not None and value not in choices:
        raise OptionError(
            f"`{name}` should be one of {', '.join(choices)}. Found {quoted(value)}. "
            "Check the spelling."
        )

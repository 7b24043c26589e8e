"""What of a file may stand in a sentence: names and cells may be endless, or steer a terminal.

`Notes` are what the loader decided by itself, one sentence for all tasks it holds for. A word in
backticks with `=` behind it is an argument of `load_tasks`, as in `label="stars"` or `features=...`; the
command line shows the flag instead.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import NoReturn

from taskmix.errors import TaskFileError

_LONGEST_QUOTE = 500  # characters of a sentence that may come from a file
_LONGEST_NAME = 255  # bytes, of a file
_LONGEST_PATH = 4000  # bytes; the kernel takes no longer one
_LINES = (".csv", ".tsv", ".tab", ".jsonl", ".ndjson", ".conll", ".txt", ".vec", ".toml")


def quoted(thing: object, *, limit: int = 60) -> str:
    """A value as it may stand in a sentence: escaped, and cut when it is long."""
    if isinstance(thing, bytes):
        thing = thing[: 4 * limit].decode("utf-8", "backslashreplace")
    if isinstance(thing, str):
        thing = thing[: 2 * limit]
    text = repr(thing)
    text = text if text.isprintable() else ascii(thing)
    return text if len(text) <= limit else f"{text[: limit - 4]}...{text[-1]}"


def show_path(path: Path) -> str:
    """A path as it may stand in a sentence, whatever bytes its name has."""
    text = str(path)
    text = text if len(text) <= _LONGEST_QUOTE else f"{text[:_LONGEST_QUOTE]}..."
    return text if text.isprintable() else ascii(text)[1:-1]


def show_place(path: Path, number: int) -> str:
    """`a.csv, line 7` as editors count, and `a.xlsx, row 7` of a file without lines."""
    is_text = path.name.lower().removesuffix(".gz").endswith(_LINES)
    return f"{show_path(path)}, {'line' if is_text else 'row'} {number}"


def bad_file(path: Path, should: str, found: str, remedy: str, row: int | None = None) -> NoReturn:
    """Raise the sentence every bad task file gets."""
    where = show_path(path) if row is None else show_place(path, row)
    should, found = tame(should), tame(found)
    raise TaskFileError(f"{should} Found {found} in {where}. {remedy}", path=path, row=row)


def is_too_long(path: Path) -> bool:
    """Whether no file can have this path: asking the system for one would raise."""
    parts = [part.encode("utf-8", "surrogatepass") for part in path.parts]
    return max(map(len, parts), default=0) > _LONGEST_NAME or sum(map(len, parts)) > _LONGEST_PATH


def tame(words: str) -> str:
    """Names of columns come from files: they may be endless, or steer a terminal."""
    words = words if len(words) <= _LONGEST_QUOTE else f"{words[:_LONGEST_QUOTE]}..."
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in words)


_NAMED = 5  # tasks named in a sentence; the rest are counted


class Notes:
    """Collects remarks about tasks."""

    def __init__(self) -> None:
        # By remark, in the order they came up; the inner one is an ordered set.
        self._tasks: dict[str, dict[str, None]] = {}
        self._files: dict[str, list[Path]] = {}  # by remark
        self._suggestions: dict[str, str] = {}  # by task, where it is the only one
        self._made = 0  # tasks

    def add(self, remark: str, task: str | None = None) -> None:
        """Keep a remark (without a full stop), about one task or about the whole."""
        tasks = self._tasks.setdefault(remark, {})
        if task is not None:
            tasks[task] = None

    def add_of_file(self, remark: str, path: Path) -> None:
        """Keep a remark that goes on where the name of the file ends."""
        self._files.setdefault(remark, []).append(path)

    def suggest(self, question: str | None, task: str) -> None:
        """Keep a question (with its mark) that is asked only if this is the only task there is."""
        if question is not None:
            self._suggestions[task] = question

    def count(self, tasks: int) -> None:
        """So many more tasks were made."""
        self._made += tasks

    def sentences(self, kept: Collection[str]) -> tuple[str, ...]:
        """One sentence a remark, as far as it is about the tasks kept."""
        result = [tame(_about_files(remark, paths)) for remark, paths in self._files.items()]
        for remark, tasks in self._tasks.items():
            about = [f"`{task}`" for task in tasks if task in kept]
            if about:
                more = len(about) - _NAMED
                named = ", ".join(about[:_NAMED]) + (f" and {more} more tasks" if more > 0 else "")
                result.append(tame(f"{named}: {remark}."))
            elif not tasks:
                result.append(tame(f"{remark[0].upper()}{remark[1:]}."))
        if self._made == 1:
            result += [tame(words) for task, words in self._suggestions.items() if task in kept]
        return tuple(result)


def _about_files(remark: str, paths: Sequence[Path]) -> str:
    """One sentence for all files a remark holds for; where they are called alike, with their folders."""
    if len(paths) == 1:
        return f"The file {show_path(Path(paths[0].name))} {remark}."
    alike = len({path.name for path in paths}) < len(paths)
    names = [Path(path.parent.name, path.name) if alike else Path(path.name) for path in paths]
    more = len(names) - _NAMED
    shown = ", ".join(map(show_path, names[:_NAMED])) + (f" and {more} more" if more > 0 else "")
    return f"Each of {len(names)} files ({shown}) {remark}."

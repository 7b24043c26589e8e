"""What of a file may stand in a sentence: names and cells may be endless, or steer a terminal."""

from __future__ import annotations

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

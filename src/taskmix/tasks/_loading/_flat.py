"""Folders without sub-folders: one file for each task, or several that are its splits.

`books.csv` and `dvd.csv` are two tasks. `books_train.csv` and `books_test.csv`, or `train.books.csv` and
`test.books.csv`, are splits of one. What lies beside data in real folders is no task: hidden files,
locks of spreadsheets (`~$books.xlsx`), READMEs and licences.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from taskmix.tasks._formats import TABLES, bad_file, file_format
from taskmix.tasks._loading._splits import SPLIT_WORDS, order_splits, split_name

_PROSE = re.compile(
    r"(readme|licen[cs]e|notice|changelog|requirements|citation|authors|contributing)\b.*",
    re.IGNORECASE,
)
_NEVER = frozenset({"__macosx", "thumbs.db", "desktop.ini", "__pycache__"})
_WORDS = "|".join(sorted(SPLIT_WORDS, key=len, reverse=True))
_BEHIND = re.compile(rf"(?P<name>.+?)[._\- ]+(?P<split>{_WORDS})", re.IGNORECASE)
_BEFORE = re.compile(rf"(?P<split>{_WORDS})[._\- ]+(?P<name>.+)", re.IGNORECASE)
# Files of one text a line that are called after its label.
_LABELS = frozenset(["pos", "neg", "positive", "negative", "neutral", "ham", "spam"])


def is_hidden(path: Path) -> bool:
    """Whether a file is none of the user's: hidden, a lock or a copy that an editor keeps."""
    name = path.name
    return name.startswith((".", "~$")) or name.endswith("~") or name.lower() in _NEVER


def is_prose(path: Path) -> bool:
    """Whether a file is about the data, and not data."""
    return _PROSE.fullmatch(path.name) is not None


def task_files(entries: Sequence[Path]) -> list[Path]:
    """The files that may be tasks: tables, or where there are none those of other formats.

    Pipes and devices are among them, so that reading refuses them and no task is missed in silence.
    """
    known = {
        path: found[1]
        for path in entries
        if not path.is_dir() and not is_prose(path) and (found := file_format(path)) is not None
    }
    tables = [path for path, found in known.items() if found in TABLES]
    return tables or list(known)


def group_splits(folder: Path, files: Sequence[Path]) -> dict[str, dict[str, Path]]:
    """The files of each task whose names have a task and a split; nothing where none is for training.

    A folder with a plain `train` is one task, in which `test_a` and `test_b` are two of its splits.
    """
    stems = {path: known[0] for path in files if (known := file_format(path)) is not None}
    if any(split_name(stem) is not None for stem in stems.values()):
        return {}
    groups: dict[str, dict[str, Path]] = {}
    for path, stem in stems.items():
        match = _BEHIND.fullmatch(stem) or _BEFORE.fullmatch(stem)
        if match is None:
            continue
        split = split_name(match["split"]) or match["split"]
        own = groups.setdefault(match["name"], {})
        if split in own:
            should = (
                f"A task should have one file for each split, and `{match['name']}` for `{split}`."
            )
            found = f"two, {own[split].name} and {path.name},"
            bad_file(folder, should, found, "Take one of the two away.")
        own[split] = path
    if not any("train" in group for group in groups.values()):
        return {}
    return {
        name: {split: group[split] for split in order_splits(group)}
        for name, group in sorted(groups.items())
    }


def files_by_label(files: Sequence[Path]) -> dict[str, Path] | None:
    """The label of each text file, where all are called after one: `pos.txt` and `neg.txt`."""
    stems = {known[0]: path for path in files if (known := file_format(path)) is not None}
    formats = {known[1] for path in files if (known := file_format(path)) is not None}
    is_so = len(stems) > 1 and formats == {"txt"} and {stem.lower() for stem in stems} <= _LABELS
    return stems if is_so else None

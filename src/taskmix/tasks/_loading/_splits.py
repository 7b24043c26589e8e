"""Which rows are `train`, `dev` and `test`: by the names of files, by a column, or by a fixed rule.

The fixed rule walks the rows in a fixed disorder: the first of every ten goes to `dev`, and the second
to `test` where a whole table is divided. It depends on how many rows there are, and on two things more:

- on strata, which are the classes of a classification: rows are walked class by class, so that each has
  its share of every split. All rows of a class with fewer than three go to `train`, so that no class is
  in `dev` or `test` alone;
- on rows with the same inputs, which go to the same split: otherwise a model could know by heart what it
  is tested on.

So it gives the same rows on every machine, and to every task that shares the rows and the first target.

In a folder without sub-folders `books.csv` and `dvd.csv` are two tasks. `books_train.csv` and
`books_test.csv`, or `train.books.csv` and `test.books.csv`, are splits of one. What lies beside data in
real folders is no task: hidden files, locks of spreadsheets (`~$books.xlsx`), READMEs and licences.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from taskmix.tasks._formats._readers import TABLES, file_format
from taskmix.tasks._formats._words import bad_file

MAIN_SPLITS = ("train", "dev", "test")
_SPLIT_OF_WORD = {
    "train": "train",
    "training": "train",
    "dev": "dev",
    "valid": "dev",
    "val": "dev",
    "validation": "dev",
    "development": "dev",
    "test": "test",
    "testing": "test",
}
SPLIT_WORDS = tuple(_SPLIT_OF_WORD)
_LEAST_ROWS = 3  # of a class that is divided: one for each of train, dev and test
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


def split_name(word: str) -> str | None:
    """The split a word stands for: `valid`, `val` and `validation` are `dev`."""
    return _SPLIT_OF_WORD.get(word.strip().lower())


def name_splits(stems: Iterable[str]) -> dict[str, str]:
    """The split of each stem that names one.

    Where there is no plain `dev`, the first of `dev_...` in the order of the alphabet is `dev`; the
    others are splits under their own names. The same holds for `test`.
    """
    ordered = sorted(set(stems))
    result = {stem: name for stem in ordered if (name := split_name(stem)) is not None}
    for stem in ordered:
        base = split_name(stem.partition("_")[0])
        if stem not in result and base in ("dev", "test"):
            result[stem] = stem if base in result.values() else base
    return result


def split_files(folder: Path, files: Sequence[Path]) -> dict[str, Path]:
    """The file of each split, `train`, `dev` and `test` first."""
    stems = {path: known[0] for path in files if (known := file_format(path)) is not None}
    names = name_splits(stems.values())
    result: dict[str, Path] = {}
    for path, stem in sorted(stems.items()):
        if stem not in names:
            continue
        name = names[stem]
        if name in result:
            should = (
                f"A task should have one file for each split, and `{folder.name}` for `{name}`."
            )
            found = f"two, {result[name].name} and {path.name},"
            bad_file(folder, should, found, "Take one of the two away.")
        result[name] = path
    return dict(sorted(result.items(), key=lambda item: _order(item[0])))


def _order(name: str) -> tuple[int, str]:
    return (MAIN_SPLITS.index(name) if name in MAIN_SPLITS else len(MAIN_SPLITS), name)


def order_splits(names: Iterable[str]) -> tuple[str, ...]:
    """`train`, `dev`, `test`, then the others by name."""
    return tuple(sorted(set(names), key=_order))


def divide_rows(
    count: int,
    strata: NDArray[np.int64] | None = None,  # [row], the class or another whole number
    same: NDArray[np.int64] | None = None,  # [row], equal for rows that must not be parted
) -> NDArray[np.int8]:
    """[row], the position in `MAIN_SPLITS`: 80, 10 and 10 in a hundred, but never none to train on."""
    return _divide(count, strata, same, parts=3)


def put_aside(
    count: int,
    strata: NDArray[np.int64] | None = None,
    same: NDArray[np.int64] | None = None,
) -> NDArray[np.bool_]:
    """[row], whether it goes from `train` to `dev`: a tenth, at least one, but never the only one."""
    return _divide(count, strata, same, parts=2) > 0


def _divide(
    count: int,
    strata: NDArray[np.int64] | None,
    same: NDArray[np.int64] | None,
    *,
    parts: int,
) -> NDArray[np.int8]:
    """[row], 0 for what is trained on, then 1 and, of three parts, 2: every tenth each."""
    if same is not None:
        firsts = _first_rows(same)
        is_first = firsts == np.arange(count)
        if is_first.sum() < min(parts, count):  # too few to give each part one
            return _divide(count, strata, None, parts=parts)
        own = None if strata is None else strata[is_first]
        units = _divide(int(is_first.sum()), own, None, parts=parts)
        return units[np.cumsum(is_first, dtype=np.int32)[firsts] - 1]
    result = np.zeros(count, dtype=np.int8)
    order = _disorder(count)
    if strata is not None:
        code = strata - strata.min(initial=0)
        order = order[in_order(code[order])]
        order = order[np.bincount(code)[code[order]] >= _LEAST_ROWS]
        if len(order) < _LEAST_ROWS:  # all classes are rare
            order = _disorder(count)
    for part in range(1, min(parts, count)):
        result[order[part - 1 :: 10]] = part
    return result


def _first_rows(same: NDArray[np.int64]) -> NDArray[np.int64]:
    """[row], the first of those that are equal to it."""
    is_known = same.max(initial=0) < len(same) and same.min(initial=0) >= 0
    if is_known and (same[same] == same).all() and (same <= np.arange(len(same))).all():
        return same
    _, first, unit = np.unique(same, return_index=True, return_inverse=True)
    return np.asarray(first[unit], dtype=np.int64)


def _disorder(count: int) -> NDArray[np.int64]:
    """A fixed permutation: the numbers below `count` by their hash (SplitMix64, Steele et al. 2014).

    numpy's own generators may change their streams between releases.
    """
    state = (np.arange(1, count + 1, dtype=np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.argsort(state ^ (state >> np.uint64(31)))


def in_order(codes: NDArray[Any]) -> NDArray[np.int64]:
    """The places of some small numbers in their order, those of equal ones as they were."""
    is_small = codes.max(initial=0) < 2**15  # which numpy sorts in one pass
    return np.argsort(codes.astype(np.int16) if is_small else codes, kind="stable")


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

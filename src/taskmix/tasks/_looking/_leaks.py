"""Labels that stand in the inputs: one word, or one column, that tells them nearly always.

A score on such a task says how well the word was found and nothing of the task. Texts are taken for
sets of words, pairs of neighbouring words, and the first and the last word. A class leaks where one of
these is in nearly all of its rows and in hardly any other (F1 0.95), and a task where all its classes
but one do. A column of a table leaks where its values, or as many intervals as there are classes, tell
the label with few errors: under 2 % of the rows and under a tenth of those outside the commonest class,
so that a class that is merely common tells nothing. Both look at some of the rows only.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from taskmix.tasks._task import MISSING, Task

TELLING_F1 = 0.95  # of a word for a class: texts that are about something have no such word
FIRST_ROWS, FIRST_F1 = 24, 0.85  # of each class, before more rows are read
ROWS_OF_TEXT = 300  # looked at, or so many for each class as follows
ROWS_OF_CLASS = 20
MOST_ROWS = 2000
FIRST_WORDS, LAST_WORDS = 100, 20  # of a text, whose pairs are looked at
MOST_CHARACTERS = 20_000  # of a text
FEWEST_OF_CLASS = 8  # rows: fewer have some word in common by chance
FEWEST_ROWS = 30
WRONG_ROWS = 0.02  # of all rows
WRONG_OTHERS = 0.1  # of the rows outside the commonest class
SAME_LINE = 0.999  # the square of a correlation, from which on a column is the target
_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class Leak:
    """What tells the labels."""

    where: str  # in words: a column, or some words
    share: float  # of the rows looked at whose label it tells


def find_leak(task: Task) -> Leak | None:
    """The plainest leak of a task's labels in its inputs to train on; None where there is none."""
    train = task.splits.get("train")
    if train is None or len(train) < FEWEST_ROWS:
        return None
    if task.kind == "regression" and task.inputs == "table":
        return _leak_of_numbers(train.inputs, np.asarray(train.targets, dtype=np.float64))
    if task.kind == "multilabel":
        return _leak_of_labels(task)
    if task.kind != "classification":
        return None
    if task.inputs == "table":
        return _leak_of_columns(train.inputs, np.asarray(train.targets, dtype=np.int64))
    if task.inputs in ("text", "pair"):
        return _leak_of_words(task)
    return None


def _leak_of_labels(task: Task) -> Leak | None:
    """Where rows have several labels: each that enough rows have is told, taken by itself."""
    train = task.splits["train"]
    leaks = []
    for place in np.flatnonzero((train.targets == 1).sum(axis=0) >= FEWEST_OF_CLASS):
        split = replace(train, targets=train.targets[:, place].astype(np.int64))
        alone = replace(
            task, kind="classification", labels=("no", task.labels[place]), splits={"train": split}
        )
        leaks.append(find_leak(alone))
        if leaks[-1] is None:
            return None
    known = [leak for leak in leaks if leak is not None]
    return Leak(known[0].where, min(leak.share for leak in known)) if known else None


def _leak_of_words(task: Task) -> Leak | None:
    """By a few rows of each class first, which are enough for tasks without a leak."""
    targets = np.asarray(task.splits["train"].targets, dtype=np.int64)
    most = min(max(ROWS_OF_TEXT, ROWS_OF_CLASS * len(task.labels)), MOST_ROWS)
    every = _some(len(targets), most)
    sizes = np.bincount(targets[every][targets[every] != MISSING])
    if (sizes >= FEWEST_OF_CLASS).sum() < (sizes > 0).sum() - 1:
        return None  # more than one class is too rare to leak, whatever its texts say
    few = np.concatenate(
        [np.flatnonzero(targets == label)[:FIRST_ROWS] for label in np.flatnonzero(sizes)]
    )
    telling: dict[int, str] = {}
    for places, least in ((few, FIRST_F1), (every, TELLING_F1)):
        telling = _telling_words(task, places, targets[places], least)
        if not telling:
            return None
    words = list(dict.fromkeys(telling.values()))
    names = {task.labels[label].casefold() for label in telling}
    shown = ", ".join(f"`{word}`" for word in words[:3]) + (", ..." if words[3:] else "")
    named = all(any(name in word for word in words) for name in names)
    where = f"the label's own name in the text ({shown})" if named else f"the words {shown}"
    told = np.isin(targets[every], list(telling)).sum() / (targets[every] != MISSING).sum()
    return Leak(where, float(told))


def _telling_words(
    task: Task, places: NDArray[np.int64], targets: NDArray[np.int64], least: float
) -> dict[int, str]:
    """By class, the word that tells it; empty unless all classes but one have such a word."""
    counts: dict[int, Counter[str]] = {}
    texts = _texts(task.splits["train"].inputs, places)
    for row, label in zip(texts, targets.tolist(), strict=True):
        if label != MISSING:
            counts.setdefault(label, Counter()).update(_words_of(row))
    sizes = Counter(targets[targets != MISSING].tolist())
    everywhere = Counter[str]()
    for each in counts.values():
        everywhere.update(each)
    telling = {}
    for label, size in sizes.items():
        others = sizes.total() - size
        best = max(_f1_of_words(counts[label], everywhere, size, others, least), default=(0.0, ""))
        if best[0] >= least and min(size, others) >= FEWEST_OF_CLASS:
            telling[label] = best[1]
    return telling if len(sizes) > 1 and len(telling) >= len(sizes) - 1 else {}


def _some(rows: int, most: int) -> NDArray[np.int64]:
    """Places over all rows, the same for tables of one length."""
    if rows <= most:
        return np.arange(rows)
    return np.sort(np.random.default_rng(0).choice(rows, most, replace=False))


def _texts(table: pa.Table, places: NDArray[np.int64]) -> Iterator[list[str]]:
    columns = [table.column(name).take(pa.array(places)).to_pylist() for name in table.column_names]
    for row in zip(*columns, strict=True):
        yield [cell or "" for cell in row]


def _words_of(texts: list[str]) -> set[str]:
    found: set[str] = set()
    for text in texts:
        words = _WORD.findall(text[:MOST_CHARACTERS].casefold())
        found.update(words)
        if len(words) > FIRST_WORDS + LAST_WORDS:
            words = [*words[:FIRST_WORDS], *words[-LAST_WORDS:]]
        if words:
            found.update(f"{a} {b}" for a, b in pairwise(words))
            found.update((f"{words[0]} ...", f"... {words[-1]}"))
    return found


def _f1_of_words(
    inside: Counter[str], everywhere: Counter[str], size: int, others: int, least: float
) -> Iterator[tuple[float, str]]:
    """Of the words that nearly all rows of a class have: F1 for the class, and the word."""
    enough = least / (2 - least) * size  # of its rows, or F1 is smaller anyway
    for word, count in inside.items():
        # A class of nearly all rows has many words: few other rows may have one.
        if count >= enough and everywhere[word] - count <= WRONG_OTHERS * others:
            # The shortest of equals: a word rather than the pair it stands in.
            yield 2 * count / (size + everywhere[word]) - 1e-9 * len(word), word


def _leak_of_columns(table: pa.Table, targets: NDArray[np.int64]) -> Leak | None:
    for name in table.column_names:
        share = tells_labels(table.column(name), targets)
        if share is not None:
            return Leak(f"the column `{name}`", share)
    return None


def tells_labels(column: pa.ChunkedArray, targets: NDArray[np.int64]) -> float | None:
    """The share of labels that a column tells by itself; None where it does not tell them."""
    places = _some(len(targets), MOST_ROWS)
    labels = targets[places]
    known = labels != MISSING
    places, labels = places[known], np.unique(labels[known], return_inverse=True)[1]
    counts = np.bincount(labels)
    if len(labels) < FEWEST_ROWS or len(labels) - counts.max() < FEWEST_OF_CLASS:
        return None
    allowed = min(WRONG_ROWS * len(labels), WRONG_OTHERS * (len(labels) - counts.max()))
    wrong = _wrong_rows(column.take(pa.array(places)).combine_chunks(), labels, len(counts))
    return 1 - wrong / len(labels) if wrong <= allowed else None


def _wrong_rows(cells: Any, labels: NDArray[np.int64], classes: int) -> float:
    """Rows whose label the column does not tell, by its values or by intervals of them."""
    values = cells.dictionary_encode()
    codes = values.indices.fill_null(len(values.dictionary)).to_numpy(zero_copy_only=False)
    table = np.zeros((len(values.dictionary) + 1, classes), dtype=np.int64)
    np.add.at(table, (codes, labels), 1)
    most = table.max(axis=1)
    wrong = float(len(labels) - most[most > 1].sum())  # what only one row has tells nothing
    if _is_number(cells.type):
        numbers = cells.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        # Equal values in any order: sorted by label they would seem to tell it.
        mixed = np.random.default_rng(0).permutation(len(labels))
        order = mixed[np.argsort(np.nan_to_num(numbers, nan=np.inf)[mixed], kind="stable")]
        changes = int((np.diff(labels[order]) != 0).sum())
        # Each row on the wrong side of a threshold makes two changes more. A class of one row is
        # an interval wherever it stands, which tells nothing.
        alone = int((table.sum(axis=0) == 1).sum())
        wrong = min(wrong, max(changes - (classes - 1), 0) / 2 + alone)
    return wrong


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _leak_of_numbers(table: pa.Table, targets: NDArray[np.float64]) -> Leak | None:
    for name in table.column_names:
        column = table.column(name)
        if not _is_number(column.type):
            continue
        values = column.cast(pa.float64(), safe=False).to_numpy()
        known = np.isfinite(values) & np.isfinite(targets)
        if known.sum() < FEWEST_ROWS or not (values[known].std() and targets[known].std()):
            continue
        square = float(np.corrcoef(values[known], targets[known])[0, 1] ** 2)
        if square >= SAME_LINE:
            return Leak(f"the column `{name}`", square)
    return None

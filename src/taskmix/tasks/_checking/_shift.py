"""Where the rows of dev or test are unlike those of train, so that a score there is of other rows.

Numbers are compared by the distance of Kolmogorov and Smirnov, the largest difference of the two shares
below a value; categories and labels by the total variation, half the sum of the differences of shares.
Some of either is chance: what two samples of these sizes from one population differ by is added to the
distance from which on a column is named. At most 20,000 rows of a split are looked at.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from taskmix.tasks._columns import cell_family, dates_of, role_of
from taskmix.tasks._loading import SeenFiles
from taskmix.tasks._looking import Finding
from taskmix.tasks._task import MISSING, Task

FAR = 0.2  # of rows that would have to change for the splits to be alike, beside what is chance
FEWEST_ROWS = 50  # of a split
_MOST_ROWS = 20_000
_BY_CHANCE = 1.95  # of Kolmogorov's distribution: one column in a thousand has more
_MOST_WORDS = 200  # categories; of more, each is too rare to compare
_SHOWN = 5


def shifted_columns(files: SeenFiles) -> Iterator[Finding]:
    """Inputs that differ, one finding a split."""
    train = _some(files.rows_of("train"))
    for plan in files.plans[:1]:
        if plan.kind != "table" or len(train) < FEWEST_ROWS:
            continue
        for split in ("dev", "test"):
            rows = _some(files.rows_of(split))
            if len(rows) < FEWEST_ROWS:
                continue
            found: dict[str, float] = {}
            for name in plan.columns:
                distance = _distance(files, name, train, rows)
                if distance is not None:
                    found[name] = distance
            if found:
                worst = sorted(found, key=lambda name: -found[name])
                shown = ", ".join(f"`{name}` ({found[name]:.2f})" for name in worst[:_SHOWN])
                shown += f" and {len(worst) - _SHOWN} more" if len(worst) > _SHOWN else ""
                words = (
                    f"Rows of {split} are unlike those of train in {shown}; 0 is alike, 1 has nothing "
                    "in common."
                )
                yield Finding(kind="shift", tasks=files.tasks, words=words, share=found[worst[0]])


def shifted_labels(task: Task) -> Iterator[Finding]:
    """Splits whose classes are divided otherwise than in train."""
    if task.kind != "classification" or "train" not in task.splits:
        return
    train = _counts(task, "train")
    for split in ("dev", "test"):
        if split in task.splits:
            other = _counts(task, split)
            distance = _variation(train, other)
            if distance is not None:
                change = np.abs(_shares(train) - _shares(other))
                place = int(np.argmax(change.round(9)))
                words = (
                    f"Task `{task.name}` has other shares of its classes in {split} than in train: "
                    f"{task.labels[place]!r} has {_shares(train)[place]:.0%} of train and "
                    f"{_shares(other)[place]:.0%} of {split}."
                )
                yield Finding(kind="shift", tasks=(task.name,), words=words, share=distance)


def _distance(
    files: SeenFiles, name: str, train: NDArray[np.int64], rows: NDArray[np.int64]
) -> float | None:
    if role_of(files.stack, name).kind == "constant":
        return None
    dates = dates_of(files.stack, name)
    cells = files.stack.column(name) if dates is None else dates.days
    ours, theirs = cells.take(pa.array(train)), cells.take(pa.array(rows))
    if cell_family(cells.type) == "number":
        return _largest_difference(_numbers(ours), _numbers(theirs))
    both = pa.chunked_array([*ours.cast(pa.string()).chunks, *theirs.cast(pa.string()).chunks])
    encoded = both.combine_chunks().dictionary_encode()
    if len(encoded.dictionary) > _MOST_WORDS:
        return None
    codes = np.asarray(encoded.indices.fill_null(len(encoded.dictionary)).to_numpy())
    size = len(encoded.dictionary) + 1
    return _variation(
        np.bincount(codes[: len(ours)], minlength=size),
        np.bincount(codes[len(ours) :], minlength=size),
    )


def _largest_difference(ours: NDArray[np.float64], theirs: NDArray[np.float64]) -> float | None:
    if min(len(ours), len(theirs)) < FEWEST_ROWS:
        return None
    every = np.concatenate((ours, theirs))
    below = [
        np.searchsorted(np.sort(each), every, side="right") / len(each) for each in (ours, theirs)
    ]
    distance = float(np.abs(below[0] - below[1]).max())
    chance = _BY_CHANCE * np.sqrt(1 / len(ours) + 1 / len(theirs))
    return distance if distance >= FAR + chance else None


def _variation(ours: NDArray[np.int64], theirs: NDArray[np.int64]) -> float | None:
    if min(ours.sum(), theirs.sum()) < FEWEST_ROWS:
        return None
    pooled = _shares(ours + theirs)
    # The mean of |x| for a normal x with this variance, class by class.
    spread = pooled * (1 - pooled) * (1 / ours.sum() + 1 / theirs.sum())
    chance = 0.5 * float(np.sqrt(2 / np.pi * spread).sum())
    distance = 0.5 * float(np.abs(_shares(ours) - _shares(theirs)).sum())
    return distance if distance >= FAR + 2 * chance else None


def _shares(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    return np.asarray(counts / max(counts.sum(), 1), dtype=np.float64)


def _counts(task: Task, split: str) -> NDArray[np.int64]:
    targets = np.asarray(task.splits[split].targets)
    known = targets[targets != MISSING].astype(np.int64)
    return np.asarray(np.bincount(known, minlength=len(task.labels)), dtype=np.int64)


def _numbers(cells: pa.ChunkedArray) -> NDArray[np.float64]:
    values = cells.cast(pa.float64(), safe=False).to_numpy()
    return np.asarray(values[np.isfinite(values)], dtype=np.float64)


def _some(rows: NDArray[np.int64]) -> NDArray[np.int64]:
    step = -(-len(rows) // _MOST_ROWS) or 1
    return rows[::step]

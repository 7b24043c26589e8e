"""Eight tasks from the digits of scikit-learn: a small world in which the truth is known.

1,797 images of 8 x 8 pixels are parted once into 900 to train, 400 for dev and 497 for test, so no
test image of one task is a training image of another. Six tasks ask something true of a digit, of
sizes from 900 rows down to 30; they need the same features, so the small ones gain from the others.
Two have their labels shuffled, in every split: they can only be learned by heart, so they cost the
shared model capacity, and no score on them can honestly be better than chance.

| task              | asks                               | train |
|-------------------|------------------------------------|-------|
| `ten_digits`      | which digit                        | 900   |
| `parity`          | odd or even                        | 300   |
| `half`            | below five or not                  | 150   |
| `prime`           | 2, 3, 5, 7 or not                  | 80    |
| `loop`            | with a closed loop (0, 6, 8, 9)    | 50    |
| `remainder`       | the remainder of division by three | 30    |
| `shuffled_parity` | `parity` with shuffled labels      | 900   |
| `shuffled_ten`    | `ten_digits` with shuffled labels  | 600   |
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from taskmix.tasks._task import Split, Task, TaskSet

_TRAIN, _DEV = 900, 400  # images; the other 497 are for test
_SEED = 1797  # of the parting and of the shuffled labels: the tasks are the same each time


@dataclass(frozen=True)
class _Question:
    name: str
    rows: int  # to train on
    labels: tuple[str, ...]
    answer: Callable[[NDArray[Any]], NDArray[Any]]  # digits to class numbers
    shuffled: bool = False


_TEN = tuple("0123456789")
_QUESTIONS = (
    _Question("ten_digits", 900, _TEN, lambda digit: digit),
    _Question("parity", 300, ("even", "odd"), lambda digit: digit % 2),
    _Question("half", 150, ("below five", "five or more"), lambda digit: digit >= 5),
    _Question("prime", 80, ("no", "yes"), lambda digit: np.isin(digit, [2, 3, 5, 7])),
    _Question("loop", 50, ("no", "yes"), lambda digit: np.isin(digit, [0, 6, 8, 9])),
    _Question("remainder", 30, ("0", "1", "2"), lambda digit: digit % 3),
    _Question("shuffled_parity", 900, ("even", "odd"), lambda digit: digit % 2, shuffled=True),
    _Question("shuffled_ten", 600, _TEN, lambda digit: digit, shuffled=True),
)


def digits_tasks() -> TaskSet:
    """The eight tasks, the same each time; nothing is downloaded.

    >>> digits_tasks().names[:3]
    ('ten_digits', 'parity', 'half')
    """
    from sklearn.datasets import load_digits

    pixels, digits = load_digits(return_X_y=True)
    generator = np.random.default_rng(_SEED)
    order = generator.permutation(len(digits))
    pools = {
        "train": order[:_TRAIN],
        "dev": order[_TRAIN : _TRAIN + _DEV],
        "test": order[_TRAIN + _DEV :],
    }
    tasks = []
    for question in _QUESTIONS:
        splits = {}
        for split_name, pool in pools.items():
            rows = generator.permutation(pool)
            if split_name == "train":
                rows = rows[: question.rows]
            answers = question.answer(digits[rows]).astype(np.int64)
            if question.shuffled:
                answers = generator.permutation(answers)
            splits[split_name] = Split(_table(pixels[rows]), answers)
        tasks.append(
            Task(
                name=question.name,
                kind="classification",
                inputs="table",
                labels=question.labels,
                metric="accuracy",
                source=f"scikit-learn digits, {question.name}",
                splits=splits,
            )
        )
    return TaskSet(tuple(tasks))


def _table(pixels: NDArray[Any]) -> pa.Table:  # [image, 64]
    names = [f"pixel_{row}_{column}" for row in range(8) for column in range(8)]
    return pa.table({name: pixels[:, i] for i, name in enumerate(names)})

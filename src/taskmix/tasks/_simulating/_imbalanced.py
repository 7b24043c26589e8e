r"""A table with a rare class, a task beside it that helps and one that harms.

Rows are vectors of independent normal features. With orthogonal directions w, u, v of length one and
noise ε, a row of the target is positive where its score is among the highest, so many as are wanted:

    target   w·x + ε                                few rows
    helps    0.95 w·x + 0.31 u·x + ε                many rows, the same share of positives
    harms    2 (v₁·x v₂·x + v₃·x v₄·x + v₅·x v₆·x) + ε     many rows, half of them positive

The helping task shows which direction counts. Nothing the harming task needs has to do with w, it
takes long to learn, and its half of positives gives it the larger gradients, so a shared model is
filled with what the target cannot use and is at its best when the target is fitted too closely. (A
task of opposed labels, −w·x, would help: a head of its own turns the sign back.)
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from taskmix.errors import OptionError
from taskmix.tasks._task import Split, Task, TaskSet

LABELS = ("no", "yes")
KINSHIP = 0.95  # of the helping task's direction with the target's
DIRECTIONS = 8  # that are used: fewer features have no room for them


def simulate_imbalanced(
    *,
    positives: float = 0.06,
    rows: int = 400,  # of the target to train on
    other_rows: int = 2000,  # of the others
    held_rows: int = 1000,  # of each task's dev, and of its test
    features: int = 30,
    generator: np.random.Generator,
) -> TaskSet:
    """The tasks `target`, `helps` and `harms`, scored by AUC.

    >>> tasks = simulate_imbalanced(rows=500, generator=np.random.default_rng(0))
    >>> tasks.names, tasks["target"].metric, float(tasks["target"].splits["dev"].targets.mean())
    (('target', 'helps', 'harms'), 'auc', 0.06)
    """
    if not 0 < positives < 1:
        raise OptionError(f"`positives` should lie between 0 and 1. Found {positives}.")
    if features < DIRECTIONS:
        raise OptionError(f"`features` should be at least {DIRECTIONS}. Found {features}.")
    for name, count in (("rows", rows), ("other_rows", other_rows), ("held_rows", held_rows)):
        if not 1 <= round(positives * count) < count:
            raise OptionError(
                f"`{name}` should be so many that there is a row of each class. Found {count} with a "
                f"share of {positives} positives."
            )
    world = _World(generator, features)
    return TaskSet(
        (
            world.task("target", positives, rows, held_rows),
            world.task("helps", positives, other_rows, held_rows),
            world.task("harms", 0.5, other_rows, held_rows),
        )
    )


class _World:
    """Directions, by which rows of any task get their scores."""

    def __init__(self, generator: np.random.Generator, features: int) -> None:
        self.generator = generator
        # Columns of a random rotation: no single feature says much.
        self.directions = np.linalg.qr(generator.normal(size=(features, features)))[0]

    def task(self, name: str, positives: float, rows: int, held_rows: int) -> Task:
        sizes = {"train": rows, "dev": held_rows, "test": held_rows}
        return Task(
            name=name,
            kind="classification",
            inputs="table",
            labels=LABELS,
            metric="auc",
            source=name,
            splits={split: self._split(name, positives, size) for split, size in sizes.items()},
        )

    def _split(self, name: str, positives: float, size: int) -> Split:
        """As many positives as are wanted, exactly: the rows with the highest scores."""
        values = self.generator.normal(size=(size, len(self.directions)))
        scores = self._scores(name, values) + self.generator.normal(size=size)
        targets = np.zeros(size, dtype=np.int64)
        targets[np.argsort(scores)[size - round(positives * size) :]] = 1
        columns = {f"x{place}": values[:, place] for place in range(values.shape[1])}
        return Split(pa.table(columns), targets)

    def _scores(self, name: str, values: NDArray[np.float64]) -> NDArray[np.float64]:
        along = values @ self.directions
        match name:
            case "target":
                found = along[:, 0]
            case "helps":
                found = KINSHIP * along[:, 0] + np.sqrt(1 - KINSHIP**2) * along[:, 1]
            case _:
                found = 2 * (along[:, 2:8:2] * along[:, 3:8:2]).sum(axis=1)
        return np.asarray(found, dtype=np.float64)

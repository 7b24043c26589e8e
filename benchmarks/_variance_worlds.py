r"""Artificial tasks that are as unequal as one likes; `task_variance.py` trains on them.

Rows are vectors of independent normal features. Task t has a score of its own,

    s_t(x) = κ w·x + √(1 - κ²) w_t·x + d_t (a_t·x b_t·x + c_t·x e_t·x) + ε

with a direction w that all tasks share (κ is `kinship`), others of its own, and products of features
that a model has to find out about (d_t is its difficulty). Its classes are equal shares of the rows
by that score, and a share of the labels (its noise) is drawn anew. Sizes, difficulty, noise and the
number of classes, and with it the size of the loss, are either the same for all tasks or run from
one end to the other, each in an order of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from taskmix.tasks import Split, Task, TaskSet

FEATURES = 20
HELD_ROWS = 1000  # of each task's dev, and of its test
Ends = tuple[float, float]  # of what runs from one task to the last; equal ends: the same for all


@dataclass(frozen=True, kw_only=True)
class World:
    """How unequal tasks are, and what they are trained with.

    `hard` says which tasks are the difficult ones where sizes differ too.
    """

    tasks: int = 8
    rows: Ends = (200, 200)
    noise: Ends = (0.1, 0.1)
    difficulty: Ends = (1.0, 1.0)
    classes: Ends = (2, 2)
    kinship: float = 0.7
    hard: str = "any"  # any, small or large
    width: int = 32
    steps: int = 400

    def drawn(self, seed: int) -> TaskSet:
        generator = np.random.default_rng([seed, 22])
        count = self.tasks
        rows = np.geomspace(*self.rows, count).round().astype(int)
        noise, difficulty, classes = (
            generator.permutation(np.linspace(*ends, count))
            for ends in (self.noise, self.difficulty, self.classes)
        )
        if self.hard != "any":
            difficulty = np.sort(difficulty)[:: -1 if self.hard == "small" else 1]
        shared = generator.normal(size=FEATURES) / np.sqrt(FEATURES)
        return TaskSet(
            tuple(
                _Drawn(generator, shared, self.kinship, difficulty[t]).task(
                    f"t{t}", int(rows[t]), round(classes[t]), noise[t]
                )
                for t in range(count)
            )
        )


class _Drawn:
    """One task's directions, by which rows get their classes."""

    def __init__(
        self,
        generator: np.random.Generator,
        shared: NDArray[np.float64],
        kinship: float,
        difficulty: float,
    ) -> None:
        self.generator, self.difficulty = generator, difficulty
        own = generator.normal(size=(5, FEATURES)) / np.sqrt(FEATURES)
        self.line = kinship * shared + np.sqrt(1 - kinship**2) * own[0]
        self.factors = own[1:]

    def scores(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        factors = values @ self.factors.T
        products = factors[:, 0] * factors[:, 1] + factors[:, 2] * factors[:, 3]
        error = 0.1 * self.generator.normal(size=len(values))
        return np.asarray(values @ self.line + self.difficulty * products + error)

    def task(self, name: str, rows: int, classes: int, noise: float) -> Task:
        values = self.generator.normal(size=(rows + 2 * HELD_ROWS, FEATURES))
        scores = self.scores(values)
        edges = np.quantile(scores, np.arange(1, classes) / classes)
        targets = np.searchsorted(edges, scores)
        redrawn = self.generator.random(len(values)) < noise
        targets[redrawn] = self.generator.integers(classes, size=int(redrawn.sum()))
        bounds = {"dev": (0, HELD_ROWS), "test": (HELD_ROWS, 2 * HELD_ROWS)}
        bounds["train"] = (2 * HELD_ROWS, len(values))
        splits = {}
        for split, (first, end) in bounds.items():
            columns: dict[str, Any] = {f"x{n}": values[first:end, n] for n in range(FEATURES)}
            splits[split] = Split(pa.table(columns), targets[first:end])
        return Task(
            name=name,
            kind="classification",
            inputs="table",
            labels=tuple(f"c{n}" for n in range(classes)),
            metric="accuracy",
            source=name,
            splits=splits,
        )


PLAIN = World()
# One thing at a time from equal tasks, and what was suspected to matter together.
REGIMES: dict[str, World] = {
    "equal tasks": PLAIN,
    "sizes 20 to 2,000": replace(PLAIN, rows=(20, 2000)),
    "noise 0 to 0.8": replace(PLAIN, noise=(0.0, 0.8)),
    "difficulty 0 to 3": replace(PLAIN, difficulty=(0.0, 3.0)),
    "2 to 12 classes": replace(PLAIN, classes=(2, 12)),
    "sizes, the large ones hard": replace(
        PLAIN, rows=(20, 2000), difficulty=(0.0, 3.0), hard="large"
    ),
    "difficulty, long, width 16": replace(PLAIN, difficulty=(0.0, 3.0), width=16, steps=1200),
}


def random_world(seed: int) -> World:
    """Every setting drawn by itself; half of the settings are equal for all tasks."""
    generator = np.random.default_rng([seed, 5])

    def ends(same: Ends, different: Ends) -> Ends:
        return different if generator.random() < 0.5 else same

    return World(
        tasks=int(generator.choice([4, 8, 16])),
        rows=ends((200, 200), (20, 2000)),
        noise=ends((0.1, 0.1), (0.0, 0.8)),
        difficulty=ends((1.0, 1.0), (0.0, 3.0)),
        classes=ends((2, 2), (2, 12)),
        kinship=float(generator.choice([0.0, 0.7, 0.95])),
        hard=str(generator.choice(["any", "small", "large"])),
        width=int(generator.choice([4, 16, 64])),
        steps=int(generator.choice([60, 300, 1200])),
    )

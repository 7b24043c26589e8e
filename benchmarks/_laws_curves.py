"""Learning curves of small perceptrons, as tables that have an order: rows to train on, steps, units.

Three tables, each value a mean over seeds 0 to 4 on the same test rows:

    digits   the share of test images with the wrong digit, by rows and hidden units (600 steps)
    sarcos   the mean squared error of the first torque, in its variance, by rows and steps (32 units)
    school   the mean squared error of an examination score, in its variance, by rows and steps

    TASKMIX_DATA=... python benchmarks/_laws_curves.py [NAME ...]

trains them on one core in a few minutes and writes benchmarks/curves/NAME.csv, which
`laws_league.py` reads.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import csv
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv
from numpy.typing import NDArray
from sklearn.datasets import load_digits

from taskmix.engine import Fleet, Run
from taskmix.models import Perceptron
from taskmix.records import Study
from taskmix.tasks import TaskSet, tables_as_tasks

CURVES = Path(__file__).resolve().parent / "curves"
SEEDS = 5
SIZES = {
    "digits": (50, 75, 100, 150, 200, 300, 450, 700, 1000, 1400),
    "sarcos": (50, 100, 200, 400, 800, 1600, 3200),
    "school": (100, 200, 400, 800, 1600, 3200, 6400, 12_000),
}
STEPS = {"sarcos": (50, 100, 200, 400, 800, 1600), "school": (25, 50, 100, 200, 400, 800)}
WIDTHS = (4, 8, 16, 32, 64)
DIGITS_STEPS, UNITS = 600, 32
METRIC = {"digits": "accuracy"}  # of the others the loss, which is the mean square

Rows = tuple[NDArray[np.float64], NDArray[np.float64]]


def _digits() -> Rows:
    images = load_digits()
    return images.data / 16.0, images.target.astype(np.float64)


def _folder() -> Path:
    return Path(os.environ.get("TASKMIX_DATA", "data"))


def _sarcos() -> Rows:
    found = np.load(_folder() / "sarcos" / "sarcos_inv_test.npz")
    return _standard(found["X"]), _standard(found["Y"][:, 0])


def _school() -> Rows:
    table = arrow_csv.read_csv(_folder() / "school_ilea" / "school.csv.gz")
    columns = [table.column(f"x{place}").to_numpy() for place in range(1, 28)]
    return _standard(np.column_stack(columns)), _standard(table.column("score").to_numpy())


def _standard(values: NDArray[np.generic]) -> NDArray[np.float64]:
    found = np.asarray(values, dtype=np.float64)
    scale = found.std(axis=0)
    return (found - found.mean(axis=0)) / np.where(scale > 0, scale, 1.0)


READ: dict[str, Callable[[], Rows]] = {"digits": _digits, "sarcos": _sarcos, "school": _school}


@lru_cache(maxsize=3)
def shuffled(name: str) -> Rows:
    features, target = READ[name]()
    order = np.random.default_rng(0).permutation(len(target))
    return features[order], target[order]


@dataclass(frozen=True)
class Beginning:
    """The first rows of a table to train on; all that the largest size leaves are for the test."""

    name: str
    rows: int

    def load(self) -> TaskSet:
        features, target = shuffled(self.name)
        test = max(SIZES[self.name])
        train = slice(self.rows)
        parts = {"train": train, "dev": slice(test, test + 50), "test": slice(test + 50, None)}
        return tables_as_tasks(
            {self.name: {part: self._table(features[s], target[s]) for part, s in parts.items()}}
        )

    def _table(self, features: NDArray[np.float64], target: NDArray[np.float64]) -> pa.Table:
        columns = {f"x{place}": column for place, column in enumerate(features.T)}
        if self.name == "digits":
            return pa.table({**columns, "label": [f"digit {int(value)}" for value in target]})
        return pa.table({**columns, "label": target})


def runs_of(name: str) -> Iterator[tuple[dict[str, int], list[Run]]]:
    """What a row of the table says, and its models."""
    others = (
        [{"width": width} for width in WIDTHS]
        if name == "digits"
        else [{"steps": steps} for steps in STEPS[name]]
    )
    for rows, other in product(SIZES[name], others):
        runs = [
            Run(
                label=name,
                source=Beginning(name, rows),
                architecture=Perceptron(hidden=(other.get("width", UNITS),)),
                steps=other.get("steps", DIGITS_STEPS),
                batch_size=32,
                seed=seed,
            )
            for seed in range(SEEDS)
        ]
        yield {"rows": rows, **other}, runs


def main() -> None:
    CURVES.mkdir(exist_ok=True)
    for name in sys.argv[1:] or SIZES:
        found = []
        with tempfile.TemporaryDirectory() as folder:
            study = Study(Path(folder), lean=True)
            for words, runs in runs_of(name):
                done = Fleet(workers=1).run(runs, study)
                scores = [
                    score
                    for each in done
                    if each.summary is not None
                    for score in each.summary.scores
                    if score.split == "test" and score.metric == METRIC.get(name, "loss")
                ]
                value = float(np.mean([score.value for score in scores]))
                if name == "digits":
                    value = 1 - value  # of accuracy
                found.append({**words, "error": f"{value:.6g}"})
                print(name, found[-1], f"{len(scores)} models", flush=True)
        with (CURVES / f"{name}.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, list(found[0]))
            writer.writeheader()
            writer.writerows(found)


if __name__ == "__main__":
    main()

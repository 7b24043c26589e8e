"""Real tasks of very unequal size; `task_variance.py` trains on them.

    acs_income    twelve states, 20 to 2,000 rows to train on, other states and rows for every seed
    adult         twelve occupations, 20 to 2,000 rows to train on, the rarer the fewer
    mhc1_binding  eleven alleles, 107 to 7,366 nine-letter peptides, bound (at most 500 nM) or not

Each is scored by the area under the ROC curve, as shares of positives differ from task to task.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from taskmix.tasks import TaskSet, tables_as_tasks

TASKS = 12
HELD_ROWS = 600  # of dev, and of test, at most
SIZES = np.geomspace(20, 2000, TASKS).round().astype(int)  # of rows to train on
TaskTables = dict[str, dict[str, pa.Table]]


def folder_tasks(data: Path, name: str, seed: int) -> TaskSet:
    """The tasks of a seed: which rows train and which are held out is drawn by it."""
    generator = np.random.default_rng([seed, 7])
    return tables_as_tasks(FOLDERS[name](data / name, generator), metric="auc")


def acs_income(folder: Path, generator: np.random.Generator) -> TaskTables:
    frame = pd.read_parquet(folder / "acs_income_2018_sample40.parquet")
    frame["label"] = np.where(frame["label"] == 1, "yes", "no")
    groups = dict(list(frame.drop(columns=["split", "row"]).groupby("state")))
    large = [name for name, rows in groups.items() if len(rows) >= 2000 + 2 * HELD_ROWS]
    chosen = generator.choice(large, TASKS, replace=False)
    return {
        str(name): _divided(groups[name].drop(columns="state"), generator, train=int(size))
        for name, size in zip(chosen, SIZES, strict=True)
    }


def adult(folder: Path, generator: np.random.Generator) -> TaskTables:
    frame = pd.read_csv(folder / "adult.csv.gz", skipinitialspace=True)
    frame["label"] = np.where(frame["income"].astype(str).str.contains(">50K"), "yes", "no")
    frame = frame.drop(columns=["income", "split"])
    groups = dict(list(frame.groupby("occupation")))
    names = sorted(groups, key=lambda name: len(groups[name]))
    named = [name for name in names if name != "?" and len(groups[name]) > 100][-TASKS:]
    return {
        str(name): _divided(groups[name].drop(columns="occupation"), generator, train=int(size))
        for name, size in zip(named, SIZES, strict=True)
    }


def mhc1_binding(folder: Path, generator: np.random.Generator) -> TaskTables:
    frame = pd.read_csv(folder / "mhc1_affinity.csv.gz")
    frame = frame[(frame["peptide"].str.len() == 9) & (frame["measurement_inequality"] == "=")]
    frame = frame.drop_duplicates(["allele", "peptide"])
    frame["label"] = np.where(frame["measurement_value"] <= 500, "yes", "no")
    for place in range(9):
        frame[f"p{place + 1}"] = frame["peptide"].str[place]
    columns = [*(f"p{place + 1}" for place in range(9)), "label"]
    groups = {name: rows[columns] for name, rows in frame.groupby("allele")}
    balanced = {n: rows for n, rows in groups.items() if (rows["label"] == "yes").mean() > 0.1}
    names = sorted(balanced, key=lambda name: len(balanced[name]))
    sizes = [len(balanced[name]) for name in names]
    wanted = np.geomspace(200, max(sizes), TASKS)
    places = sorted({int(np.argmin(np.abs(np.log(sizes) - np.log(size)))) for size in wanted})
    return {str(names[at]): _divided(balanced[names[at]], generator) for at in places}


FOLDERS: dict[str, Callable[[Path, np.random.Generator], TaskTables]] = {
    "acs_income": acs_income,
    "adult": adult,
    "mhc1_binding": mhc1_binding,
}


def _divided(
    frame: pd.DataFrame, generator: np.random.Generator, train: int | None = None
) -> dict[str, pa.Table]:
    """A quarter each for dev and test, no more than are needed, and so many of the rest to train on."""
    held = min(HELD_ROWS, len(frame) // 4)
    # Both classes in every split: the rows of a class are dealt out in turn.
    mixed: Any = frame.iloc[generator.permutation(len(frame))]
    mixed = mixed.sort_values("label", kind="stable").reset_index(drop=True)
    dealt = (np.arange(len(mixed)) * 0.6180339887) % 1.0
    mixed = mixed.iloc[np.argsort(dealt, kind="stable")]
    end = len(mixed) if train is None else 2 * held + train
    parts = {"dev": (0, held), "test": (held, 2 * held), "train": (2 * held, end)}
    return {
        split: pa.Table.from_pandas(mixed.iloc[first:last], preserve_index=False)
        for split, (first, last) in parts.items()
    }

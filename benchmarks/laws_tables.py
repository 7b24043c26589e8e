"""Laws on published scaling-law tables: R² on their test rows, which lie beyond the rows to learn from.

For each table: our choice, the stack of laws tied with it, and the best law on our front, which nobody
can know beforehand; the peer is the law that people published for the table, with the figure published
for these test rows. The goal is a choice within 0.03 of the best on its front, and above the people's.

What was tuned on what: how laws are chosen (`laws/_judging/_choose.py`, `_ranges.py`) was tuned on
ranges left out of the *train* rows of these tables and of the tables of the study of multitask learning
(docs/papers/laws-balanced.csv): the search ran on what remained, and the choice was compared with the
best law on its front there. The prices of forms (`laws/_forms/_complexity.py`) came later, and the
test figures were read while they were made (docs/laws.md). `--nested` measures on such
ranges of the train rows, where the peer is the best law on the front.

    TASKMIX_DATA=... python benchmarks/laws_tables.py [--nested] [--quick] [--json]

Tables are read from $TASKMIX_DATA/scaling_laws/NAME/train.csv and test.csv; those that are not there
are left out.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from _common import report, row
from taskmix.laws import LawRegressor, read_table

Columns = dict[str, NDArray[np.float64]]
LEFT_OUT_ABOVE = 0.8  # the quantile of an input, in `--nested`
LEAST_ROWS = 5  # that a range should have, in `--nested`


@dataclass(frozen=True)
class Table:
    """A table, what it explains, and the R² of the published law on its test rows."""

    target: str
    inputs: tuple[str, ...]
    people: float


TABLES = {
    "moe": Table("loss_validation", ("num_experts", "dense_parameter_count"), 0.703),
    "data_constrained": Table("loss", ("tokens", "params", "unique_tokens"), 0.911),
}


def path_of(name: str, part: str) -> Path:
    folder = Path(os.environ.get("TASKMIX_DATA", "data"))
    return folder / "scaling_laws" / name / f"{part}.csv"


def read(name: str, part: str) -> tuple[Columns, NDArray[np.float64]]:
    """The inputs and the target of one part of a table."""
    table = TABLES[name]
    found = read_table(path_of(name, part), [*table.inputs, table.target])
    columns = {column: np.array(values, dtype=np.float64) for column, values in found.items()}
    target = columns.pop(table.target)
    return columns, target


def r_squared(predicted: NDArray[np.float64], target: NDArray[np.float64]) -> float:
    return 1 - float(np.mean((predicted - target) ** 2) / np.var(target))


def measured(
    case: str,
    rows: tuple[Columns, NDArray[np.float64]],
    beyond: tuple[Columns, NDArray[np.float64]],
    people: float | None,
) -> list[dict[str, Any]]:
    """The choice, the stack and the best on the front beyond the rows to learn from."""
    begin = time.process_time()
    model = LawRegressor().fit(*rows)
    seconds = time.process_time() - begin
    columns, target = beyond
    best = np.nanmax([r_squared(law.predict(columns).values, target) for law in model.front_])
    found = {
        "choice": r_squared(model.predict(columns), target),
        "stack": r_squared(model.stack_.predict(columns).values, target),
    }
    peer, name = (best, "best on front") if people is None else (people, "people's law")
    answers = [row(f"{case}/{what}", r2, float(peer), name, "R²") for what, r2 in found.items()]
    if people is not None:
        answers.append(row(f"{case}/best on front", float(best), people, name, "R²"))
    answers.append(row(f"{case}/choice minus best", found["choice"] - float(best), None, "-", "R²"))
    return [*answers, row(f"{case}/seconds", seconds, None, "-", "CPU s")]


def without_largest(name: str) -> list[dict[str, Any]]:
    """The same with the largest values of each input of the train rows left out."""
    columns, target = read(name, "train")
    found = []
    for each, column in columns.items():
        beyond = column > np.quantile(column, LEFT_OUT_ABOVE)
        if not beyond.any():
            beyond = column == column.max()
        if beyond.sum() >= LEAST_ROWS:
            inside, outside = (
                ({k: v[mask] for k, v in columns.items()}, target[mask])
                for mask in (~beyond, beyond)
            )
            found += measured(f"{name}, largest {each} left out", inside, outside, None)
    return found


def measure(quick: bool, nested: bool) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for name in list(TABLES)[: 1 if quick else None]:
        if not path_of(name, "train").is_file():
            continue
        if nested:
            rows += without_largest(name)
        else:
            rows += measured(name, read(name, "train"), read(name, "test"), TABLES[name].people)
    return rows


if __name__ == "__main__":
    options = {"--nested": {"action": "store_true", "help": "ranges left out of the train rows"}}
    report("laws_tables", measure, __doc__ or "", options=options)

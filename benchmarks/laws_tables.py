"""Laws on published scaling-law tables: R² on their test rows, which lie beyond the rows to learn from.

For each table: our choice, the stack of laws tied with it, and the best law on our front, which nobody
can know beforehand; the peer is the law that people published for the table, with the figure published
for these test rows. The goal is a choice within 0.03 of the best on its front, and above the people's.

What was tuned on what: how laws are chosen (`laws/_choose.py`, `_ranges.py`) was tuned on
ranges left out of the *train* rows of these tables and of the tables of the study of multitask learning
(docs/papers/laws-balanced.csv): the search ran on what remained, and the choice was compared with the
best law on its front there. The prices of forms (`laws/_complexity.py`) came later, and the
test figures were read while they were made (docs/laws.md). `laws_league.py` measures on such ranges.

Besides, groups: a loss of domain mixtures with four models as groups, each model left out in turn and
told from the others and from 0, 3 or 5 rows of its own.

    TASKMIX_DATA=... python benchmarks/laws_tables.py [--quick] [--json]

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

from _common import DATA, report, row
from taskmix.laws import LawRegressor, read_table

Floats = NDArray[np.float64]
Columns = dict[str, Floats]
LEVEL = 0.9
PEOPLE = "people's law"


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
    return DATA / "scaling_laws" / name / f"{part}.csv"


def read(name: str, part: str) -> tuple[Columns, Floats]:
    """The inputs and the target of one part of a table."""
    table = TABLES[name]
    found = read_table(path_of(name, part), [*table.inputs, table.target])
    columns = {column: np.array(values, dtype=np.float64) for column, values in found.items()}
    target = columns.pop(table.target)
    return columns, target


def r_squared(predicted: Floats, target: Floats) -> float:
    return 1 - float(np.mean((predicted - target) ** 2) / np.var(target))


def measured(name: str) -> list[dict[str, Any]]:
    """The choice, the stack and the best on the front, beyond the rows to learn from."""
    begin = time.process_time()
    model = LawRegressor().fit(*read(name, "train"))
    seconds = time.process_time() - begin
    columns, target = read(name, "test")
    found = {
        "choice": r_squared(model.predict(columns), target),
        "stack": r_squared(model.stack_.predict(columns).values, target),
        "best on front": float(
            np.nanmax([r_squared(law.predict(columns).values, target) for law in model.front_])
        ),
    }
    people = TABLES[name].people
    answers = [row(f"{name}/{what}", r2, people, PEOPLE, "R²") for what, r2 in found.items()]
    said = model.law_.predict(columns, level=LEVEL, measurement=True)
    held = float(np.mean((said.low <= target) & (target <= said.high)))
    answers.append(row(f"{name}/held in {LEVEL:.0%} intervals", held, unit="share of rows"))
    return [*answers, row(f"{name}/seconds", seconds, unit="CPU s")]


def mixture(part: str, loss: str) -> tuple[Floats, Floats, NDArray[np.str_]]:
    """The share and the loss of one domain, and the model, of the table of domain mixtures."""
    share = loss.replace("loss", "share")
    found = read_table(path_of("domain_mixture", part), ["model", share, loss])
    numbers = (np.array(found[name], dtype=np.float64) for name in (share, loss))
    return *numbers, np.array(found["model"])


def new_groups(loss: str) -> list[dict[str, Any]]:
    """Each model left out in turn: its rows from the other models' law and k rows of its own."""
    parts = [mixture(part, loss) for part in ("train", "test")]
    shares, y, groups = (np.concatenate(column) for column in zip(*parts, strict=True))

    def table(rows: NDArray[Any]) -> Columns:
        return {"share": shares[rows]}

    errors: dict[str, list[float]] = {}
    inside: dict[int, list[float]] = {0: [], 3: [], 5: []}
    for left_out in np.unique(groups):
        known, new = groups != left_out, np.flatnonzero(groups == left_out)
        grouped = LawRegressor().fit(table(known), y[known], groups=groups[known]).groups_
        pooled = LawRegressor().fit(table(known), y[known])
        assert grouped is not None
        few = np.random.default_rng(0).permutation(new)
        rest, far = y[few[5:]], table(few[5:])
        for k in inside:
            law = grouped.adapt(table(few[:k]), y[few[:k]]) if k else grouped.law(str(left_out))
            found = law.predict(far, level=LEVEL, measurement=True)
            errors.setdefault(f"{k} rows", []).append(float(np.mean((found.values - rest) ** 2)))
            inside[k].append(float(np.mean((found.low <= rest) & (rest <= found.high))))
        errors.setdefault("pooled", []).append(float(np.mean((pooled.predict(far) - rest) ** 2)))
    root = {what: float(np.sqrt(np.mean(each))) for what, each in errors.items()}
    rows = []
    for k, each in inside.items():
        case = f"new model, {loss}/{k} rows"
        rows.append(row(case, root[f"{k} rows"], root["pooled"], "pooled law", "RMSE"))
        held = float(np.mean(each))
        rows.append(row(f"{case}/held in {LEVEL:.0%} intervals", held, LEVEL, "goal", "share"))
    return rows


def measure(quick: bool) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for name in list(TABLES)[: 1 if quick else None]:
        if path_of(name, "train").is_file():
            rows += measured(name)
    if path_of("domain_mixture", "train").is_file():
        for loss in ("loss_1",) if quick else ("loss_1", "loss_4"):
            rows += new_groups(loss)
    return rows


if __name__ == "__main__":
    report("laws_tables", measure, __doc__ or "")

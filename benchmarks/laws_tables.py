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

Besides, groups: five losses of domain mixtures explained by one form, with four models as groups, and
each model left out in turn, told from the others and from 0, 3 or 5 rows of its own. The forms that hold
every input (`laws/_learning/_targets.py`) were written while looking at this table, its test rows
included; the choice among them is made on the train rows.

`--made` measures on tables that are made after the designs of further studies (`_laws_designs.py`).
Seeds 0 and 1 were looked at while the rule was made; the default is one that was not.

    TASKMIX_DATA=... python benchmarks/laws_tables.py [--nested | --made [--seed N]] [--quick] [--json]

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
from _laws_designs import DESIGNS
from taskmix.laws import LawRegressor, read_table

Columns = dict[str, NDArray[np.float64]]
LEVEL = 0.9
LEFT_OUT_ABOVE = 0.8  # the quantile of an input, in `--nested`
PEOPLE = "people's law"
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
    said = model.law_.predict(columns, level=LEVEL, measurement=True)
    held = float(np.mean((said.low <= target) & (target <= said.high)))
    answers.append(row(f"{case}/held in {LEVEL:.0%} intervals", held, None, "-", "share of rows"))
    constants = float(len(model.law_.expression.constants))
    answers.append(row(f"{case}/constants", constants, None, "-", "of the choice"))
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


def mixture(part: str) -> tuple[Columns, Columns, NDArray[np.str_]]:
    """Shares, losses and models of the table of domain mixtures."""
    shares, losses = ([f"{word}_{place}" for place in range(1, 6)] for word in ("share", "loss"))
    found = read_table(path_of("domain_mixture", part), ["model", *shares, *losses])
    inputs, targets = (
        {name: np.array(found[name], dtype=np.float64) for name in names}
        for names in (shares, losses)
    )
    return inputs, targets, np.array(found["model"])


def vector_targets() -> list[dict[str, Any]]:
    """Five losses under one form, four models as groups: R² within each model and loss, their mean."""
    begin = time.process_time()
    inputs, losses, models = mixture("train")
    model = LawRegressor().fit(inputs, losses, groups={"model": models})
    seconds = time.process_time() - begin
    inputs, losses, models = mixture("test")
    predicted = model.predict(inputs, groups={"model": models})
    within, by_loss = [], []
    for place, loss in enumerate(losses.values()):
        by_loss.append(r_squared(predicted[:, place], loss))
        within += [
            r_squared(predicted[models == each, place], loss[models == each])
            for each in np.unique(models)
        ]
    case = "domain_mixture"
    return [
        row(f"{case}/choice, within model and loss", float(np.mean(within)), 0.671, PEOPLE, "R²"),
        row(f"{case}/choice, of each loss", float(np.mean(by_loss)), 0.671, PEOPLE, "R²"),
        row(f"{case}/seconds", seconds, None, "-", "CPU s"),
    ]


def new_groups(loss: str) -> list[dict[str, Any]]:
    """Each model left out in turn: its rows from the other models' law and k rows of its own."""
    parts = [mixture(part) for part in ("train", "test")]
    name = loss.replace("loss", "share")
    X = {name: np.concatenate([part[0][name] for part in parts])}
    y = np.concatenate([part[1][loss] for part in parts])
    groups = np.concatenate([part[2] for part in parts])
    errors: dict[str, list[float]] = {}
    inside: dict[int, list[float]] = {0: [], 3: [], 5: []}
    for left_out in np.unique(groups):
        known, new = groups != left_out, np.flatnonzero(groups == left_out)
        X_known = {name: X[name][known]}
        grouped = LawRegressor().fit(X_known, y[known], groups=groups[known]).groups_
        pooled = LawRegressor().fit(X_known, y[known])
        assert grouped is not None
        few = np.random.default_rng(0).permutation(new)
        rest = few[5:]
        for k in inside:
            own = {name: X[name][few[:k]]}
            law = grouped.adapt(own, y[few[:k]]) if k else grouped.law(str(left_out))
            found = law.predict({name: X[name][rest]}, level=0.9, measurement=True)
            errors.setdefault(f"{k} rows", []).append(float(np.mean((found.values - y[rest]) ** 2)))
            inside[k].append(float(np.mean((found.low <= y[rest]) & (y[rest] <= found.high))))
        off = pooled.predict({name: X[name][rest]}) - y[rest]
        errors.setdefault("pooled", []).append(float(np.mean(off**2)))
        line = np.polyfit(np.sqrt(X[name][few[:5]]), y[few[:5]], 1)  # what five rows alone carry
        off = np.polyval(line, np.sqrt(X[name][rest])) - y[rest]
        errors.setdefault("alone, 5 rows", []).append(float(np.mean(off**2)))
    root = {what: float(np.sqrt(np.mean(each))) for what, each in errors.items()}
    case = f"new model, {loss}"
    return [
        row(f"{case}/0 rows", root["0 rows"], root["pooled"], "pooled law", "RMSE"),
        row(f"{case}/3 rows", root["3 rows"], root["pooled"], "pooled law", "RMSE"),
        row(f"{case}/5 rows", root["5 rows"], root["alone, 5 rows"], "its 5 rows alone", "RMSE"),
        *(
            row(
                f"{case}/90 % interval covers, {k} rows", float(np.mean(each)), 0.9, "goal", "share"
            )
            for k, each in inside.items()
        ),
    ]


def made_tables(seed: int) -> list[dict[str, Any]]:
    """R² beyond the rows to learn from, rows held in intervals, and how long the law is."""
    found = []
    for name, design in DESIGNS.items():
        table = design(np.random.default_rng(seed))
        inside, beyond = (
            ({each: column[mask] for each, column in table.columns.items()}, table.target[mask])
            for mask in (~table.beyond, table.beyond)
        )
        begin = time.process_time()
        if table.groups is None:
            found += measured(f"made: {name}", inside, beyond, None)
            continue
        near, far = table.groups[~table.beyond], table.groups[table.beyond]
        model = LawRegressor().fit(*inside, groups=near)
        r2 = r_squared(model.predict(beyond[0], groups=far), beyond[1])
        seconds = time.process_time() - begin
        found.append(row(f"made: {name}/choice", r2, None, "-", "R²"))
        found.append(row(f"made: {name}/seconds", seconds, None, "-", "CPU s"))
    return found


def measure(quick: bool, nested: bool, made: bool, seed: int) -> list[dict[str, Any]]:
    if made:
        return made_tables(seed)
    rows: list[dict[str, Any]] = []
    for name in list(TABLES)[: 1 if quick else None]:
        if not path_of(name, "train").is_file():
            continue
        if nested:
            rows += without_largest(name)
        else:
            rows += measured(name, read(name, "train"), read(name, "test"), TABLES[name].people)
    if not nested and path_of("domain_mixture", "train").is_file():
        rows += new_groups("loss_1")
        if not quick:
            rows += new_groups("loss_4") + vector_targets()
    return rows


if __name__ == "__main__":
    options: dict[str, dict[str, Any]] = {
        "--nested": {"action": "store_true", "help": "ranges left out of the train rows"},
        "--made": {
            "action": "store_true",
            "help": "tables made after the designs of other studies",
        },
        "--seed": {"type": int, "default": 10, "help": "of these"},
    }
    report("laws_tables", measure, __doc__ or "", options=options)

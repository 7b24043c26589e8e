"""How often 90 % intervals hold what they should, outside the data.

Known laws (`_laws_known.py`, `_laws_drawn.py`, `_laws_field.py`): the interval of the law against the
truth at points outside the rows, the mean over points and tables. Real tables (`laws_tables.py`, and
the tables of docs/papers): the search runs without the largest values of one input, and the interval of
one more measurement is held against the rows that were left out; so are the test rows of scaling laws.

    python benchmarks/laws_coverage.py [--rows 100 --noise 0.05] [--seeds 1] [--processes 2] [--quick]
    [--json]

The prior of the rate and the weight of rivals (`laws/_judging/_discrepancy.py`, `_law.py`) were set on
the required laws and 14 of the further ones with seed 0, 100 rows and 5 % noise; seeds here begin at
100.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from _common import report, row
from _laws_drawn import drawn
from _laws_field import FIELD, make_field
from _laws_known import FURTHER, NOISE, REQUIRED, Columns, Known, make
from laws_tables import LEAST_ROWS, LEFT_OUT_ABOVE, TABLES, path_of, read
from taskmix.laws import LawRegressor, read_table

LEVEL = 0.9
UNSEEN = 100
GRIDS = Path(__file__).parents[1] / "docs" / "papers"
INPUTS = {"laws-balanced.csv": ("n", "ami", "T"), "laws-unbalanced.csv": ("n", "ami", "T")}


@dataclass(frozen=True)
class Held:
    """Shares of points inside the interval of the chosen law and of the stack; NaN without any."""

    chosen: float
    stack: float
    width: float  # median over points, of the interval over the value
    is_right: bool = False


def known(table: Known) -> Held:
    model = LawRegressor().fit(table.columns, table.target)
    return held(model, table.far, table.far_target, False, model.law_.same_form(table.formula))


def held(
    model: LawRegressor, far: Columns, target: NDArray[np.float64], noisy: bool, right: bool = False
) -> Held:
    shares = []
    for each in (model.law_, model.stack_):
        if not model.law_.inputs:
            return Held(np.nan, np.nan, np.nan)
        found = each.predict(far, level=LEVEL, measurement=noisy)
        outside = np.ones(len(target), bool) if noisy else found.outside
        inside = (found.low <= target) & (target <= found.high)
        shares.append(float(np.mean(inside[outside])) if outside.any() else np.nan)
        if each is model.law_:
            width = float(np.median(((found.high - found.low) / np.abs(target))[outside]))
    return Held(shares[0], shares[1], width, right)


@dataclass(frozen=True, eq=False)
class Split:
    """Rows to learn from and rows beyond them."""

    name: str
    rows: tuple[Columns, NDArray[np.float64]]
    beyond: tuple[Columns, NDArray[np.float64]]


def real(split: Split) -> Held:
    return held(LawRegressor().fit(*split.rows), *split.beyond, True)


def splits() -> list[Split]:
    found = []
    for name in TABLES:
        if path_of(name, "train").is_file():
            rows = read(name, "train")
            found += [
                *without_largest(name, rows),
                Split(f"{name}, test", rows, read(name, "test")),
            ]
    for name, inputs in INPUTS.items():
        table = read_table(GRIDS / name, [*inputs, "f1"])
        columns = {key: np.array(values, dtype=np.float64) for key, values in table.items()}
        found += without_largest(name, (columns, columns.pop("f1")))
    return found


def without_largest(name: str, rows: tuple[Columns, NDArray[np.float64]]) -> list[Split]:
    columns, target = rows
    found = []
    for each, column in columns.items():
        beyond = column > np.quantile(column, LEFT_OUT_ABOVE)
        beyond = beyond if beyond.any() else column == column.max()
        if LEAST_ROWS <= beyond.sum() <= len(target) / 2 and len(np.unique(column[~beyond])) > 2:
            inside, outside = (
                ({k: v[mask] for k, v in columns.items()}, target[mask])
                for mask in (~beyond, beyond)
            )
            found.append(Split(f"{name}, largest {each}", inside, outside))
    return found


def answers(kind: str, found: list[Held]) -> list[dict[str, Any]]:
    good = [each for each in found if np.isfinite(each.chosen)]
    unit = f"of {len(good)} tables"
    figures = {
        "held by the law": np.mean([each.chosen for each in good]),
        "held by the stack": np.mean([each.stack for each in good]),
        "held where the form is right": np.mean([e.chosen for e in good if e.is_right] or [np.nan]),
        "held where it is not": np.mean([e.chosen for e in good if not e.is_right] or [np.nan]),
        "median width, of the value": np.median([each.width for each in good]),
    }
    return [row(f"{kind}/{what}", float(value), None, "-", unit) for what, value in figures.items()]


def measure(
    quick: bool, rows: int | None, noise: float, seeds: int, processes: int
) -> list[dict[str, Any]]:
    numbers = range(UNSEEN, UNSEEN + seeds)
    few = 3 if quick else None

    def made(laws: dict[str, str]) -> list[Known]:
        names = list(laws)[:few]
        return [
            make(laws[name], seed, rows=rows, noise=noise) for name in names for seed in numbers
        ]

    sets: dict[str, tuple[Callable[[Any], Held], list[Any]]] = {
        "required": (known, made(REQUIRED)),
        "further": (known, made(FURTHER)),
        "field": (
            known,
            [
                make_field(name, seed, rows=rows or 1000, noise=noise)
                for name in list(FIELD)[:few]
                for seed in numbers
            ],
        ),
        "drawn": (known, [table for _, table in drawn(few or 60, seed=UNSEEN)] if not rows else []),
        "real tables": (real, splits()[:few]),
    }
    found: list[dict[str, Any]] = []
    with ProcessPoolExecutor(processes, get_context("spawn")) as pool:
        for kind, (how, tables) in sets.items():
            results = list(pool.map(how, tables))
            if how is real:
                found += [
                    row(f"{split.name}/held", each.chosen, each.stack, "stack", "share of rows")
                    for split, each in zip(tables, results, strict=True)
                ]
            found += answers(kind, results) if results else []
    return found


if __name__ == "__main__":
    options = {
        "--rows": {"type": int, "default": None, "help": "of known laws"},
        "--noise": {
            "type": float,
            "default": NOISE,
            "help": "of known laws, as a share of the value",
        },
        "--seeds": {"type": int, "default": 1, "help": "tables of each known law"},
        "--processes": {"type": int, "default": 2, "help": "that search at once"},
    }
    report("laws_coverage", measure, __doc__ or "", options=options)

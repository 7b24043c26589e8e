"""How often the law that made a table is chosen, in which time, and how far off the choice is outside.

Two sets: the laws required, with ten seeds on which the search was never tried while it was written, and
laws drawn at random.
Where another form is chosen it is told whether the right one is among those that cannot be told from
the choice (`front_.tied`), whether the choice was sure (nothing is tied with it), and whether the law
that made the table fits the rows better than chance would have it: if so, the search missed it, and if
not, the rows cannot tell the two apart. Last, how many points outside the data lie in the 90 % interval
of the law, in the mean over tables.

    python benchmarks/laws_recovery.py [--rows 100 --noise 0.05 --seeds 3] [--processes 2] [--json]

With `--rows` or `--noise` only the laws required are measured, on seeds from `--first` on, with so many
rows and so much noise. Ties, prices and intervals were mended on seeds 0, 100 and 101 with 100 rows.
"""

from __future__ import annotations

import os
import sys

os.environ.setdefault("OMP_NUM_THREADS", "1")

import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any

import numpy as np

from _common import report, row
from _laws_known import NOISE, REQUIRED, Known, drawn, make
from taskmix.laws import Law, LawRegressor, evaluate_formula, fit_formula, parse_formula

LEVEL = 0.9
CLOSE = 0.02  # an error outside below this is small
UNSEEN = 100  # seeds from here on played no part while the search was written
BETTER = 3.0  # nats by which rows have to be likelier under a law to tell it from another


@dataclass(frozen=True)
class Found:
    """What the search made of one table."""

    is_right: bool
    is_named: bool  # not chosen, but among the forms that cannot be told from the choice
    named: int  # forms that cannot be told apart, with the choice
    is_missed: bool
    seconds: float
    error: float
    held: float  # share of points outside in the 90 % interval; NaN where there are none

    @property
    def is_sure(self) -> bool:
        """Whether the choice stands alone."""
        return self.named == 1


def find(known: Known) -> Found:
    begin = time.process_time()
    model = LawRegressor().fit(known.columns, known.target)
    seconds = time.process_time() - begin
    law, tied = model.law_, model.front_.tied
    predicted = np.full(len(known.far_target), np.nan)
    if law.inputs:
        predicted = law.function()(**{name: known.far[name] for name in law.inputs})
    is_right = law.same_form(known.formula)
    is_named = not is_right and any(each.same_form(known.formula) for each in tied)
    is_missed = not is_right and fits_better(known, law)
    error, held = known.error_outside(predicted), float("nan")
    if law.inputs:
        said = law.predict(known.far, level=LEVEL)
        inside = (said.low <= known.far_target) & (known.far_target <= said.high)
        held = float(np.mean(inside[said.outside])) if said.outside.any() else held
    return Found(is_right, is_named, len(tied), is_missed, seconds, error, held)


def find_all(tables: Sequence[Known], processes: int) -> list[Found]:
    with ProcessPoolExecutor(processes, get_context("spawn")) as pool:
        return list(pool.map(find, tables))


def fits_better(known: Known, law: Law) -> bool:
    """Whether the law that made the table explains its rows better than the chosen one."""
    size = 1.0
    if law.noise == "relative":
        size = np.abs(evaluate_formula(parse_formula(known.formula), known.columns))
    true = fit_formula(known.formula, known.columns, known.target, noise=law.noise)
    own, other = (
        np.mean(((each.predict(known.columns).values - known.target) / size) ** 2)
        for each in (true, law)
    )
    return 0.5 * len(known.target) * float(np.log(other / own)) > BETTER


def each_law(name: str, found: Sequence[Found]) -> list[dict[str, Any]]:
    figures = {
        "chosen": (np.mean([each.is_right for each in found]), f"of {len(found)} seeds"),
        "seconds": (np.median([each.seconds for each in found]), "CPU s"),
        "error outside": (np.max([each.error for each in found]), "worst seed"),
    }
    return [row(f"{name}/{what}", float(v), unit=unit) for what, (v, unit) in figures.items()]


def all_laws(name: str, found: list[Found]) -> list[dict[str, Any]]:
    """The shares over a whole set."""
    figures = {
        "chosen": np.mean([each.is_right for each in found]),
        "cannot tell, the right one named": np.mean([each.is_named for each in found]),
        "wrong and unsure": np.mean([not (e.is_right or e.is_named or e.is_sure) for e in found]),
        "wrong and sure": np.mean([not (e.is_right or e.is_named) and e.is_sure for e in found]),
        "missed": np.mean([each.is_missed for each in found]),
        f"error outside below {CLOSE:.0%}": np.mean([each.error < CLOSE for each in found]),
        f"held in {LEVEL:.0%} intervals": np.nanmean([each.held for each in found]),
    }
    unit = f"of {len(found)} tables"
    rows = [row(f"all {name}/{what}", float(v), unit=unit) for what, v in figures.items()]
    named = float(np.mean([each.named for each in found]))
    seconds = float(np.median([each.seconds for each in found]))
    rows.append(row(f"all {name}/forms named", named, unit="in the mean"))
    return [*rows, row(f"all {name}/median seconds", seconds, unit="CPU s")]


def sets_of(quick: bool, draw: int) -> dict[str, dict[str, list[Known]]]:
    """The tables of each set, by law."""
    seeds = range(UNSEEN, UNSEEN + (1 if quick else 10))
    return {
        "required, unseen seeds": {
            name: [make(text, seed) for seed in seeds] for name, text in REQUIRED.items()
        },
        "drawn at random": {text: [table] for text, table in drawn(4 if quick else 60, seed=draw)},
    }


def every(kind: str, laws: dict[str, list[Known]], processes: int) -> list[dict[str, Any]]:
    found = find_all([table for tables in laws.values() for table in tables], processes)
    rows, left = all_laws(kind, found), iter(found)
    if kind != "drawn at random":
        for name, tables in laws.items():
            rows += each_law(name, [next(left) for _ in tables])
    print(rows, file=sys.stderr, flush=True)  # it takes half an hour
    return rows


def measure(
    quick: bool,
    rows: int | None,
    noise: float | None,
    seeds: int,
    first: int,
    only: str | None,
    draw: int,
    processes: int,
) -> list[dict[str, Any]]:
    if rows is None and noise is None:
        sets = {kind: laws for kind, laws in sets_of(quick, draw).items() if only in (None, kind)}
        return [each for kind, laws in sets.items() for each in every(kind, laws, processes)]
    numbers = range(first, first + (1 if quick else seeds))
    laws = {
        name: [make(text, n, rows=rows or 1002, noise=noise or NOISE) for n in numbers]
        for name, text in REQUIRED.items()
    }
    return every(f"required, {rows or 1002} rows and {noise or NOISE:.0%} noise", laws, processes)


if __name__ == "__main__":
    options = {
        "--rows": {"type": int, "default": None, "help": "rows of each table"},
        "--noise": {"type": float, "default": None, "help": "as a share of the value"},
        "--seeds": {"type": int, "default": 10, "help": "tables of each law, with these two"},
        "--first": {"type": int, "default": UNSEEN + 2, "help": "the first of these seeds"},
        "--only": {"default": None, "help": "one set, such as 'drawn at random'"},
        "--draw": {"type": int, "default": UNSEEN, "help": "the seed of laws drawn at random"},
        "--processes": {"type": int, "default": 1, "help": "that search at once"},
    }
    report("laws_recovery", measure, __doc__ or "", options=options)

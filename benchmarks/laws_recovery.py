"""How often the law that made a table is chosen, in which time, and how far off the choice is outside.

Six sets: the laws required, with the ten seeds on which the search was mended until it found all; the
same with ten seeds it was never tried on before; laws it was written with; published forms of the
field in their units; laws of other fields with designs of their own; and laws drawn at random. The last
two have seeds that were not tried before either. Where another form is chosen it is told whether the
right one is among those that cannot be told from the choice (`front_.tied`), whether the choice was sure
(nothing is tied with it), and whether the law that made the table fits the rows better than chance
would have it: if so, the search missed it, and if not, the rows cannot tell the two apart.

    python benchmarks/laws_recovery.py [--rows 100 --noise 0.05 --seeds 3] [--quick] [--json]

With `--rows` or `--noise` only the laws required are measured, on unseen seeds, with so many rows and so
much noise.
"""

from __future__ import annotations

import os
import sys

os.environ.setdefault("OMP_NUM_THREADS", "1")

import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from _common import report, row
from _laws_drawn import drawn
from _laws_field import FIELD, make_field
from _laws_held_out import HELD_OUT
from _laws_known import FURTHER, NOISE, REQUIRED, Known, make
from taskmix.laws import Law, LawRegressor, evaluate_formula, fit_formula, parse_formula

CLOSE = 0.02  # an error outside below this is small
UNSEEN = 100  # seeds from here on played no part while the search was written
BETTER = 3.0  # nats by which rows have to be likelier under a law to tell it from another


@dataclass(frozen=True)
class Found:
    """What the search made of one table."""

    is_right: bool
    is_named: bool  # not chosen, but among the forms that cannot be told from the choice
    is_sure: bool  # the choice stands alone
    is_missed: bool
    seconds: float
    error: float


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
    error = known.error_outside(predicted)
    return Found(is_right, is_named, len(tied) == 1, is_missed, seconds, error)


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


def each_law(name: str, tables: Iterable[Known]) -> tuple[list[dict[str, Any]], list[Found]]:
    found = [find(known) for known in tables]
    figures = {
        "chosen": (np.mean([each.is_right for each in found]), f"of {len(found)} seeds"),
        "seconds": (np.median([each.seconds for each in found]), "CPU s"),
        "error outside": (np.max([each.error for each in found]), "worst seed"),
    }
    rows = [row(f"{name}/{what}", float(v), None, "-", unit) for what, (v, unit) in figures.items()]
    print(rows, file=sys.stderr, flush=True)  # it takes half an hour
    return rows, found


def all_laws(name: str, found: list[Found]) -> list[dict[str, Any]]:
    """The shares over a whole set."""
    figures = {
        "chosen": np.mean([each.is_right for each in found]),
        "cannot tell, the right one named": np.mean([each.is_named for each in found]),
        "wrong and unsure": np.mean([not (e.is_right or e.is_named or e.is_sure) for e in found]),
        "wrong and sure": np.mean([not (e.is_right or e.is_named) and e.is_sure for e in found]),
        "cannot be told apart": np.mean([not (e.is_right or e.is_missed) for e in found]),
        "missed": np.mean([each.is_missed for each in found]),
        f"error outside below {CLOSE:.0%}": np.mean([each.error < CLOSE for each in found]),
    }
    unit = f"of {len(found)} tables"
    rows = [row(f"all {name}/{what}", float(v), None, "-", unit) for what, v in figures.items()]
    seconds = [each.seconds for each in found]
    for what, value in (("median", np.median(seconds)), ("longest", np.max(seconds))):
        rows.append(row(f"all {name}/{what} seconds", float(value), None, "-", "CPU s"))
    return rows


def required(quick: bool) -> list[dict[str, Any]]:
    return _required("required, seeds it was mended on", 0, quick)


def unseen(quick: bool) -> list[dict[str, Any]]:
    return _required("required, unseen seeds", UNSEEN, quick)


def _required(kind: str, first: int, quick: bool) -> list[dict[str, Any]]:
    seeds = range(first, first + (1 if quick else 10))
    laws = {name: [make(text, seed) for seed in seeds] for name, text in REQUIRED.items()}
    return every(kind, laws)


def known(quick: bool) -> list[dict[str, Any]]:
    names = list(FURTHER)[: 4 if quick else None]
    return every("written with", {name: [make(FURTHER[name], 0)] for name in names})


def field_laws(quick: bool) -> list[dict[str, Any]]:
    """Published forms with the ranges and units of the field, which first guesses were written for."""
    names = list(FIELD)[: 4 if quick else None]
    return every("forms of the field", {name: [make_field(name, UNSEEN)] for name in names})


def other_fields(quick: bool) -> list[dict[str, Any]]:
    seeds = range(UNSEEN, UNSEEN + (1 if quick else 2))
    names = list(HELD_OUT)[: 4 if quick else None]
    laws = {name: [HELD_OUT[name].make(seed) for seed in seeds] for name in names}
    return every("other fields", laws)


def at_random(quick: bool) -> list[dict[str, Any]]:
    found = [find(table) for _, table in drawn(4 if quick else 60, seed=UNSEEN)]
    return all_laws("drawn at random", found)


def every(kind: str, laws: dict[str, list[Known]]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    together: list[Found] = []
    for name, tables in laws.items():
        figures, found = each_law(name, tables)
        rows += figures
        together += found
    return rows + all_laws(kind, together)


def with_noise(rows: int, noise: float, count: int) -> list[dict[str, Any]]:
    """The laws required with other numbers of rows and other noise, on unseen seeds."""
    seeds = range(UNSEEN, UNSEEN + count)
    laws = {
        name: [make(text, seed, rows=rows, noise=noise) for seed in seeds]
        for name, text in REQUIRED.items()
    }
    return every(f"required, {rows} rows and {noise:.0%} noise", laws)


def measure(quick: bool, rows: int | None, noise: float | None, seeds: int) -> list[dict[str, Any]]:
    if rows is not None or noise is not None:
        return with_noise(rows or 1002, noise or NOISE, 1 if quick else seeds)
    sets = (unseen, required, known, field_laws, other_fields, at_random)
    return [each for part in sets for each in part(quick)]


if __name__ == "__main__":
    options = {
        "--rows": {"type": int, "default": None, "help": "rows of each table"},
        "--noise": {"type": float, "default": None, "help": "as a share of the value"},
        "--seeds": {"type": int, "default": 10, "help": "tables of each law, with these two"},
    }
    report("laws_recovery", measure, __doc__ or "", options=options)

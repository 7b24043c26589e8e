"""Forecasts of learning curves: the last third of each curve, told from the first two thirds.

The curves are those of `_laws_curves.py` (benchmarks/curves): every column of a table over rows, over
steps or over units, 42 in all. Compared are the fits of a power law with a limit that the parts of
taskmix use:

    one curve       `fit_power_law`, by squares and by Huber's loss (shares from learning curves)
    several curves  `fit_growth`, all curves of a table as ways (the adviser's race and promise); its
                    scores are 1 − error, and its interval is that of `adviser/_promise.py`
    law             `LawRegressor`, with the short search of `adviser/_outlook.py` (only with --law)

    python benchmarks/curve_forecasts.py [--law] [--quick] [--json]

Errors are root mean squares over all points left out, each in percent of its own value, and the median
of the same; coverage is the share of points in 90 % intervals of a measurement.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from _common import report, row
from _laws_curves import CURVES
from taskmix.adviser._growth import fit_growth
from taskmix.laws import LawRegressor, SearchOptions, read_table
from taskmix.numerics import fit_power_law, student_quantile

Array = NDArray[np.float64]
LEVEL = 0.9
GROWTH_DEGREES = 4.0  # as in `adviser/_expect.py`
INPUTS = {"digits": ("rows", "width"), "sarcos": ("rows", "steps"), "school": ("rows", "steps")}
Family = dict[str, tuple[Array, Array]]


def families() -> Iterator[tuple[str, Family]]:
    """Curves over one input, one for each value of the other."""
    for name, inputs in INPUTS.items():
        found = read_table(CURVES / f"{name}.csv", [*inputs, "error"])
        columns = {each: np.array(values, dtype=np.float64) for each, values in found.items()}
        for along, other in (inputs, inputs[::-1]):
            family = {}
            for value in np.unique(columns[other]):
                mine = columns[other] == value
                order = np.argsort(columns[along][mine])
                family[f"{other} {value:g}"] = (
                    columns[along][mine][order],
                    columns["error"][mine][order],
                )
            yield f"{name} over {along}", family


def divided(curve: tuple[Array, Array]) -> tuple[Array, Array, Array, Array]:
    sizes, errors = curve
    first = math.ceil(2 * len(sizes) / 3)
    return sizes[:first], errors[:first], sizes[first:], errors[first:]


def one_curve(family: Family, *, huber: bool) -> list[Array]:
    """[point, (said, low, high, came)] of each curve."""
    found = []
    for curve in family.values():
        sizes, errors, far, came = divided(curve)
        said = fit_power_law(sizes, errors, huber=huber).predict(far, level=LEVEL, measurement=True)
        found.append(np.stack([said.values, said.low, said.high, came], axis=1))
    return found


def several_curves(family: Family) -> list[Array]:
    parts = {name: divided(curve) for name, curve in family.items()}
    known = {
        name: [list(zip(sizes.tolist(), (1 - errors).tolist(), strict=True))]
        for name, (sizes, errors, _, _) in parts.items()
    }
    growth = fit_growth(known, 0.0)
    assert growth is not None
    found = []
    for name, (sizes, errors, far, came) in parts.items():
        rows = []
        for size, value in zip(far, came, strict=True):
            (gain,) = growth.gains([name], begin=sizes[-1], end=size)
            error = math.hypot(
                growth.error_between(sizes[-1], size), growth.mean_error_between(sizes[-1], size)
            )
            half = student_quantile(LEVEL, GROWTH_DEGREES) * error
            said = errors[-1] - gain
            rows.append((said, said - half, said + half, value))
        found.append(np.array(rows))
    return found


def searched(family: Family) -> list[Array]:
    found = []
    for curve in family.values():
        sizes, errors, far, came = divided(curve)
        if len(sizes) < 5:
            continue
        model = LawRegressor(SearchOptions(rounds=2, beam=2, branches=4))
        law = model.fit({"size": sizes}, errors).law_
        said = law.predict({"size": far}, level=LEVEL, measurement=True)
        found.append(np.stack([said.values, said.low, said.high, came], axis=1))
    return found


def measure(quick: bool, law: bool) -> list[dict[str, Any]]:
    methods = {
        "one curve": lambda family: one_curve(family, huber=False),
        "one curve, Huber": lambda family: one_curve(family, huber=True),
        "several curves": several_curves,
    }
    if law:
        methods["law"] = searched
    rows = []
    for method, told in methods.items():
        every: list[Array] = []
        for name, family in list(families())[:: 3 if quick else 1]:
            points = np.concatenate(told(family))
            every.append(points)
            rows += summary(f"{method}/{name}", points)
        rows += summary(f"{method}/all", np.concatenate(every))
    return rows


def summary(case: str, points: Array) -> list[dict[str, Any]]:
    said, low, high, came = points.T
    off = 100 * np.abs(said - came) / came
    held = float(np.mean((low <= came) & (came <= high)))
    return [
        row(case, float(np.sqrt(np.mean(off**2))), None, "-", "% off, root mean square"),
        row(case, float(np.median(off)), None, "-", "% off, median"),
        row(case, held, None, "-", f"share in {LEVEL:.0%} intervals"),
        row(case, float(np.median(100 * (high - low) / came)), None, "-", "% wide, median"),
    ]


if __name__ == "__main__":
    options = {"--law": {"action": "store_true", "help": "the search of laws besides"}}
    report("curve_forecasts", measure, __doc__ or "", options=options)

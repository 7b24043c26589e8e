"""The law search: CPU time to a law of given test error against gplearn and pyoperon, the form that is
found in the end, and the error far outside the data (`laws_recovery.py` has many more laws, without
peers). One thread; each peer with its own way of stopping:

gplearn (the paper's settings) is stopped after the first generation whose best program reaches the
error, pyoperon's budget of evaluations is doubled until a run reaches it and only that run is counted.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import time
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from _common import report, row
from _laws_known import REQUIRED, Known, make
from taskmix.laws import GplearnEngine, LawRegressor, OperonEngine

ENOUGH = 0.99  # R² on the test rows; the noise allows 0.994 to 0.998
GENERATIONS = 200  # the most gplearn is given; the paper speaks of at least 20
EVALUATIONS = 2_000_000  # the most Operon is given
COMPARED = ("eq3", "eq6", "G2")


def parts(known: Known) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    order = np.random.default_rng(0).permutation(len(known.target))
    return order[len(order) // 10 :], order[: len(order) // 10]


def r_squared(predicted: NDArray[np.float64], target: NDArray[np.float64]) -> float:
    return 1 - float(np.mean((predicted - target) ** 2) / np.var(target))


def ours_seconds(known: Known) -> float:
    begin = time.process_time()
    LawRegressor(enough=ENOUGH).fit(known.columns, known.target)
    return time.process_time() - begin


def gplearn_seconds(known: Known, seed: int, limit: float) -> float:
    """CPU seconds to the error; infinite where it was not reached within the limit."""
    train, test = parts(known)
    engine = GplearnEngine(scale=1.0)  # the tables are scaled as the paper's are already
    inputs = np.column_stack(list(known.columns.values()))
    model = engine.regressor(list(known.columns), seed, warm_start=True)
    begin = time.process_time()
    for generation in range(1, GENERATIONS + 1):
        model.set_params(generations=generation)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(inputs[train], known.target[train] * engine.scale)
            predicted = model.predict(inputs[test]) / engine.scale
        spent = time.process_time() - begin
        if r_squared(predicted, known.target[test]) >= ENOUGH:
            return spent
        if spent > limit:
            break
    return float("inf")


def operon_seconds(known: Known, seed: int) -> float:
    """CPU seconds of the run with the smallest budget that reaches the error."""
    from pyoperon.sklearn import SymbolicRegressor

    train, test = parts(known)
    inputs = np.column_stack(list(known.columns.values()))
    budget = 1000
    while budget <= EVALUATIONS:
        model = SymbolicRegressor(
            allowed_symbols=OperonEngine().symbols,
            optimizer_iterations=OperonEngine().local_iterations,
            max_length=OperonEngine().max_length,
            max_evaluations=budget,
            generations=10_000_000,
            objectives=["r2", "length"],
            n_threads=1,
            random_state=seed,
        )
        begin = time.process_time()
        model.fit(inputs[train], known.target[train])
        spent = time.process_time() - begin
        if r_squared(model.predict(inputs[test]), known.target[test]) >= ENOUGH:
            return spent
        budget *= 2
    return float("inf")


def speed(quick: bool) -> list[dict[str, Any]]:
    rows = []
    seeds = range(1 if quick else 3)
    limit = 10.0 if quick else 60.0
    for name in COMPARED[: 2 if quick else None]:
        tables = [make(REQUIRED[name], seed) for seed in seeds]
        ours = float(np.median([ours_seconds(known) for known in tables]))
        peers = {
            "gplearn": [gplearn_seconds(k, s, limit) for s, k in zip(seeds, tables, strict=True)],
            "pyoperon": [operon_seconds(k, s) for s, k in zip(seeds, tables, strict=True)],
        }
        for peer, times in peers.items():
            case = f"{name}/seconds to R² {ENOUGH}"
            median = float(np.median(times))
            if np.isinf(median):  # at least as slow as the limit says
                case += f", {peer} not within {limit:g} s" if peer == "gplearn" else ", not reached"
                median = limit if peer == "gplearn" else float("nan")
            rows.append(row(case, ours, median, peer, "CPU s", ratio=median / ours))
    return rows


def peer_law(known: Known, engine: Any, seed: int) -> tuple[bool, float]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        law = LawRegressor(engine, seed=seed).fit(known.columns, known.target).law_
        predicted = law.function()(**{k: known.far[k] for k in law.inputs}) if law.inputs else None
    if predicted is None:
        predicted = np.full(len(known.far_target), law.expression.constants[0])
    return law.same_form(known.formula), known.error_outside(predicted)


def quality(quick: bool) -> list[dict[str, Any]]:
    """What each chooses in the end: the share of seeds with the right form, and the median error."""
    rows = []
    seeds = range(1 if quick else 3)
    for name in COMPARED[1:] if quick else COMPARED:
        found: dict[str, list[tuple[bool, float]]] = {"ours": [], "gplearn": [], "pyoperon": []}
        for seed in seeds:
            known = make(REQUIRED[name], seed)
            found["ours"].append(peer_law(known, "search", seed))
            found["gplearn"].append(peer_law(known, GplearnEngine(scale=1.0), seed))
            budget = 100_000 if quick else 1_000_000
            found["pyoperon"].append(peer_law(known, OperonEngine(evaluations=budget), seed))
        for peer in ("gplearn", "pyoperon"):
            forms = [float(np.mean([good for good, _ in found[who]])) for who in ("ours", peer)]
            errors = [float(np.median([far for _, far in found[who]])) for who in ("ours", peer)]
            rows.append(row(f"{name}/form found", *forms, peer, "share of seeds"))
            ours, theirs = errors  # a formula that is not defined there has no error to tell
            told = theirs if np.isfinite(theirs) else None
            rows.append(row(f"{name}/error outside", ours, told, peer, "90th percentile"))
    return rows


def measure(quick: bool) -> list[dict[str, Any]]:
    return [each for part in (speed, quality) for each in part(quick)]


if __name__ == "__main__":
    report("laws", measure, __doc__ or "")

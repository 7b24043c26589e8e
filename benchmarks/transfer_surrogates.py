"""Which surrogate tells positive from negative transfer on subsets it was not fitted to.

    python benchmarks/transfer_surrogates.py DATA --encoder MINILM --tables FOLDER --minutes 20 --json

Trains what the tables lack (`_transfer_tables.py`), then fits; with whole tables nothing is trained. F1
is that of saying that a subset helps, beside saying it of all and beside the ceiling of seed noise.
`unseen` is the rank correlation and coverage of `predict_transfer` with every task left out in turn.
"""

from __future__ import annotations

import argparse
import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from _transfer_tables import CASES, Case, make_case, minutes_left, tables, train_table
from taskmix.errors import InputError
from taskmix.numerics import mean_interval
from taskmix.papers._transfer._sign_test import sign_test
from taskmix.transfer import (
    SubsetOutcomes,
    choose_surrogate,
    fit_company_surrogate,
    fit_constant_surrogate,
    fit_kernel_sm_surrogate,
    fit_kernel_surrogate,
    fit_linear_surrogate,
    fit_pair_surrogate,
    predict_transfer,
)

COMMON = ("always", "ceiling", "share")  # the same for every surrogate


def fits(generator: np.random.Generator) -> dict[str, Any]:
    """From simple to complex."""
    return {
        "constant": fit_constant_surrogate,
        "linear": fit_linear_surrogate,
        "company": fit_company_surrogate,
        "pairs": partial(fit_pair_surrogate, generator=generator),
        "kernel": fit_kernel_surrogate,
        "kernelsm": fit_kernel_sm_surrogate,
    }


def score(
    found: dict[str, tuple[SubsetOutcomes, SubsetOutcomes]], seed: int = 0
) -> dict[str, dict[str, Any]]:
    """By surrogate and measure the mean over targets; `chosen` is the one chosen for each target."""
    values: dict[str, dict[str, list[float]]] = {}
    for fitted, tried in found.values():
        generator = np.random.default_rng(seed)
        surrogates = {}
        for name, fit in fits(generator).items():
            try:
                surrogates[name] = fit(fitted)
            except InputError:
                continue
        surrogates["chosen"] = choose_surrogate(
            fitted, fits(generator), generator=generator
        ).surrogate
        for name, surrogate in surrogates.items():
            test = sign_test(surrogate, tried, generator=np.random.default_rng(seed))
            for measure in ("helps", "harms", "right", "spearman", *COMMON):
                values.setdefault(name, {}).setdefault(measure, []).append(getattr(test, measure))
    rows = {}
    for name, measures in values.items():
        rows[name] = {}
        for measure, each in measures.items():
            known = [value for value in each if np.isfinite(value)]
            if known:
                interval = mean_interval(known)
                rows[name][measure] = [interval.mean, interval.low, interval.high, len(known)]
    return rows


def unseen(case: Case, found: dict[str, tuple[SubsetOutcomes, SubsetOutcomes]]) -> dict[str, Any]:
    """`predict_transfer` with every task left out, on the mean vectors of the tasks' train rows."""
    tasks = list(found)
    effects = {name: fit_linear_surrogate(fitted) for name, (fitted, _) in found.items()}
    gains = np.full((len(tasks), len(tasks)), np.nan)
    for target, surrogate in effects.items():
        for source, gain in zip(surrogate.sources, surrogate.gains, strict=True):
            gains[tasks.index(target), tasks.index(source)] = gain
    encoding: Any = getattr(case.run.architecture, "reads")  # noqa: B009
    encoded = encoding.encode(case.run.load(), cache=getattr(case.run.source, "cache", None))
    means = np.array(
        [encoded[name].splits["train"].inputs.values.mean(dim=0).numpy() for name in tasks]
    )
    # A few directions of the differences between tasks: fewer than there are tasks.
    left, strengths, _ = np.linalg.svd(means - means.mean(axis=0), full_matrices=False)
    answer = predict_transfer(gains, (left * strengths)[:, :4], np.zeros(4), tasks=tasks)
    interval = mean_interval(answer.correlations[np.isfinite(answer.correlations)])
    return {
        "correlation": [interval.mean, interval.low, interval.high, interval.n],
        "coverage": answer.coverage,
        "tells": answer.tells,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--encoder", required=True)
    parser.add_argument("--tables", type=Path, required=True, help="the folder of the CSV files")
    parser.add_argument("--case", action="append", choices=CASES, help="[those not put aside]")
    parser.add_argument("--minutes", type=float, default=60.0, help="of training, at most")
    parser.add_argument("--outcome", choices=("loss", "metric"), default="loss")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    asked.tables.mkdir(parents=True, exist_ok=True)
    stop, rows = minutes_left(asked.minutes), {}
    for name in asked.case or [case for case in CASES if not case.endswith("aside")]:
        cache = asked.tables / "vectors"
        case = make_case(name, asked.data, asked.encoder, cache, quick=asked.quick)
        path, whole = train_table(case, asked.tables, stop)
        if not whole:
            rows[name] = {"unfinished": True}
            continue
        found = tables(path, asked.outcome)
        rows[name] = {"surrogates": score(found)}
        if len(found) > 1:
            rows[name]["unseen"] = unseen(case, found)
        if not asked.json:
            for surrogate, measures in rows[name]["surrogates"].items():
                words = "  ".join(f"{key} {each[0]:.3f}" for key, each in measures.items())
                print(f"{name:14} {surrogate:9} {words}", flush=True)
            print(f"{name:14} unseen    {rows[name].get('unseen')}", flush=True)
    if asked.json:
        print(json.dumps({"outcome": asked.outcome, "cases": rows}, indent=2))


if __name__ == "__main__":
    main()

"""Which surrogate tells positive from negative transfer on subsets it was not fitted to.

    python benchmarks/transfer_surrogates.py DATA --encoder MINILM --tables FOLDER --minutes 20 --json

Trains what the tables lack (`_transfer_tables.py`), then fits; with whole tables nothing is trained. F1
is that of saying that a subset helps, beside saying it of all and beside the ceiling of seed noise, with
paired differences from the linear surrogate.
`unseen` is the rank correlation and coverage of `predict_transfer` with every task left out in turn.
"""

from __future__ import annotations

import argparse
import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from _transfer_tables import CASES, Case, make_case, minutes_left, tables, train_table
from taskmix.errors import InputError
from taskmix.numerics import mean_interval
from taskmix.papers._transfer._sign_test import f1, sign_test
from taskmix.transfer import (
    SubsetOutcomes,
    Surrogate,
    choose_surrogate,
    fit_company_surrogate,
    fit_constant_surrogate,
    fit_kernel_sm_surrogate,
    fit_kernel_surrogate,
    fit_linear_surrogate,
    fit_pair_surrogate,
    predict_transfer,
)

TOLD = ("right", "spearman")  # measures that every target has
COMPARED = ("company", "kernelsm", "chosen")  # with linear, in pairs
DRAWS = 2000


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


def fit_all(fitted: SubsetOutcomes, seed: int) -> dict[str, Surrogate]:
    """By name; `chosen` is chosen out of fold, from those that `taskmix transfer` chooses from."""
    generator = np.random.default_rng(seed)
    found: dict[str, Surrogate] = {}
    for name, fit in fits(generator).items():
        try:
            found[name] = fit(fitted)
        except InputError:
            continue
    candidates = {name: fit for name, fit in fits(generator).items() if name != "pairs"}
    found["chosen"] = choose_surrogate(fitted, candidates, generator=generator).surrogate
    return found


def score(
    found: dict[str, tuple[SubsetOutcomes, SubsetOutcomes]], seed: int = 0
) -> dict[str, dict[str, Any]]:
    """By surrogate and measure the mean over targets, and the difference from linear.

    F1 of "helps" is over the targets in which some held-out subset helps, and F1 of "harms" over those
    in which some does not: the same targets in every row. Intervals are over targets, or with one target
    over its held-out subsets, drawn again.
    """
    values: dict[str, dict[str, list[float]]] = {}
    drawn: dict[str, NDArray[np.float64]] = {}
    for fitted, tried in found.values():
        surrogates = fit_all(fitted, seed)
        if len(found) == 1:
            drawn = resampled(surrogates, tried, seed)
        for name, surrogate in surrogates.items():
            test = sign_test(surrogate, tried, generator=np.random.default_rng(seed))
            told = {measure: getattr(test, measure) for measure in TOLD}
            if test.share > 0:
                told |= {"helps": test.helps, "always": test.always, "ceiling": test.ceiling}
            if test.share < 1:
                told["harms"] = test.harms
            for measure, value in told.items():
                values.setdefault(name, {}).setdefault(measure, []).append(value)
    rows: dict[str, dict[str, Any]] = {}
    for name, measures in values.items():
        rows[name] = {measure: summary(each) for measure, each in measures.items()}
        if name in COMPARED:
            for measure in ("helps", "harms", "spearman"):
                if measure in measures:
                    pair = measures[measure], values["linear"][measure]
                    rows[name][f"{measure} minus linear"] = difference(*pair)
        if name in drawn and "helps" in measures:
            rows[name]["helps"][1:3] = np.nanpercentile(drawn[name], [2.5, 97.5]).tolist()
            if name in COMPARED:
                apart = drawn[name] - drawn["linear"]
                rows[name]["helps minus linear"][1:3] = np.nanpercentile(
                    apart, [2.5, 97.5]
                ).tolist()
    return rows


def summary(each: list[float]) -> list[float]:
    """Mean, interval, and over how many targets; NaN is left out."""
    known = [value for value in each if np.isfinite(value)]
    interval = mean_interval(known) if known else None
    return [] if interval is None else [interval.mean, interval.low, interval.high, interval.n]


def difference(ours: list[float], linear: list[float]) -> list[float]:
    """The same of differences, paired by target."""
    return summary([one - other for one, other in zip(ours, linear, strict=True)])


def resampled(
    surrogates: dict[str, Surrogate], tried: SubsetOutcomes, seed: int
) -> dict[str, NDArray[np.float64]]:
    """By surrogate F1 of "helps" on held-out subsets that are drawn again."""
    generator = np.random.default_rng(seed)
    helped = tried.losses < tried.anchor
    draws = generator.integers(len(helped), size=(DRAWS, len(helped)))
    said = {name: one.predict(tried.subsets) < one.anchor for name, one in surrogates.items()}
    return {
        name: np.array([f1(helped[rows], says[rows]) for rows in draws])
        for name, says in said.items()
    }


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


def written(measure: tuple[str, list[float]]) -> str:
    """A measure as text, with the interval of a difference."""
    name, each = measure
    if not each:
        return ""
    ends = f" ({each[1]:.3f} to {each[2]:.3f})" if "minus" in name else ""
    return f"{name} {each[0]:.3f}{ends} of {each[3]}"


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
                words = "  ".join(map(written, measures.items()))
                print(f"{name:14} {surrogate:9} {words}", flush=True)
            print(f"{name:14} unseen    {rows[name].get('unseen')}", flush=True)
    if asked.json:
        print(json.dumps({"outcome": asked.outcome, "cases": rows}, indent=2))


if __name__ == "__main__":
    main()

"""The league of laws: the largest range of an input is left out, and told from the rest.

On every table at hand that has an order: the train rows of published scaling laws (their test rows are
not read), the grids of ten thousand taggers (docs/papers) and learning curves of small perceptrons
(`_laws_curves.py`). In each, the rows with the largest values of one input (above its 80th percentile)
are left out. Compared are our choice, our stack of tied laws, the people's form (a floor and a power of
each input), pyoperon, gplearn, a Gaussian process and a straight line in logarithms (`_laws_peers.py`).
pyoperon and gplearn get scaled columns and the CPU seconds that our search took.

    TASKMIX_DATA=... python benchmarks/laws_league.py [--above 0.8] [--keep FILE.json] [--quick] [--json]

Each fit is a process of its own: CPU seconds are its own, and its memory is the peak above what it
began with. With `--keep`, finished fits are read from that file and not done again. A prediction that
is no number counts as the worst rank.

What the rule of our choice was tuned on is in `laws_tables.py`: ranges left out of the train rows of
moe and data_constrained and of the balanced grid of taggers; forms were written while looking at
domain_mixture. Those cases are not new to it. The unbalanced grid and the learning curves are counted
apart, and of them the five ranges of `UNSEEN`, which no method had been scored on before they were run
once; those of digits and of the real task's words have been seen since. The people's form leaves out
columns with zeros and has no products.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import json
import multiprocessing
import resource
import sys
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import rankdata

from _common import ROOT, report, row
from _laws_curves import CURVES
from _laws_peers import METHODS, Columns, Floats, quietly
from laws_tables import LEAST_ROWS, LEFT_OUT_ABOVE, TABLES, path_of, r_squared, read
from taskmix.laws import read_table

# Our choice was made on ranges of these, or forms were written while looking at them.
TUNED = ("moe", "data_constrained", "domain_mixture", "taggers, equal words", "taggers, one task")
# Named before they were run, once.
UNSEEN = (
    "taggers, more words/n_syn",
    "curves of sarcos/rows",
    "curves of sarcos/steps",
    "curves of school/rows",
    "curves of school/steps",
)
NAMES = ("choice", "stack", "people", "pyoperon", "gplearn", "process", "linear")
WORST = float("-inf")
Case = tuple[str, Columns, Floats, Columns, Floats]


def tables() -> Iterator[tuple[str, Columns, Floats, tuple[str, ...]]]:
    """Each table: its columns, its target, and the inputs whose largest values are left out."""
    for name in TABLES:
        if path_of(name, "train").is_file():
            columns, target = read(name, "train")
            yield name, columns, target, tuple(columns)
    if path_of("domain_mixture", "train").is_file():
        shares = [f"share_{place}" for place in range(1, 5)]  # the fifth is what they leave
        found = read_table(
            path_of("domain_mixture", "train"), ["model", *shares, "loss_1", "loss_4"]
        )
        sizes = np.array([float(str(model).removesuffix("M")) for model in found["model"]])
        columns = {"size": sizes, **{name: _floats(found[name]) for name in shares}}
        for loss in ("loss_1", "loss_4"):
            yield f"domain_mixture {loss}", columns, _floats(found[loss]), ("size",)
    for what, name, sizes_of in (
        ("taggers, equal words", "laws-balanced", ("n",)),
        ("taggers, more words", "laws-unbalanced", ("n_ner", "n_syn")),
    ):
        found = read_table(ROOT / "docs" / "papers" / f"{name}.csv", [*sizes_of, "T", "ami", "f1"])
        columns = {each: _floats(values) for each, values in found.items()}
        target = columns.pop("f1")
        columns["ami"] = np.maximum(columns["ami"], 0.0)  # below it only by chance
        alone = columns["T"] == 1
        if name == "laws-balanced":
            yield "taggers, one task", {"n": columns["n"][alone]}, target[alone], ("n",)
        varied = {each: values[~alone] for each, values in columns.items()}
        varied = {each: values for each, values in varied.items() if np.ptp(values) > 0}
        yield what, varied, target[~alone], tuple(each for each in varied if each != "ami")
    for name, inputs in (
        ("digits", ("rows", "width")),
        ("sarcos", ("rows", "steps")),
        ("school", ("rows", "steps")),
    ):
        found = read_table(CURVES / f"{name}.csv", [*inputs, "error"])
        columns = {each: _floats(values) for each, values in found.items()}
        target = columns.pop("error")
        yield f"curves of {name}", columns, target, inputs


def _floats(values: Any) -> Floats:
    return np.array(values, dtype=np.float64)


def cases(above: float) -> Iterator[Case]:
    for name, columns, target, inputs in tables():
        for each in inputs:
            column = columns[each]
            beyond = column > np.quantile(column, above)
            if not beyond.any():
                beyond = column == column.max()
            if beyond.sum() < LEAST_ROWS:
                continue
            near, far = ({k: v[mask] for k, v in columns.items()} for mask in (~beyond, beyond))
            yield f"{name}/{each}", near, target[~beyond], far, target[beyond]


def fit(method: str, case: Case, seconds: float) -> dict[str, Any]:
    """What a method says in a process of its own: R², RMSE, CPU seconds and megabytes."""
    here, there = multiprocessing.get_context("fork").Pipe(duplex=False)
    child = multiprocessing.get_context("fork").Process(
        target=_fit, args=(there, method, case, seconds)
    )
    child.start()
    there.close()
    try:
        found: dict[str, Any] = here.recv()
    except EOFError:
        found = {"error": "the process ended"}
    child.join()
    return found


def _fit(to: Connection, method: str, case: Case, seconds: float) -> None:
    _, near, target, far, wanted = case
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begin = time.process_time()
    try:
        said = quietly(method, near, target, far, seconds)
    except Exception as error:  # a method that fails has the worst rank, and says why
        to.send({"error": f"{type(error).__name__}: {error}"})
        return
    spent = time.process_time() - begin
    more = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    held = None
    if "low" in said:
        held = float(np.mean((said.pop("low") <= wanted) & (wanted <= said.pop("high"))))
    scores = {}
    for name, values in said.items():
        good = bool(np.all(np.isfinite(values)))
        scores[name] = {
            "r2": r_squared(values, wanted) if good else None,
            "rmse": float(np.sqrt(np.mean((values - wanted) ** 2))) if good else None,
        }
    to.send({"scores": scores, "held": held, "seconds": spent, "megabytes": more})


def league(keep: Path | None, quick: bool, above: float) -> dict[str, dict[str, Any]]:
    """[case][method]; what was kept is not done again."""
    done: dict[str, dict[str, Any]] = {}
    if keep is not None and keep.is_file():
        done = json.loads(keep.read_text())
    chosen = list(cases(above))
    for number, case in enumerate(chosen[::6] if quick else chosen):
        found = done.setdefault(case[0], {})
        for method in METHODS:  # ours is the first: its time is the others' limit
            if method not in found:
                limit = found.get("ours", {}).get("seconds", 10.0)
                found[method] = fit(method, case, limit)
                if keep is not None:
                    keep.write_text(json.dumps(done, indent=1))
        print(f"... {number + 1} of {len(chosen)}: {case[0]}", file=sys.stderr, flush=True)
    return done


def score(found: dict[str, Any], name: str, what: str) -> float:
    for each in found.values():
        value = each.get("scores", {}).get(name, {}).get(what)
        if value is not None:
            return float(value)
    return WORST if what == "r2" else float("inf")


def measure(quick: bool, keep: str | None, above: float) -> list[dict[str, Any]]:
    done = league(None if keep is None else Path(keep), quick, above)
    rows, ranks = [], {}
    for case, found in done.items():
        scores = {name: score(found, name, "r2") for name in NAMES}
        others = [scores[name] for name in NAMES]
        ranks[case] = dict(
            zip(NAMES, rankdata([-value for value in others], "average"), strict=True)
        )
        best = max(NAMES[2:], key=lambda name: scores[name])
        for name in NAMES:
            rows.append(row(f"{case}/{name}", scores[name], scores[best], best, "R²"))
            error = score(found, name, "rmse")
            rows.append(row(f"{case}/{name}", error, score(found, best, "rmse"), best, "RMSE"))
            rows.append(row(f"{case}/{name}", ranks[case][name], None, "-", "rank of 7"))
        held = found["ours"].get("held")
        if held is not None:
            rows.append(row(f"{case}/held in 90 % intervals", held, None, "-", "share of rows"))
    new = [case for case in ranks if not case.startswith(TUNED)]
    unseen = [case for case in ranks if case in UNSEEN]
    for words, among in (("all", list(ranks)), ("never tuned on", new), ("unseen", unseen)):
        for name in NAMES if among else ():
            places = [ranks[case][name] for case in among]
            title = f"{words} ({len(among)} ranges)/{name}"
            rows.append(row(title, float(np.median(places)), None, "-", "median rank"))
            rows.append(row(title, float(np.mean(places)), None, "-", "mean rank"))
        shares = [done[case]["ours"]["held"] for case in among if "held" in done[case]["ours"]]
        if shares:
            title = f"{words} ({len(among)} ranges)/held in 90 % intervals"
            rows.append(row(title, float(np.mean(shares)), None, "-", "mean share"))
    for method in METHODS:
        spent = [found[method]["seconds"] for found in done.values() if "scores" in found[method]]
        more = [found[method]["megabytes"] for found in done.values() if "scores" in found[method]]
        rows.append(row(method, float(np.median(spent)), float(np.max(spent)), "most", "CPU s"))
        rows.append(row(method, float(np.median(more)), float(np.max(more)), "most", "MB more"))
    return rows


if __name__ == "__main__":
    options: dict[str, dict[str, Any]] = {
        "--keep": {"default": None, "help": "a JSON file of finished fits, to go on with"},
        "--above": {
            "type": float,
            "default": LEFT_OUT_ABOVE,
            "help": "the quantile of an input above which rows are left out",
        },
    }
    report("laws_league", measure, __doc__ or "", options=options)

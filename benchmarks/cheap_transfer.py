"""Cheap estimates of the transfer matrix against a trained one: rank correlation and seconds.

The truth is the gains of every source for every target, from many subsets under several seeds. How
well any estimate can agree with it is bounded by the truth's own noise, the ceiling: the root of
its reliability, from the correlation of its halves (even and odd seeds) by Spearman and Brown.
Correlations are the mean over targets of Spearman's within a target, and over all pairs; intervals
of 95 % by drawing targets again. `of_ceiling` is the first, divided by its ceiling.

Few runs are as many subsets a target as there are tasks, and one run alone: by least squares, shrunken
(`fit_shrunken_surrogates`), and shrunken with each cheaper estimate as prior, whose seconds are counted
too. They are the means of three draws, and `minus_squares` is the difference to least squares.

    python benchmarks/cheap_transfer.py digits --out DIR [--csv FILE]
    python benchmarks/cheap_transfer.py census --data $TASKMIX_DATA --out DIR
    python benchmarks/cheap_transfer.py school --data $TASKMIX_DATA --out DIR
    python benchmarks/cheap_transfer.py TEN --model MINILM --tune adapters --device cuda --out DIR

Seconds are of this process's CPU time, on a GPU of the wall. Truth and estimates share nothing.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import stats

from taskmix.engine import DigitsSource, Fleet, FolderSource, Optimization, Run
from taskmix.models import Perceptron, pretrained
from taskmix.records import Study
from taskmix.transfer import (
    GradientOptions,
    SubsetDesign,
    TransferStudy,
    TrialOutcomes,
    estimate_by_gradients,
    fit_linear_surrogate,
    fit_shrunken_surrogates,
    measure_trials,
)

STATES = ("AK", "WY", "VT", "ND", "SD", "DE", "MT", "RI", "NH", "HI")
RATES = {"heads": 0.001, "adapters": 0.0005}
Matrix = NDArray[np.float64]  # [target, source], NaN on the diagonal
DRAWS = 2000
FEW = 3  # draws of few runs, whose correlations and seconds are averaged


@dataclass
class Clock:
    device: str
    seconds: float = 0.0

    def now(self) -> float:
        return time.perf_counter() if self.device.startswith("cuda") else time.process_time()

    @contextmanager
    def running(self) -> Iterator[None]:
        begin = self.now()
        yield
        self.seconds += self.now() - begin


def template(options: argparse.Namespace) -> tuple[Run, dict[str, Any]]:
    """The run that subsets vary, and the rest of the question."""
    if options.folder == "digits":
        run = Run(
            label="digits",
            source=DigitsSource(),
            architecture=Perceptron(),
            optimization=Optimization(learning_rate=0.005),
            steps=800,
            seed=0,
        )
        return run, {"outcome": "metric"}
    if options.folder == "census":
        path = Path(options.data) / "acs_income" / "acs_income_2018_sample40.parquet"
        source = FolderSource(path=str(path), task_column="state", tasks=STATES)
        run = Run(
            label="census",
            source=source,
            architecture=Perceptron(),
            steps=300,
            seed=0,
            batch_size=64,
        )
        return run, {}
    if options.folder == "school":
        path = Path(options.data) / "school_ilea" / "school.csv.gz"
        source = FolderSource(
            path=str(path), task_column="school", label=("score",), kind="regression"
        )
        sizes = {task.name: task.size for task in source.load()}
        largest = tuple(sorted(sorted(sizes, key=lambda name: -sizes[name])[:10]))
        run = Run(
            label="school",
            source=replace(source, tasks=largest),
            architecture=Perceptron(),
            steps=300,
            seed=0,
        )
        return run, {}
    run = Run(
        label="text",
        source=FolderSource(path=options.folder),
        architecture=pretrained(options.model, options.tune, max_length=64),
        optimization=Optimization(learning_rate=RATES[options.tune]),
        steps=300,
        seed=0,
        device=options.device,
        precision="bfloat16"
        if options.device != "cpu" and options.tune == "adapters"
        else "float32",
    )
    return run, {"budget": "total"}


def gains(
    measured: TrialOutcomes, keep: Callable[[int, int], bool] = lambda row, seed: True
) -> Matrix:
    """The matrix from the trials whose number and seed are kept."""
    chosen = [n for n, trial in enumerate(measured.trials) if keep(n, trial.run.seed)]
    some = replace(
        measured,
        trials=tuple(measured.trials[n] for n in chosen),
        outcomes=measured.outcomes[chosen],
        errors=tuple(measured.errors[n] for n in chosen),
    )
    names = measured.description.tasks
    found = np.full((len(names), len(names)), np.nan)
    for row, target in enumerate(names):
        others = [n for n in range(len(names)) if n != row]
        found[row, others] = fit_linear_surrogate(some.table(target), ridge=0.1).gains
    return found


def shrunken(measured: TrialOutcomes, prior: Matrix | None = None) -> Matrix:
    """The same of all targets together, drawn towards a cheaper matrix if there is one."""
    names = measured.description.tasks
    cheaper = (
        {
            target: {source: float(prior[row, column]) for column, source in enumerate(names)}
            for row, target in enumerate(names)
        }
        if prior is not None
        else None
    )
    tables = [measured.table(target) for target in names]
    found = fit_shrunken_surrogates(tables, prior=cheaper)
    if found.prior:
        print(found.prior, file=sys.stderr, flush=True)
    return np.array([np.insert(one.gains, row, np.nan) for row, one in enumerate(found.surrogates)])


def within(one: Matrix, other: Matrix) -> NDArray[np.float64]:
    """Spearman's correlation of each target's sources."""
    return np.array(
        [
            stats.spearmanr(a[~np.isnan(b)], b[~np.isnan(b)]).statistic
            for a, b in zip(one, other, strict=True)
        ]
    )


def overall(one: Matrix, other: Matrix) -> float:
    known = ~np.isnan(other)
    return float(stats.spearmanr(one[known], other[known]).statistic)


def interval(values: Callable[[NDArray[np.int64]], float], count: int) -> tuple[float, float]:
    generator = np.random.default_rng(0)
    found = [values(generator.integers(count, size=count)) for _ in range(DRAWS)]
    low, high = np.nanpercentile(found, [2.5, 97.5])
    return float(low), float(high)


class Bench:
    """The truth of one folder, and rows of estimates beside it."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options, self.rows = options, list[dict[str, Any]]()
        run, rest = template(options)
        names = run.load().names
        design = SubsetDesign(count=options.subsets, alone=4 * options.seeds, repeats=options.seeds)
        self.asked = TransferStudy(template=run, targets=names, design=design, **rest)
        self.fleet, self.began = Fleet(workers=1), time.monotonic()
        self.plain: NDArray[np.float64] | None = None  # [target], of few runs by least squares
        self.priors = dict[str, tuple[Matrix, float]]()  # cheap estimates, with their seconds

    def left(self) -> bool:
        return time.monotonic() - self.began < 60 * self.options.minutes

    def train(self, asked: TransferStudy, name: str) -> tuple[TrialOutcomes, float]:
        trials = [*asked.alone(), *asked.subsets(asked.design.count or 0)]
        clock = Clock(self.options.device)
        with clock.running():
            study = Study(self.options.out / name, lean=True)
            measured = measure_trials(asked, trials, study, self.fleet)
        print(f"{name}: {len(trials)} runs, {clock.seconds:.1f} s", file=sys.stderr, flush=True)
        return measured, clock.seconds

    def truth(self) -> None:
        self.trained, self.seconds = self.train(self.asked, "truth")
        self.matrix = gains(self.trained)
        halves = [gains(self.trained, lambda _, seed, k=k: seed % 2 == k) for k in (0, 1)]  # type: ignore[misc]
        self.ceilings = [
            float(np.sqrt(max(2 * r / (1 + r), 0.0)))
            for r in (float(np.nanmean(within(*halves))), overall(*halves))
        ]
        print(f"ceilings within, overall: {self.ceilings}", file=sys.stderr, flush=True)

    def add(
        self, estimator: str, found: Matrix | list[Matrix], seconds: float, note: Any = ""
    ) -> None:
        matrices = found if isinstance(found, list) else [found]
        ranks = np.mean([within(one, self.matrix) for one in matrices], axis=0)
        low, high = interval(lambda rows: float(np.nanmean(ranks[rows])), len(ranks))
        row = {
            "folder": Path(self.options.folder).name,
            "estimator": estimator,
            "within": float(np.nanmean(ranks)),
            "low": low,
            "high": high,
            "of_ceiling": float(np.nanmean(ranks)) / self.ceilings[0],
            "overall": float(np.mean([overall(one, self.matrix) for one in matrices])),
            "ceiling_within": self.ceilings[0],
            "ceiling_overall": self.ceilings[1],
            "seconds": seconds,
            "share": seconds / self.seconds,
            "note": note,
            "minus_squares": "",
        }
        if estimator.startswith("few runs"):
            if self.plain is None:
                self.plain = ranks
            away = ranks - self.plain
            ends = interval(lambda rows: float(np.nanmean(away[rows])), len(ranks))
            row["minus_squares"] = f"{np.nanmean(away):.2f} ({ends[0]:.2f} to {ends[1]:.2f})"
        self.rows.append({k: round(v, 4) if isinstance(v, float) else v for k, v in row.items()})
        print({k: v for k, v in self.rows[-1].items() if "ceiling" not in k}, flush=True)
        self.save()

    def save(self) -> None:
        with Path(self.options.csv).open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(self.rows[0]))
            writer.writeheader()
            writer.writerows(self.rows)

    def fewer(self, share: float) -> None:
        """A part of the same kind of runs, under seeds of their own, at a share of the seconds."""
        self.shorter(1.0, share, "fewer subsets")

    def shorter(self, steps: float, subsets: float, name: str = "shorter runs") -> None:
        run = self.asked.template
        count = max(
            round(subsets * self.options.subsets * self.options.seeds), len(self.asked.tasks)
        )
        asked = replace(
            self.asked,
            template=replace(run, steps=max(round(steps * run.steps), 10), seed=90_000),
            design=SubsetDesign(count=count, alone=3, seed=9),
        )
        measured, seconds = self.train(asked, f"steps-{steps}-subsets-{subsets}")
        self.add(name, gains(measured), seconds, f"{steps} of steps, {subsets} of runs")
        if steps < 1:
            self.priors[f"{steps} of steps, {subsets} of runs"] = gains(measured), seconds

    def few(self) -> None:
        """Few runs in full, alone and with what cheaper estimates found."""
        draws = []
        for number in range(FEW):
            run = replace(self.asked.template, seed=91_000 + 1_000 * number)
            design = SubsetDesign(count=len(self.asked.tasks), alone=1, seed=20 + number)
            draws.append(
                self.train(replace(self.asked, template=run, design=design), f"few-{number}")
            )
        seconds = float(np.mean([each for _, each in draws]))
        self.add("few runs, least squares", [gains(one) for one, _ in draws], seconds)
        self.add("few runs, shrunken", [shrunken(one) for one, _ in draws], seconds)
        for name, (prior, more) in self.priors.items():
            both = [shrunken(one, prior) for one, _ in draws]
            self.add("few runs and a prior, shrunken", both, seconds + more, name)

    def gradients(self, name: str, count: int, options: GradientOptions) -> None:
        """Estimates from each model alone, which say how far two agree, and their mean."""
        clock, found = Clock(self.options.device), []
        design = SubsetDesign(count=count, alone=1, held_out=3, seed=5)
        for seed in range(options.models):
            run = replace(self.asked.template, seed=70_000 + seed)
            asked = replace(self.asked, template=run, design=design)
            with clock.running():
                estimated = estimate_by_gradients(
                    asked,
                    Study(self.options.out / "models"),
                    executor=self.fleet,
                    options=replace(options, models=1),
                )
            found.append(gains(estimated))
        note = f"models agree {np.nanmean(within(*found[:2])):.2f}" if len(found) > 1 else ""
        self.add(name, np.mean(found, axis=0), clock.seconds, note)
        self.priors[name] = np.mean(found, axis=0), clock.seconds

    def heads(self) -> None:
        """The same question of heads on frozen vectors."""
        run = self.asked.template
        heads = pretrained(self.options.model, "heads", max_length=64)
        rate = Optimization(learning_rate=RATES["heads"])
        for share in (0.1, 0.5):
            count = round(share * self.options.subsets * self.options.seeds)
            asked = replace(
                self.asked,
                template=replace(
                    run, architecture=heads, optimization=rate, precision="float32", seed=80_000
                ),
                design=SubsetDesign(count=count, alone=4, seed=9),
            )
            measured, seconds = self.train(asked, f"heads-{share}")
            self.add("heads on frozen vectors", gains(measured), seconds, f"{share} of runs")
            self.priors[f"heads, {share} of runs"] = gains(measured), seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", help="digits, census, school, or a task folder of texts")
    parser.add_argument("--data", default=".")
    parser.add_argument("--model")
    parser.add_argument("--tune", default="adapters", choices=("adapters", "heads"))
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--subsets", type=int, default=60, help="of a target in the truth")
    parser.add_argument("--seeds", type=int, default=4, help="of each of them")
    parser.add_argument("--minutes", type=float, default=60.0, help="no estimator begins after")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--csv", default="cheap.csv")
    options = parser.parse_args()
    torch.manual_seed(0)
    bench = Bench(options)
    bench.truth()
    todo: list[Callable[[], None]] = [
        lambda: bench.fewer(0.1),
        lambda: bench.shorter(0.1, 0.1),
        lambda: bench.shorter(0.25, 0.25),
        lambda: bench.shorter(0.1, 0.5),
        lambda: bench.shorter(0.25, 0.1),
    ]
    if options.model and options.tune == "adapters":
        todo.append(bench.heads)
    else:
        todo.append(lambda: bench.gradients("linearised", 100, GradientOptions()))
    todo.append(bench.few)
    for each in todo:
        if not bench.left():
            print("Out of time; the rest is left out.", flush=True)
            break
        each()


if __name__ == "__main__":
    main()

"""What shrinking and a cheaper study (`taskmix transfer --shrink`, `--prior-study`) bring to few runs.

The truth is the gains of every source for every target, from many subsets under several seeds. How
well any estimate can agree with it is bounded by the truth's own noise, the ceiling: the root of
its reliability, from the correlation of its halves (even and odd seeds) by Spearman and Brown.
Correlations are the mean over targets of Spearman's within a target; intervals of 95 % by drawing
targets again.

Few runs are as many subsets a target as there are tasks, and one run alone: by least squares, shrunken
(`fit_shrunken_surrogates`), and shrunken with each study of shorter runs as prior, whose seconds are
counted too. They are the means of three draws, and `minus_squares` is the difference to least squares.

    OMP_NUM_THREADS=1 python benchmarks/few_runs.py digits --subsets 20 --out DIR
    OMP_NUM_THREADS=1 python benchmarks/few_runs.py census --subsets 40 --out DIR
    OMP_NUM_THREADS=1 python benchmarks/few_runs.py school --subsets 40 --out DIR

Seconds are of this process's CPU time. Truth and estimates share nothing.
"""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from _common import DATA, Row, report
from taskmix.engine import DigitsSource, Fleet, FolderSource, Optimization, Run
from taskmix.models import Perceptron
from taskmix.records import Study
from taskmix.transfer import (
    SubsetDesign,
    TransferStudy,
    TrialOutcomes,
    fit_linear_surrogate,
    fit_shrunken_surrogates,
    measure_trials,
)

STATES = ("AK", "WY", "VT", "ND", "SD", "DE", "MT", "RI", "NH", "HI")
Matrix = NDArray[np.float64]  # [target, source], NaN on the diagonal
DRAWS = 2000
FEW = 3  # draws of few runs, whose correlations and seconds are averaged
PRIORS = ((0.25, 0.1), (0.25, 0.25))  # shares of the steps and of the runs


def template(folder: str) -> tuple[Run, dict[str, Any]]:
    """The run that subsets vary, and the rest of the question."""
    run = Run(label=folder, source=DigitsSource(), architecture=Perceptron(), steps=300, seed=0)
    if folder == "digits":
        optimization = Optimization(learning_rate=0.005)
        return replace(run, optimization=optimization, steps=800), {"outcome": "metric"}
    if folder == "census":
        path = DATA / "acs_income" / "acs_income_2018_sample40.parquet"
        source = FolderSource(path=str(path), task_column="state", tasks=STATES)
        return replace(run, source=source, batch_size=64), {}
    path = DATA / "school_ilea" / "school.csv.gz"
    source = FolderSource(path=str(path), task_column="school", label=("score",), kind="regression")
    sizes = {task.name: task.size for task in source.load()}
    largest = tuple(sorted(sorted(sizes, key=lambda name: -sizes[name])[:10]))
    return replace(run, source=replace(source, tasks=largest)), {}


def gains(measured: TrialOutcomes, seeds: tuple[int, ...] = (0, 1)) -> Matrix:
    """The matrix by least squares, from the trials of even or odd seeds or both."""
    chosen = [n for n, trial in enumerate(measured.trials) if trial.run.seed % 2 in seeds]
    some = replace(
        measured,
        trials=tuple(measured.trials[n] for n in chosen),
        outcomes=measured.outcomes[chosen],
        errors=tuple(measured.errors[n] for n in chosen),
        dev_rows={},
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
    return np.array([np.insert(one.gains, row, np.nan) for row, one in enumerate(found.surrogates)])


def within(one: Matrix, other: Matrix) -> NDArray[np.float64]:
    """Spearman's correlation of each target's sources."""
    return np.array(
        [
            stats.spearmanr(a[~np.isnan(b)], b[~np.isnan(b)]).statistic
            for a, b in zip(one, other, strict=True)
        ]
    )


def interval(values: NDArray[np.float64]) -> list[float]:
    """The mean over targets, and its interval by drawing targets again."""
    rows = np.random.default_rng(0).integers(len(values), size=(DRAWS, len(values)))
    ends = np.nanpercentile(np.nanmean(values[rows], axis=1), [2.5, 97.5])
    return np.round([np.nanmean(values), *ends], 3).tolist()


class Bench:
    """The truth of one folder, and rows of estimates beside it."""

    def __init__(self, folder: str, subsets: int, seeds: int, out: Path) -> None:
        self.out, self.rows = out, list[Row]()
        run, rest = template(folder)
        names = run.load().names
        design = SubsetDesign(count=subsets, alone=4 * seeds, repeats=seeds)
        self.asked = TransferStudy(template=run, targets=names, design=design, **rest)
        self.fleet = Fleet(workers=1)
        trained, seconds = self.train(self.asked, "truth")
        self.matrix = gains(trained)
        alike = float(np.nanmean(within(gains(trained, (0,)), gains(trained, (1,)))))
        ceiling = float(np.sqrt(max(2 * alike / (1 + alike), 0.0)))
        self.rows.append({"case": "the truth", "ceiling": ceiling, "seconds": seconds})

    def train(self, asked: TransferStudy, name: str) -> tuple[TrialOutcomes, float]:
        trials = [*asked.alone(), *asked.subsets(asked.design.count or 0)]
        begin = time.process_time()
        study = Study(self.out / name, lean=True)
        measured = measure_trials(asked, trials, study, self.fleet)
        return measured, time.process_time() - begin

    def shorter(self, steps: float, subsets: float) -> tuple[Matrix, float]:
        """A cheaper study: a part of the runs, each shorter, under seeds of their own."""
        run = self.asked.template
        design = self.asked.design
        whole = (design.count or 0) * design.repeats
        count = max(round(subsets * whole), len(self.asked.tasks))
        asked = replace(
            self.asked,
            template=replace(run, steps=max(round(steps * run.steps), 10), seed=90_000),
            design=SubsetDesign(count=count, alone=3, seed=9),
        )
        measured, seconds = self.train(asked, f"steps-{steps}-subsets-{subsets}")
        self.show(f"{steps} of the steps, {subsets} of the runs", [gains(measured)], seconds)
        return gains(measured), seconds

    def few(self) -> None:
        """Few runs in full, alone and with what cheaper studies found."""
        draws = []
        for number in range(FEW):
            run = replace(self.asked.template, seed=91_000 + 1_000 * number)
            design = SubsetDesign(count=len(self.asked.tasks), alone=1, seed=20 + number)
            asked = replace(self.asked, template=run, design=design)
            draws.append(self.train(asked, f"few-{number}"))
        seconds = float(np.mean([each for _, each in draws]))
        plain = self.show("few runs, least squares", [gains(one) for one, _ in draws], seconds)
        self.show("few runs, shrunken", [shrunken(one) for one, _ in draws], seconds, plain)
        for steps, subsets in PRIORS:
            prior, more = self.shorter(steps, subsets)
            both = [shrunken(one, prior) for one, _ in draws]
            self.show("the same as prior", both, seconds + more, plain)

    def show(
        self,
        estimator: str,
        found: list[Matrix],
        seconds: float,
        plain: NDArray[np.float64] | None = None,
    ) -> NDArray[np.float64]:
        """[target], the mean rank correlation over draws, told beside that of least squares."""
        ranks = np.asarray(np.mean([within(one, self.matrix) for one in found], axis=0))
        found_row: Row = {
            "case": estimator,
            "rank correlation": interval(ranks),
            "seconds": seconds,
        }
        if plain is not None:
            found_row["minus least squares"] = interval(ranks - plain)
        self.rows.append(found_row)
        return ranks


def measure(quick: bool, folder: str, subsets: int, seeds: int, out: Path) -> list[Row]:
    bench = Bench(folder, 10 if quick else subsets, 2 if quick else seeds, out)
    bench.few()
    return bench.rows


if __name__ == "__main__":
    options = {
        "folder": {"choices": ("digits", "census", "school")},
        "--subsets": {"type": int, "default": 60, "help": "of a target in the truth"},
        "--seeds": {"type": int, "default": 4, "help": "of each of them"},
        "--out": {"type": Path, "required": True},
    }
    report("few_runs", measure, __doc__ or "", options=options)

"""Ways that cost little: merged models, own best evaluations, and guesses of what mixtures give.

    python benchmarks/ways.py DATA/fdu_mtl --model minilm/ --tasks 10 --steps 1000
    python benchmarks/ways.py DATA/fdu_mtl --model minilm/ --beyond --seeds 10

Trains on some rows of each task: every task alone, all equally often, and mixtures drawn at random.
Prints the mean dev and test scores of training alone, of all tasks together (served by the best mean,
and each by its own best evaluation), of the methods that merge, and the rank correlation of trained
mixtures with guesses by merging and with what laws fitted to the other mixtures foretell. With
`--beyond` it compares one model for all with networks that branch and with ensembles of groups.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from scipy.stats import spearmanr

from _ways_beyond import compare_beyond
from taskmix.adviser import baselines
from taskmix.engine import (
    Auto,
    FolderSource,
    Optimization,
    Run,
    SampledSource,
    finish,
    scores_of_mixtures,
)
from taskmix.mixtures import MixtureTable, forecast_mixtures
from taskmix.models import (
    DARE,
    TIES,
    USUAL_RATES,
    Merge,
    Merging,
    TaskArithmetic,
    WeightAverage,
    pretrained,
)
from taskmix.plans import Part, Plan, Shares
from taskmix.records import FinalScore, Study
from taskmix.training import Score, mean_score

EVALUATIONS = 6
FOLDS = 6
METHODS: tuple[Merging, ...] = (WeightAverage(), TaskArithmetic(), TIES(), DARE())


class Bench:
    """Trains plans into a study, and gives their mean scores."""

    def __init__(self, template: Run, study: Study, seeds: Sequence[int]) -> None:
        self.template, self.study, self.seeds = template, study, seeds
        self._executor = Auto(workers=1)

    def scores(self, plan: Plan, split: str) -> np.ndarray[Any, Any]:
        """[seed], the mean over tasks."""
        found = []
        for seed in self.seeds:
            runs = plan.runs(self.template, seeds=[seed], evaluations=EVALUATIONS)
            finish(self._executor, runs, self.study)
            scores = []
            for run in runs:
                summary = run.folder(self.study).summary()
                assert summary is not None
                scores += [Score(*score) for score in summary.scores if score.split == split]
            found.append(mean_score(scores, {}))
        return np.array(found)

    def table(self, names: Sequence[str], mixtures: Sequence[np.ndarray[Any, Any]]) -> MixtureTable:
        """The mean dev score of every task over seeds, for mixtures that were trained."""
        rows = []
        for each in mixtures:
            runs = with_shares(names, each).runs(
                self.template, seeds=self.seeds, evaluations=EVALUATIONS
            )
            summaries = [run.folder(self.study).summary() for run in runs]
            scores = [score for one in summaries if one is not None for score in one.scores]
            rows.append([_dev_mean(scores, name) for name in names])
        return MixtureTable(
            domains=tuple(names),
            metrics=tuple(names),
            runs=tuple(map(str, range(len(mixtures)))),
            shares=np.array(mixtures),
            values=np.array(rows),
            larger_is_better=tuple(names),
        )

    def tell(self, name: str, plan: Plan) -> None:
        dev, test = (self.scores(plan, split).mean() for split in ("dev", "test"))
        print(f"{name:32} dev {100 * dev:6.2f}   test {100 * test:6.2f}", flush=True)


def with_shares(tasks: Sequence[str], shares: np.ndarray[Any, Any]) -> Plan:
    division = Shares(probabilities=tuple(shares.tolist()))
    part = Part(tasks=tuple(tasks), scored=tuple(tasks), share=1.0, division=division)
    return Plan(name="mixture", parts=(part,))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder")
    parser.add_argument("--model", required=True)
    parser.add_argument("--tune", default="heads", choices=("heads", "adapters", "all"))
    parser.add_argument("--tasks", type=int, default=10)
    parser.add_argument("--steps", type=int, default=1000, help="of all tasks together")
    parser.add_argument("--max-length", type=int, default=20)
    parser.add_argument("--mixtures", type=int, default=24)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--beyond", action="store_true", help="branches and ensembles instead")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    names = FolderSource(path=options.folder).load().names[: options.tasks]
    source = SampledSource(
        source=FolderSource(path=options.folder), most=(("train", 200), ("dev", 120), ("test", 180))
    )
    template = Run(
        label="template",
        source=source,
        tasks=names,
        architecture=pretrained(options.model, options.tune, max_length=options.max_length),
        optimization=Optimization(learning_rate=USUAL_RATES[options.tune]),
        steps=options.steps,
        batch_size=16,
        seed=0,
    )
    if options.beyond:
        tasks = template.architecture.encoding.encode(template.load())
        compare_beyond(tasks, steps=options.steps, seeds=range(options.seeds))
        return
    with TemporaryDirectory() as temporary:
        study = Study(options.out or temporary)
        bench = Bench(template, study, range(options.seeds))
        single, uniform = baselines(template.load(), names)[:2]
        bench.tell("each task alone", single)
        for method in METHODS:
            merged = replace(single, merge=Merge(method=method), name="merged")
            bench.tell(f"merged by {type(method).__name__}", merged)
        bench.tell("all together, best mean", uniform)
        parts = tuple(replace(part, keep="each") for part in uniform.parts)
        bench.tell("all together, own best", replace(uniform, parts=parts))
        compare_guesses(bench, single, names, options.mixtures)


def compare_guesses(bench: Bench, single: Plan, names: Sequence[str], count: int) -> None:
    generator = np.random.default_rng(0)
    drawn = [
        generator.dirichlet(np.full(len(names), a))
        for a in generator.choice([0.5, 1.0, 3.0], count)
    ]
    mixed = [0.02 / len(names) + 0.98 * each for each in drawn]
    mixtures = [each / each.sum() for each in mixed]
    guessed = np.zeros(count)
    for seed in bench.seeds:
        merged = replace(single, merge=Merge(), name="merged")
        (run,) = merged.runs(bench.template, seeds=[seed], evaluations=EVALUATIONS)
        places = [names.index(source.load().names[0]) for source in run.sources]
        rows = [each[places].tolist() for each in mixtures]
        guessed += [mean_score(some, {}) for some in scores_of_mixtures(run, bench.study, rows)]
    trained = np.array([bench.scores(with_shares(names, each), "dev").mean() for each in mixtures])
    forecast = forecast_left_out(bench.table(names, mixtures))
    evenness = np.array([-(each * np.log(each)).sum() for each in mixtures])
    print(
        f"rank correlation of {count} trained mixtures with their guesses: {_rank(guessed, trained)}"
    )
    print(f"with the entropy of their shares: {_rank(evenness, trained)}")
    print(f"with the forecast from the other mixtures: {_rank(forecast, trained)}")
    for words, values in (("guesses", guessed), ("forecast", forecast)):
        rest = [_without(each, evenness) for each in (values, trained)]
        print(f"with their {words}, entropy taken out of both: {_rank(*rest)}")


def forecast_left_out(table: MixtureTable) -> np.ndarray[Any, Any]:
    """[mixture], the mean score by laws that were fitted without the mixture's part of six."""
    parts = np.random.default_rng(1).permutation(len(table)) % FOLDS
    found = np.zeros(len(table))
    for part in range(FOLDS):
        left = parts == part
        forecast = forecast_mixtures(table.only(~left))
        found[left] = forecast.predict(table.shares[left]).mean(axis=1)
    return found


def _dev_mean(scores: Sequence[FinalScore], task: str) -> float:
    known = [s.value for s in scores if s.split == "dev" and s.task == task and s.metric != "loss"]
    return float(np.mean(known))


def _rank(first: np.ndarray[Any, Any], second: np.ndarray[Any, Any]) -> str:
    found: Any = spearmanr(first, second)
    return f"{found.statistic:.2f} (p = {found.pvalue:.2f})"


def _without(values: np.ndarray[Any, Any], line: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.asarray(values - np.polyval(np.polyfit(line, values, 1), line))


if __name__ == "__main__":
    main()

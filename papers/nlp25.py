r"""25 text tasks: which of the others to learn each of them with.

    Li, Nguyen and Zhang, "Identification of Negative Transfers in Multitask Learning Using
    Surrogate Models", TMLR 2023, "MTL for NLP tasks": 25 tasks of GLUE, SuperGLUE, TweetEval and
    ANLI, each with the 24 others as sources; 1.8 % above multitask baselines.

By default a perceptron learns on the vectors of a frozen encoder, so that hundreds of runs take
minutes; `tune` trains adapters of the encoder, or the encoder itself. Every task gets the same number
of batches, whatever it is trained with. `equal` and `bandit` train all tasks together, with equal
weights and with BanditMTL's; `pairwise` chooses the sources of a target by its runs with one source at
a time, which is a linear surrogate of subsets of one, and then as ours does: prefixes of 0, 1, 3,
9, ... and of all sources in its order are trained, and the one of the best metric on dev is taken.
`grouped` trains a model for each group of tasks, by the gains of the same pairs; `merged`, where an
encoder is tuned, adds up what every task learned alone. Scores are the tasks' metrics on test rows in
hundredths; `average` is over tasks, and intervals are over seeds, paired where one method is taken
from another. The paper's figure stands beside ours minus the best of the multitask methods, and
`least_difference` is what so many seeds would find in four of five repetitions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from papers.nlp25_data import Nlp25Source
from papers.rows import PaperRow, row, task_rows
from papers.runner import Cache, Data, Desk, Flag
from papers.transfer_studies import (
    TransferOptions,
    cost_rows,
    f1_rows,
    held_out_table,
    prefix_trials,
    scores,
    select_sources,
    sign_test,
    tripling_prefixes,
)
from taskmix.engine import Executor, Optimization, Run, finish
from taskmix.models import Merge, Perceptron, Transformer
from taskmix.numerics import paired_interval
from taskmix.records import Study
from taskmix.tasks import FeatureEncoding
from taskmix.transfer import (
    LinearSurrogate,
    SubsetDesign,
    TransferMatrix,
    TransferStudy,
    group_tasks,
    measure_trials,
)
from taskmix.weighting import BanditMTL

PAPER_GAIN = 1.8
BASELINES = ("equal", "bandit", "pairwise", "grouped", "merged")
POWER = 0.8
PREFIX_SEEDS = 2


@dataclass(frozen=True, kw_only=True)
class Nlp25Options(TransferOptions):
    """The setting; the paper gives the benchmarks alone."""

    QUICK: ClassVar[dict[str, Any]] = {
        "rows": 64,
        "dev_rows": 32,
        "test_rows": 32,
        "steps": 20,
        "max_length": 32,
    }
    QUICK |= {"subsets": 46, "held_out": 4, "repeats": 2, "alone": 3, "seeds": 2}
    data: Annotated[Path, Data]  # has glue/, superglue/ and tweeteval/ in it
    encoder: Annotated[str, Flag("A Hugging Face encoder's path or name.")]
    tune: Annotated[
        Literal["heads", "adapters", "all"], Flag("Of the encoder; heads read its frozen vectors.")
    ] = "heads"
    rows: Annotated[int, Flag("Of a task to train on.")] = 1000
    dev_rows: Annotated[int, Flag()] = 500
    test_rows: Annotated[int, Flag()] = 1000
    max_length: Annotated[int, Flag("Pieces of a text.")] = 128
    size: Annotated[int, Flag("Sources in a subset.")] = 4
    subsets: Annotated[int, Flag("Of each target, to learn from.")] = 92  # four a source
    outcome: Annotated[Literal["loss", "metric"], Flag("On dev.")] = "loss"  # as the paper's f
    cache: Cache = None

    @property
    def source(self) -> Nlp25Source:
        return Nlp25Source(
            path=str(self.data),
            rows=self.rows,
            dev_rows=self.dev_rows,
            test_rows=self.test_rows,
            cache=self.cache,
        )

    @property
    def encoding(self) -> FeatureEncoding:
        return FeatureEncoding(
            path=self.encoder, max_length=self.max_length, pooling="mean", as_pairs=True
        )

    @property
    def template(self) -> Run:
        """A run of all tasks with equal weights."""
        if self.tune == "heads":
            return self.run(
                "equal", self.source, Perceptron(hidden=self.hidden, reads=self.encoding)
            )
        rate = Optimization.usual_rate(self.learning_rate, tuning=self.tune)
        trained = Optimization(optimizer="adamw", learning_rate=rate, schedule="linear", warmup=0.1)
        encoder = Transformer(
            path=self.encoder,
            max_length=self.max_length,
            pooling="mean" if self.tune == "adapters" else "first",
            tune=self.tune,
        )
        return replace(
            self.run("equal", self.source, encoder),
            optimization=trained,
            precision="bfloat16" if self.device.startswith("cuda") else "float32",
        )

    def study(self, design: SubsetDesign) -> TransferStudy:
        """Every task a target, from the same runs."""
        template = self.template
        names = template.load().names
        return TransferStudy(template=template, targets=names, design=design, outcome=self.outcome)


def run(options: Nlp25Options, desk: Desk) -> list[PaperRow]:
    """Which of some 25 text tasks to learn each of them with.

    Stop it and run it again: finished runs are not repeated.

    Example: python -m papers nlp25 data/ --encoder minilm/ --rows 300 --subsets 60
    """
    with desk.working() as (study, executor):
        options = replace(options, cache=options.cache or desk.folder / "features")
        return reproduce_nlp25(options, study, executor, on_texts=desk.tell_texts)


def reproduce_nlp25(
    options: Nlp25Options,
    study: Study,
    executor: Executor,
    *,
    on_texts: Callable[[int, int], None] | None = None,  # texts encoded, of how many
) -> list[PaperRow]:
    """All targets as rows; runs that the study holds already cost nothing."""
    tasks = options.source.load()
    if options.tune == "heads":
        options.encoding.encode(tasks, cache=options.cache, on_progress=on_texts)
    design = options.design()
    description = options.study(design)
    pairs = options.study(replace(design, kind="fixed", size=1, count=len(tasks) - 1))
    trial = options.study(options.design(held_out=True))
    single = description.alone()
    to_fit = [*single, *description.subsets(options.subsets)]
    of_two = [*single, *pairs.subsets(len(tasks) - 1)]
    to_try = trial.subsets(options.held_out)
    # All at once: every call reads the texts anew, and small fleets leave a GPU idle.
    measure_trials(description, [*to_fit, *of_two, *to_try], study, executor)
    fitted = measure_trials(description, to_fit, study, executor)
    paired = measure_trials(pairs, of_two, study, executor)
    tried = measure_trials(trial, to_try, study, executor)
    prefixes = [
        prefix
        for measured in (fitted, paired)
        for prefix in prefix_trials(measured, tripling_prefixes, seeds=PREFIX_SEEDS)
    ]
    measure_trials(description, prefixes, study, executor)
    (surrogates, chosen), (of_pairs, chosen_by_pairs) = (
        select_sources(
            measured,
            study,
            executor,
            prefixes=tripling_prefixes,
            chosen_by="metric",
            seeds=PREFIX_SEEDS,
        )
        for measured in (fitted, paired)
    )
    selections = {"pairwise": chosen_by_pairs, "selected": chosen}
    groups = groups_of(of_pairs)
    rows = nlp25_score_rows(options, description, selections, groups, study, executor)
    generator = np.random.default_rng(options.seed)
    for name, fits in (("nlp25", surrogates), ("nlp25/pairwise", of_pairs)):
        tests = [
            sign_test(fit, held_out_table(fitted, tried, target), generator=generator)
            for target, fit in fits.items()
        ]
        rows += f1_rows(f"f1_transfer/{name}", tests)
    return [*rows, *cost_rows("nlp25", [fitted, paired, tried], chosen)]


def groups_of(surrogates: dict[str, LinearSurrogate]) -> list[tuple[str, ...]]:
    """Tasks that gain by each other, from a surrogate of every task."""
    names = tuple(surrogates)
    matrix = TransferMatrix(
        tasks=names, surrogates=tuple(surrogates.values()), failed=(0,) * len(names)
    )
    found = group_tasks(np.nan_to_num(matrix.relative_gains))
    return [tuple(names[place] for place in group) for group in found.groups]


def nlp25_score_rows(
    options: Nlp25Options,
    description: TransferStudy,
    selections: dict[str, dict[str, tuple[str, ...]]],
    groups: list[tuple[str, ...]],
    study: Study,
    executor: Executor,
) -> list[PaperRow]:
    """The score of every method on every task, and ours minus theirs."""
    names, seeds = description.tasks, range(options.seed, options.seed + options.seeds)
    template = options.template
    for_all = {
        "equal": template,
        "bandit": replace(template, label="bandit", weighting=BanditMTL()),
    }
    # By method and target, a run for each seed.
    runs: dict[str, dict[str, list[Run]]] = {
        method: {name: [replace(run, seed=seed) for seed in seeds] for name in names}
        for method, run in for_all.items()
    }
    nobody: dict[str, tuple[str, ...]] = dict.fromkeys(names, ())
    grouped = {name: group for group in groups for name in group}
    for method, chosen in {"single": nobody, "grouped": grouped, **selections}.items():
        runs[method] = {
            target: [
                description.run([n for n in names if n == target or n in sources], seed)
                for seed in seeds
            ]
            for target, sources in chosen.items()
        }
    finish(executor, [run for of in runs.values() for some in of.values() for run in some], study)
    if options.tune != "heads":
        single = [
            tuple(runs["single"][name][place] for name in names) for place in range(len(seeds))
        ]
        merged = [
            replace(template, label="merged", merge=Merge(), sources=models, seed=seed)
            for models, seed in zip(single, seeds, strict=True)
        ]
        finish(executor, merged, study)
        runs["merged"] = dict.fromkeys(names, merged)
    tables = {
        method: 100.0
        * np.array([scores(of[name], study, "test", "metric", task=name) for name in names]).T
        for method, of in runs.items()
    }  # [seed, task]
    rows = [
        found
        for method, table in tables.items()
        for found in task_rows(f"nlp25/{method}", table, names)
    ]
    best = max(tables.keys() & set(BASELINES), key=lambda method: float(tables[method].mean()))
    ours = tables["selected"].mean(axis=1)
    least = least_difference(ours - tables[best].mean(axis=1))
    rows.append(row("nlp25/least_difference", None, [least]))
    for method in ("best", *(other for other in tables if other != "selected")):
        theirs = tables[best if method == "best" else method].mean(axis=1)
        paper = PAPER_GAIN if method == "best" else None
        rows.append(row(f"nlp25/selected_minus_{method}", paper, paired_interval(ours, theirs)))
    return rows


def least_difference(differences: NDArray[np.float64], level: float = 0.95) -> float:
    """The mean difference that as many pairs would tell from 0 with a power of four in five."""
    freedom = len(differences) - 1
    ends = stats.t.ppf((1 + level) / 2, freedom) + stats.t.ppf(POWER, freedom)
    return float(ends * differences.std(ddof=1) / np.sqrt(len(differences)))

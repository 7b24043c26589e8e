r"""Topics and reviews: one text convolution on all tasks, their losses weighted by one method after
another.

    Mao, Wang, Liu, Lin and Hu, "BanditMTL: Bandit-based Multi-task Learning for Text
    Classification", ACL 2021, Section 5: four 4-class tasks made of 20 Newsgroups (Table 1) and 14
    domains of Amazon reviews; GloVe vectors, kernels of widths 3, 5 and 7, dropout of 0.5 in the
    heads, Adam at 1e-3, batches of 256, ρ = 1.2, η = 0.5, 10 runs, 3,000 epochs.

The paper shows its results as figures without numbers, so the column of its figures is empty; in
words, BanditMTL has the best mean accuracy on both problems (Figures 2 and 3) and the lowest task
variance (4), the variance falls as ρ grows (5), accuracy rises with ρ and then falls (6), η between
0.3 and 0.9 makes little difference (7), and BanditMTL's weights move less than those of uncertainty
weighting, GradNorm and MGDA (8 and 9).

Accuracies are of the test rows, with the parameters of the best dev evaluation, as Algorithm 1 has
it. An epoch is a pass over the largest task; all methods take the same number of steps, single-task
training too, for each task. `task_variance` is that of the batches' losses, the mean over the last
tenth of the steps; `task_variance_all` is over all of them. `weight_change` is by how much a weight
moves in a step, in the mean.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np

from taskmix.engine import Executor, FolderSource, Optimization, Run, finish
from taskmix.errors import OptionError
from taskmix.models import TextConvolution
from taskmix.numerics import mean_interval, paired_interval
from taskmix.papers._shared import PaperRow, row
from taskmix.papers._weighting._measures import (
    Table,
    accuracies_on,
    curves,
    final_accuracies,
    rows_not_in_train,
)
from taskmix.papers._weighting._methods import MODERN_METHODS, PAPER_METHODS, contestant
from taskmix.records import Study

NEWSGROUPS_SETTINGS = Path(__file__).with_name("newsgroups.toml")
DOMAINS = (
    "apparel",
    "baby",
    "books",
    "camera",
    "dvd",
    "electronics",
    "health",
    "kitchen",
    "magazines",
    "music",
    "software",
    "sports",
    "toys",
    "video",
)
LAST_PART = 0.1  # of the steps, whose task variance is reported


@dataclass(frozen=True, kw_only=True)
class TextOptions:
    """The paper's settings; smaller ones make a run of minutes."""

    data: Path
    vectors: Path | None = None
    methods: tuple[str, ...] = PAPER_METHODS + MODERN_METHODS
    seeds: int = 10
    epochs: float = 3000.0
    steps: int | None = None  # instead of epochs
    batch_size: int = 256
    learning_rate: float = 1e-3
    max_length: int = 500
    radius: float = 1.2
    step_size: float = 0.5
    radii: tuple[float, ...] = ()  # of a sweep, at `step_size` (Figures 5 and 6)
    step_sizes: tuple[float, ...] = ()  # of a sweep, at `radius` (Figure 7)
    sweep_seeds: int = 5
    evaluations: int = 20
    device: str = "cpu"
    precision: Literal["float32", "bfloat16"] = "float32"
    cache: Path | None = None

    def __post_init__(self) -> None:
        if min(self.seeds, self.sweep_seeds, self.evaluations) < 1 or self.epochs <= 0:
            raise OptionError(
                "`seeds`, `sweep_seeds` and `evaluations` should be 1 or more and `epochs` above 0. "
                f"Found {self.seeds}, {self.sweep_seeds}, {self.evaluations} and {self.epochs}."
            )
        if self.precision not in ("float32", "bfloat16"):
            raise OptionError(
                f"`precision` should be float32 or bfloat16. Found {self.precision!r}."
            )


@dataclass(frozen=True, kw_only=True)
class NewsgroupsOptions(TextOptions):
    """`data` is the folder of 20 Newsgroups.

    >>> from pathlib import Path
    >>> NewsgroupsOptions(data=Path("newsgroups20")).methods[:3]
    ('single', 'equal', 'uncertainty')
    """

    @property
    def source(self) -> FolderSource:
        return FolderSource(path=str(self.data), settings=NEWSGROUPS_SETTINGS, cache=self.cache)


@dataclass(frozen=True, kw_only=True)
class ReviewsOptions(TextOptions):
    """`data` is the folder of the reviews, a sub-folder for each domain.

    >>> from pathlib import Path
    >>> len(ReviewsOptions(data=Path("fdu_mtl")).source.tasks)
    14
    """

    @property
    def source(self) -> FolderSource:
        return FolderSource(path=str(self.data), tasks=DOMAINS, metric="accuracy", cache=self.cache)


def reproduce_newsgroups(
    options: NewsgroupsOptions, study: Study, executor: Executor
) -> list[PaperRow]:
    """Figures 3 to 9 for the topics; runs that the executor's study holds already cost nothing.

    `taskmix reproduce newsgroups` runs it.
    """
    runs = text_runs(options)
    finish(executor, [run for some in runs.values() for run in some], study)
    return text_rows("newsgroups", options, runs, study)


def reproduce_reviews(options: ReviewsOptions, study: Study, executor: Executor) -> list[PaperRow]:
    """Figures 2 and 4 to 9 for the reviews, on all test rows and on those not in train.

    `taskmix reproduce reviews` runs it.
    """
    runs = text_runs(options)
    finish(executor, [run for some in runs.values() for run in some], study)
    rows = text_rows("reviews", options, runs, study)
    unseen = rows_not_in_train(options.source.load())
    tables = {
        name: accuracies_on(study, runs[name], unseen, options.seeds) for name in options.methods
    }
    return rows + accuracy_rows("reviews_not_in_train", tables, list(unseen))


def text_runs(options: NewsgroupsOptions | ReviewsOptions) -> dict[str, list[Run]]:
    """The runs of each method, and of each value of a sweep, by name."""
    tasks = options.source.load()
    steps = options.steps or math.ceil(
        options.epochs * math.ceil(int(tasks.sizes.max()) / options.batch_size)
    )
    every = max(steps // options.evaluations, 1)
    architecture = TextConvolution(vectors=options.vectors, max_length=options.max_length)
    base = Run(
        label="equal",
        source=options.source,
        architecture=architecture,
        optimization=Optimization(learning_rate=options.learning_rate),
        steps=steps,
        batch_size=options.batch_size,
        evaluate_every=every,
        checkpoint_every=5 * every,
        precision=options.precision,
        device=options.device,
        seed=0,
    )

    def of(label: str, method: str, seeds: int, radius: float, step_size: float) -> list[Run]:
        made = contestant(method, architecture, radius=radius, step_size=step_size)
        run = replace(base, label=label, architecture=made.architecture, weighting=made.weighting)
        kinds = [run] if method != "single" else [replace(run, tasks=(n,)) for n in tasks.names]
        return [replace(kind, seed=seed) for kind in kinds for seed in range(seeds)]

    radius, step_size, seeds = options.radius, options.step_size, options.sweep_seeds
    runs = {name: of(name, name, options.seeds, radius, step_size) for name in options.methods}
    for value in options.radii:
        runs[f"radius_{value:g}"] = of(f"radius {value:g}", "bandit", seeds, value, step_size)
    for value in options.step_sizes:
        runs[f"step_size_{value:g}"] = of(f"step size {value:g}", "bandit", seeds, radius, value)
    return runs


def text_rows(
    experiment: str,
    options: NewsgroupsOptions | ReviewsOptions,
    runs: dict[str, list[Run]],
    study: Study,
) -> list[PaperRow]:
    """Accuracies, differences to equal weights, task variances and changes of weights."""
    names = options.source.load().names
    tables = {}
    measures = []
    for label, some in runs.items():
        seeds = len({run.seed for run in some})
        tables[label] = final_accuracies(study, some, names, seeds)
        by_seed = [
            curves(study, [run for run in some if run.seed == seed], names) for seed in range(seeds)
        ]
        found = {
            "task_variance": [each.task_variance(LAST_PART) for each in by_seed],
            "task_variance_all": [each.task_variance() for each in by_seed],
            "weight_change": [each.weight_change() for each in by_seed],
        }
        for measure, values in found.items():
            if not np.isnan(values).any():
                measures.append(row(f"{experiment}/{label}/{measure}", None, mean_interval(values)))
    return accuracy_rows(experiment, tables, names) + measures


def accuracy_rows(
    experiment: str, tables: dict[str, Table], names: Sequence[str]
) -> list[PaperRow]:
    """The mean over tasks, each task, and the mean minus that of equal weights, seed by seed."""
    rows = []
    for label, table in tables.items():
        rows.append(row(f"{experiment}/{label}/average", None, mean_interval(table.mean(axis=1))))
        for place, task in enumerate(names):
            rows.append(row(f"{experiment}/{label}/{task}", None, mean_interval(table[:, place])))
    if "equal" not in tables:
        return rows
    equal = tables["equal"].mean(axis=1)
    for label, table in tables.items():
        count = min(len(table), len(equal))
        if label != "equal":
            gain = paired_interval(table.mean(axis=1)[:count], equal[:count])
            rows.append(row(f"{experiment}/{label}/minus_equal", None, gain))
    return rows

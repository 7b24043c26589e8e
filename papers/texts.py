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
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from papers.adversarial import AdversarialSharing
from papers.rows import PaperRow, row, task_rows
from papers.runner import Cache, Data, Desk, Device, Flag, Plot, Precision, Vectors
from papers.text_measures import (
    Table,
    accuracies_on,
    curves,
    final_accuracies,
    rows_not_in_train,
    text_figure,
)
from taskmix.engine import Executor, FolderSource, Optimization, Run, finish
from taskmix.errors import OptionError
from taskmix.models import TextConvolution
from taskmix.numerics import paired_interval
from taskmix.records import Study
from taskmix.weighting import (
    DBMTL,
    FAMO,
    IMTLL,
    MGDAUB,
    AnyWeighting,
    BanditMTL,
    DynamicWeightAverage,
    Equal,
    FairGrad,
    GradNorm,
    GroupDRO,
    NashMTL,
    PCGrad,
    SmoothTchebycheff,
    Tchebycheff,
    Uncertainty,
    UPGrad,
)

NEWSGROUPS_SETTINGS = Path(__file__).with_name("newsgroups.toml")
DOMAINS: tuple[str, ...] = ("apparel", "baby", "books", "camera", "dvd", "electronics", "health")
DOMAINS += ("kitchen", "magazines", "music", "software", "sports", "toys", "video")
LAST_PART = 0.1  # of the steps, whose task variance is reported
PAPER_METHODS: tuple[str, ...] = ("single", "equal", "uncertainty", "gradnorm", "mgda")
PAPER_METHODS += ("adversarial", "tchebycheff", "bandit")
MODERN_METHODS = ("bandit_smoothed", "famo", "stch", "db_mtl", "nash", "fairgrad", "upgrad")

# `mgda` is MGDA-UB, as in the paper; `bandit_smoothed` climbs running means of the losses, which
# stand for the losses over all rows that its equations are written in.
WEIGHTINGS: dict[str, Callable[[float, float], AnyWeighting]] = {
    "equal": lambda radius, step_size: Equal(),
    "uncertainty": lambda radius, step_size: Uncertainty(),
    "gradnorm": lambda radius, step_size: GradNorm(),
    "mgda": lambda radius, step_size: MGDAUB(),
    "adversarial": lambda radius, step_size: Equal(),
    "tchebycheff": lambda radius, step_size: Tchebycheff(),
    "bandit": lambda radius, step_size: BanditMTL(radius=radius, step_size=step_size),
    "bandit_smoothed": lambda radius, step_size: BanditMTL(
        radius=radius, step_size=step_size, smoothing=0.9
    ),
    "famo": lambda radius, step_size: FAMO(),
    "stch": lambda radius, step_size: SmoothTchebycheff(),
    "db_mtl": lambda radius, step_size: DBMTL(),
    "nash": lambda radius, step_size: NashMTL(),
    "fairgrad": lambda radius, step_size: FairGrad(),
    "upgrad": lambda radius, step_size: UPGrad(),
    "pcgrad": lambda radius, step_size: PCGrad(),
    "dwa": lambda radius, step_size: DynamicWeightAverage(),
    "imtl_l": lambda radius, step_size: IMTLL(),
    "group_dro": lambda radius, step_size: GroupDRO(),
}


@dataclass(frozen=True, kw_only=True)
class TextOptions:
    """The paper's settings; smaller ones make a run of minutes."""

    QUICK: ClassVar[dict[str, Any]] = {"steps": 4, "seeds": 2, "batch_size": 8, "max_length": 30}
    QUICK |= {"methods": ("equal", "bandit")}
    ENGINE: ClassVar[str] = "here"
    data: Annotated[Path, Data]
    texts: Literal["newsgroups", "reviews"] = "newsgroups"  # the reviews have a folder a domain
    vectors: Vectors = None
    methods: Annotated[
        tuple[str, ...], Flag("Names with commas [the paper's and modern ones].")
    ] = PAPER_METHODS + MODERN_METHODS
    seeds: Annotated[int, Flag()] = 10
    epochs: Annotated[float, Flag("Passes over the largest task.")] = 3000.0
    steps: Annotated[int | None, Flag("Steps instead of epochs.")] = None
    batch_size: Annotated[int, Flag()] = 256
    learning_rate: float = 1e-3
    max_length: Annotated[int, Flag("Words of a text.")] = 500
    radius: float = 1.2
    step_size: float = 0.5
    # Sweeps: of Figures 5 and 6 at `step_size`, and of Figure 7 at `radius`.
    radii: Annotated[tuple[float, ...], Flag("Values of a sweep of BanditMTL's radius.")] = ()
    step_sizes: Annotated[tuple[float, ...], Flag("Values of a sweep of its step size.")] = ()
    sweep_seeds: int = 5
    evaluations: int = 20
    device: Device = "cpu"
    precision: Precision = "float32"
    cache: Cache = None
    plot: Plot = None

    def __post_init__(self) -> None:
        if min(self.seeds, self.sweep_seeds, self.evaluations) < 1 or self.epochs <= 0:
            raise OptionError(
                "`seeds`, `sweep_seeds` and `evaluations` should be 1 or more and `epochs` above 0. "
                f"Found {self.seeds}, {self.sweep_seeds}, {self.evaluations} and {self.epochs}."
            )
        for name in self.methods:
            if name not in ("single", *WEIGHTINGS):
                raise OptionError(
                    f"A method should be one of single, {', '.join(WEIGHTINGS)}. Found {name!r}."
                )

    @property
    def source(self) -> FolderSource:
        if self.texts == "reviews":
            return FolderSource(
                path=str(self.data), tasks=DOMAINS, metric="accuracy", cache=self.cache
            )
        return FolderSource(path=str(self.data), settings=NEWSGROUPS_SETTINGS, cache=self.cache)


def run(options: TextOptions, desk: Desk) -> list[PaperRow]:
    """Loss weightings on four 4-class tasks of 20 Newsgroups, or on 14 domains of Amazon reviews.

    The reviews are scored with and without test rows seen in training.

    Example: python -m papers newsgroups newsgroups20/ --vectors glove.npz --methods equal,bandit
    """
    options = replace(options, texts="reviews" if desk.name == "reviews" else "newsgroups")
    with desk.working() as (study, executor):
        rows = reproduce_texts(options, study, executor)
    names = options.source.load().names
    kinds = {name: text_runs(options)[name] for name in options.methods}
    desk.draw(lambda: text_figure(kinds, names, study), options.plot)
    return rows


def reproduce_texts(options: TextOptions, study: Study, executor: Executor) -> list[PaperRow]:
    """Figures 2 to 9; runs that the study holds already cost nothing."""
    runs = text_runs(options)
    finish(executor, [run for some in runs.values() for run in some], study)
    rows = text_rows(options.texts, options, runs, study)
    if options.texts == "newsgroups":
        return rows
    unseen = rows_not_in_train(options.source.load())
    tables = {
        name: accuracies_on(study, runs[name], unseen, options.seeds) for name in options.methods
    }
    return rows + accuracy_rows("reviews_not_in_train", tables, list(unseen))


def text_runs(options: TextOptions) -> dict[str, list[Run]]:
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
        run = replace(base, label=label)
        if method == "adversarial":
            dropout = architecture.head_dropout
            sharing = AdversarialSharing(architecture=architecture, head_dropout=dropout)
            run = replace(run, architecture=sharing)
        if method == "single":
            kinds = [replace(run, tasks=(name,)) for name in tasks.names]
        else:
            kinds = [replace(run, weighting=WEIGHTINGS[method](radius, step_size))]
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
    options: TextOptions,
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
                measures.append(row(f"{experiment}/{label}/{measure}", None, values))
    return accuracy_rows(experiment, tables, names) + measures


def accuracy_rows(
    experiment: str, tables: dict[str, Table], names: Sequence[str]
) -> list[PaperRow]:
    """The mean over tasks, each task, and the mean minus that of equal weights, seed by seed."""
    rows: list[PaperRow] = []
    for label, table in tables.items():
        rows += task_rows(f"{experiment}/{label}", table, names)
    if "equal" not in tables:
        return rows
    equal = tables["equal"].mean(axis=1)
    for label, table in tables.items():
        count = min(len(table), len(equal))
        if label != "equal":
            gain = paired_interval(table.mean(axis=1)[:count], equal[:count])
            rows.append(row(f"{experiment}/{label}/minus_equal", None, gain))
    return rows

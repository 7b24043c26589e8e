r"""Ten thousand taggers: how F1 of a task depends on samples, tasks and their relatedness.

    Bettgenhäuser, Hedderich and Klakow, "Learning Functions to Study the Benefit of Multitask
    Learning", 2020, sections 4 and 5: window BiLSTM taggers on CoNLL 2003 and artificial tasks of
    controlled relatedness, Adam with its defaults, 100 epochs, batches of 100, the sum of the tasks'
    cross-entropies, IO tags for training, entity F1 on IOB2 test tags, 5 runs for each row.

The paper gives the values of n, T and α and how many rows its tables have (1,002 and 1,555), not
which combinations they are. Here the rows of its figures come first (every n for four α at T = 2;
every α for five n at T = 2; every T for four α at n = 2,000) and the others are drawn from the whole
grid with a fixed seed. T counts the real task too: T = 1 are the single-task models, and their row
says an AMI of 1, that of a task with itself. `n` are words to train on; all sizes take their words from
one order of sentences, so that smaller ones are parts of larger ones. In the unbalanced grid an epoch
is a pass over the largest task.

Neither the sizes of the layers nor the word vectors' are given: 100 units in each direction, GloVe of
100 dimensions by default. Everything else is the paper's.
"""

from __future__ import annotations

import functools
import math
from argparse import ArgumentTypeError
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
import pyarrow as pa

from papers.runner import Device, Flag, Plot, Precision, Vectors
from taskmix.engine import Optimization, Run
from taskmix.errors import InputError, OptionError
from taskmix.models import WindowBiLSTM
from taskmix.tasks import Simulation, Split, Task, TaskSet, load_tasks, simulate_tasks
from taskmix.weighting import Equal

BALANCED_ROWS, UNBALANCED_ROWS = 1002, 1555
BALANCED_ALPHAS = (0.2, 0.6, 0.65, 0.75, 0.8, 0.85, 0.87, *(a / 100 for a in range(90, 101)))
UNBALANCED_ALPHAS = (0.6, 0.7, 0.85, 0.9, 0.92, 0.95, 0.97, 0.99)
SIZES = tuple(range(1000, 20_001, 500))
REAL_SIZES, SYNTHETIC_SIZES = (1000, 1500, 2000, 2500), tuple(range(2000, 6001, 1000))
LINES = (0.6, 0.85, 0.95, 1.0)  # the α of the curves in Figures 3a and 3c
LINE_SIZES = (1000, 2000, 5000, 10_000, 20_000)  # the n of those in Figure 3b
FIGURE_TASKS, FIGURE_SIZE = 2, 2000


@dataclass(frozen=True, order=True)
class GridRow:
    """One row of the table: its models differ in their seeds alone."""

    real: int  # words of the real task to train on
    synthetic: int  # and of each artificial one
    tasks: int  # T, the real one included
    alpha: float

    @property
    def names(self) -> tuple[str, ...]:
        """The tasks of its models."""
        return (REAL, *(artificial_name(self.alpha, i) for i in range(self.tasks - 1)))


REAL = "real"


def artificial_name(alpha: float, place: int) -> str:
    return f"alpha {alpha:g} number {place + 1}"


def balanced_grid(count: int = BALANCED_ROWS) -> list[GridRow]:
    """The rows of the balanced table, those of the figures first."""
    lines = [
        *(GridRow(n, n, 1, 1.0) for n in SIZES),
        *(GridRow(n, n, FIGURE_TASKS, a) for n, a in product(SIZES, LINES)),
        *(GridRow(n, n, FIGURE_TASKS, a) for n, a in product(LINE_SIZES, BALANCED_ALPHAS)),
        *(GridRow(FIGURE_SIZE, FIGURE_SIZE, t, a) for t, a in product(range(2, 16), LINES)),
    ]
    whole = [GridRow(n, n, t, a) for n, t, a in product(SIZES, range(2, 16), BALANCED_ALPHAS)]
    return _filled(lines, whole, count)


def unbalanced_grid(count: int = UNBALANCED_ROWS) -> list[GridRow]:
    """The rows of the unbalanced table, single-task models first."""
    lines = [GridRow(n, n, 1, 1.0) for n in REAL_SIZES]
    choices = product(REAL_SIZES, SYNTHETIC_SIZES, range(2, 31), UNBALANCED_ALPHAS)
    whole = [GridRow(n, m, t, a) for n, m, t, a in choices if m > n]
    return _filled(lines, whole, count)


def _filled(lines: list[GridRow], whole: list[GridRow], count: int) -> list[GridRow]:
    chosen = dict.fromkeys(lines)
    order = np.random.default_rng(0).permutation(len(whole))
    for place in order:
        if len(chosen) >= count:
            break
        chosen.setdefault(whole[int(place)])
    return list(chosen)[:count]


@dataclass(frozen=True, kw_only=True)
class LawsSource:
    """The real task and its artificial ones for one pair of sizes, the same in every process."""

    data: Path  # CoNLL 2003: one task folder
    real: int
    synthetic: int
    alphas: tuple[float, ...]
    most: int  # artificial tasks for each α
    seed: int = 0

    @property
    def names(self) -> tuple[str, ...]:
        """The artificial tasks."""
        return tuple(artificial_name(a, i) for a in self.alphas for i in range(self.most))

    def load(self) -> TaskSet:
        # Artificial tasks are only trained on; the real one alone is evaluated.
        real, *made = simulated(self).tasks
        test = load_real(self.data).splits["test"]
        return TaskSet(
            (
                replace(real, name=REAL, splits={**real.splits, "test": test}),
                *(replace(task, name=name) for task, name in zip(made, self.names, strict=False)),
            )
        )

    def information(self) -> dict[str, float]:
        """The AMI of each artificial task with the real one."""
        return dict(zip(self.names, simulated(self).information.tolist(), strict=False))


@functools.lru_cache(maxsize=2)
def simulated(source: LawsSource) -> Simulation:
    """The real task of a source, cut, and its artificial ones."""
    task = _shuffled(load_real(source.data), source.seed)
    task = replace(task, splits={"train": task.splits["train"]})
    alphas = [alpha for alpha in source.alphas for _ in range(source.most)]
    return simulate_tasks(
        task,
        count=max(len(alphas), 1),
        alpha=alphas or 1.0,
        samples=source.synthetic,
        real_samples=source.real,
        generator=np.random.default_rng((source.seed, 1)),
    )


@functools.lru_cache(maxsize=1)
def load_real(data: Path) -> Task:
    """The tagging task of a folder, with train and test."""
    tasks = [task for task in load_tasks(data) if task.kind == "tagging"]
    entities = [task for task in tasks if task.metric == "entity_f1"] or tasks
    if not entities:
        raise InputError(
            f"`{data}` should be a task folder with tagged words, such as CoNLL 2003. Found none."
        )
    task = entities[0]
    if not {"train", "test"} <= set(task.splits):
        raise InputError(f"Task `{task.name}` should have train and test rows. Found not both.")
    return replace(task, splits={name: task.splits[name] for name in ("train", "test")})


def _shuffled(task: Task, seed: int) -> Task:
    """The sentences to train on in an order of their own."""
    train = task.splits["train"]
    lists = train.inputs.column("tokens").combine_chunks()
    lengths = lists.value_lengths().to_numpy(zero_copy_only=False)
    begins = np.concatenate([[0], np.cumsum(lengths)])
    order = np.random.default_rng((seed, 0)).permutation(len(lengths))
    targets = np.concatenate([train.targets[begins[i] : begins[i + 1]] for i in order])
    table = pa.table({"tokens": lists.take(pa.array(order))})
    return replace(task, splits={**task.splits, "train": Split(table, targets)})


def _part(text: str) -> tuple[int, int]:
    place, _, parts = text.partition("/")
    if not (place.isdigit() and parts.isdigit()):
        raise ArgumentTypeError(f"should be k/m, such as 1/4. Found {text!r}.")
    return int(place), int(parts)


@dataclass(frozen=True, kw_only=True)
class LawsOptions:
    """The paper's settings; smaller ones make a run of minutes."""

    QUICK: ClassVar[dict[str, Any]] = {"part": (1, 40), "seeds": 1, "epochs": 1.0, "hidden": 8}
    data: Annotated[
        Path, Flag("The task folder of CoNLL 2003, or a table written before.", is_argument=True)
    ]
    vectors: Vectors = None
    balanced: bool = True
    part: Annotated[
        tuple[int, int], Flag("k/m: every m-th row of the grid, from the k-th on.", parse=_part)
    ] = (1, 1)
    seeds: Annotated[int, Flag()] = 5
    epochs: Annotated[float, Flag()] = 100.0
    batch_size: int = 100
    hidden: Annotated[int, Flag("Units of each direction.")] = 100
    dimension: int = 100  # of word vectors, where no file brings its own
    shared_layers: Annotated[tuple[int, ...], Flag("Units of layers all tasks share: 100,50")] = ()
    task_layers: Annotated[tuple[int, ...], Flag("Units of layers each task has: 100")] = ()
    learning_rate: float = 1e-3  # Adam's default
    device: Device = "cpu"
    precision: Precision = "float32"
    have: Annotated[Path | None, Flag("A table whose rows are not trained again.")] = None
    table: Annotated[Path | None, Flag("Write the rows to this .csv or .parquet.")] = None
    plot: Plot = None  # Figures 3a to 3c, of the balanced table

    def __post_init__(self) -> None:
        place, parts = self.part
        if not 1 <= place <= parts:
            raise OptionError(
                f"`part` should be k/m with k from 1 to m, such as 1/4. Found {place}/{parts}."
            )
        if self.seeds < 1 or self.epochs <= 0:
            raise OptionError(
                f"`seeds` should be at least 1 and `epochs` above 0. Found {self.seeds} and "
                f"{self.epochs}."
            )

    @property
    def grid(self) -> list[GridRow]:
        """The rows asked for."""
        whole = balanced_grid() if self.balanced else unbalanced_grid()
        place, parts = self.part
        return whole[place - 1 :: parts]

    def source(self, row: GridRow) -> LawsSource:
        """Where a row's tasks come from; rows with the same sizes share it."""
        alphas = BALANCED_ALPHAS if self.balanced else UNBALANCED_ALPHAS
        return LawsSource(
            data=self.data,
            real=row.real,
            synthetic=row.synthetic,
            alphas=alphas if row.tasks > 1 or self.balanced else (),
            most=14 if self.balanced else 29,
        )

    def runs(self, row: GridRow) -> list[Run]:
        """The models of a row."""
        architecture = WindowBiLSTM(
            hidden=self.hidden,
            dimension=self.dimension,
            vectors=self.vectors,
            shared_layers=self.shared_layers,
            task_layers=self.task_layers,
            io_training=True,
        )
        words = max(row.real, row.synthetic if row.tasks > 1 else 0)
        base = Run(
            label=f"{row.tasks} tasks",
            source=self.source(row),
            tasks=row.names,
            architecture=architecture,
            weighting=Equal(),
            optimization=Optimization(learning_rate=self.learning_rate),
            steps=math.ceil(self.epochs * math.ceil(words / self.batch_size)),
            batch_size=self.batch_size,
            device=self.device,
            precision=self.precision,
            seed=0,
        )
        return [replace(base, seed=seed) for seed in range(self.seeds)]

"""What a report is made of: plain tables, so that a page is a function of them and of nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from taskmix.plans import AdviceDocument, ComparisonDocument
    from taskmix.transfer import TransferDocument

Binned = NDArray[np.float64]  # [task, bin]; NaN where nothing was seen


@dataclass(frozen=True, kw_only=True)
class RunRow:
    """One run, as its summary has it.

    >>> run = RunRow(name="a1", label="uniform", seed=0, status="stopped", tasks=("parity",))
    >>> ReportData(title="digits", labels=("uniform",), tasks=(), runs=(run,)).seeds
    (0,)
    """

    name: str
    label: str  # what is compared: a policy, a weighting, a variant
    seed: int
    status: str  # `finished`, or why there are no more steps
    tasks: tuple[str, ...]
    step: int = 0
    steps: int = 0
    seconds: float = 0.0
    best_step: int | None = None
    error: str | None = None
    specification: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    updated: str = ""
    other_labels: tuple[str, ...] = ()  # that it was asked for under as well

    @property
    def labels(self) -> tuple[str, ...]:
        """All labels, `label` first."""
        return (self.label, *self.other_labels)


@dataclass(frozen=True, kw_only=True)
class TaskRow:
    """One task: what it is scored by and how many rows it has.

    >>> TaskRow(name="parity", metric="accuracy", sizes={"train": 400, "dev": 100}).size
    400
    """

    name: str
    metric: str
    higher_is_better: bool = True
    kind: str = ""
    inputs: str = ""
    classes: int | None = None
    sizes: Mapping[str, int] = field(default_factory=dict)  # rows of each split

    @property
    def size(self) -> int | None:
        """Rows to train on, where known."""
        return self.sizes.get("train")


@dataclass(frozen=True, kw_only=True)
class ReportScore:
    """What a finished run reached on one task, by that task's metric.

    >>> score = ReportScore(task="parity", label="uniform", seed=0, split="test", value=0.9)
    >>> score.value
    0.9
    """

    task: str
    label: str
    seed: int
    split: str
    value: float


@dataclass(frozen=True, kw_only=True, eq=False)
class Trace:
    """One run over time: its steps averaged in the bins of the study, its scores as they were.

    >>> one = np.ones((1, 2))  # one task, two bins of steps
    >>> trace = Trace(
    ...     label="uniform", seed=0, tasks=("parity",), losses=np.array([[0.7, 0.4]]),
    ...     weights=one, examples=32 * one, probabilities=one,
    ... )
    >>> trace.losses[0].tolist()
    [0.7, 0.4]
    """

    label: str
    seed: int
    tasks: tuple[str, ...]
    losses: Binned  # mean loss
    weights: Binned  # mean weight
    examples: Binned  # rows trained on; zero where none
    probabilities: Binned  # mean probability of being drawn; NaN where none is recorded
    scores: Mapping[str, tuple[NDArray[np.int64], NDArray[np.float64]]] = field(
        default_factory=dict
    )  # of each task: steps of the evaluations, values on dev


@dataclass(frozen=True, kw_only=True, eq=False)
class ReportData:
    """Everything the page shows. `labels` and `tasks` are in the order of the page.

    >>> task = TaskRow(name="parity", metric="accuracy")
    >>> data = ReportData(
    ...     title="digits", labels=("uniform",), tasks=(task,), runs=(),
    ...     edges={"uniform": np.array([0.0, 50.0, 100.0])},
    ... )
    >>> data.task("parity").metric, data.last_step, data.widest_bin
    ('accuracy', 100.0, 50)
    """

    title: str
    labels: tuple[str, ...]
    tasks: tuple[TaskRow, ...]
    runs: tuple[RunRow, ...]
    scores: tuple[ReportScore, ...] = ()
    traces: tuple[Trace, ...] = ()
    edges: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)  # of each label's bins
    notes: tuple[str, ...] = ()
    command: str = ""
    transfer: TransferDocument | None = None  # the study's `transfer.json`
    advice: AdviceDocument | None = None  # the study's `advice.json`
    comparison: ComparisonDocument | None = None  # `comparison.json` of a training by a plan

    def bin_steps(self, label: str) -> NDArray[np.float64]:
        """The step that stands for each bin: its last."""
        return self.edges[label][1:]

    @property
    def last_step(self) -> float:
        return max((float(edges[-1]) for edges in self.edges.values()), default=1.0)

    @property
    def widest_bin(self) -> int:
        """How many steps a bin holds at most."""
        return max((int(np.diff(edges).max()) for edges in self.edges.values()), default=1)

    @property
    def seeds(self) -> tuple[int, ...]:
        return tuple(sorted({run.seed for run in self.runs}))

    def task(self, name: str) -> TaskRow:
        return next(task for task in self.tasks if task.name == name)

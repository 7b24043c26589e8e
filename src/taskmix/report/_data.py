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


Numbers = NDArray[np.float64]


def bin_edges(last_step: int, points: int) -> Numbers:
    """Bin `k` holds the steps above `edges[k]` up to `edges[k + 1]`; steps are counted from 1."""
    count = max(1, min(points, last_step))
    # Whole steps, so that no bin of a short run is empty while its neighbour holds two.
    return np.unique(np.round(np.linspace(0, max(last_step, 1), count + 1)))


def bin_of(steps: NDArray[np.int64], edges: Numbers) -> NDArray[np.int64]:
    """Which bin each step falls into; what lies outside goes to the nearest bin."""
    place = np.searchsorted(edges, steps, side="left") - 1
    return np.clip(place, 0, len(edges) - 2).astype(np.int64)


def binned_sum(
    values: Numbers,  # [row]; a NaN counts as nothing
    rows: NDArray[np.int64],  # [row], which task
    bins: NDArray[np.int64],  # [row], which bin
    shape: tuple[int, int],  # tasks, bins
) -> Numbers:
    """The sum of the values of each task and bin."""
    flat = rows * shape[1] + bins
    known = np.where(np.isfinite(values), values, 0.0)
    total = np.bincount(flat, weights=known, minlength=shape[0] * shape[1])
    return total.astype(np.float64).reshape(shape)


def binned_mean(
    values: Numbers,
    rows: NDArray[np.int64],
    bins: NDArray[np.int64],
    shape: tuple[int, int],
) -> Numbers:
    """The mean of the values of each task and bin, NaN where there is none."""
    count = binned_sum(np.isfinite(values).astype(np.float64), rows, bins, shape)
    total = binned_sum(values, rows, bins, shape)
    return divided(total, count)


def divided(total: Numbers, count: Numbers) -> Numbers:
    """`total` over `count`, NaN where there was nothing to count."""
    shape = np.broadcast_shapes(total.shape, count.shape)
    out: Numbers = np.divide(total, count, out=np.full(shape, np.nan), where=count > 0)
    return out


def carry_forward(values: Numbers) -> Numbers:
    """Each NaN along the last axis becomes the last number before it; leading ones stay NaN."""
    known = np.isfinite(values)
    places = np.where(known, np.arange(values.shape[-1]), 0)
    latest = np.maximum.accumulate(places, axis=-1)
    return np.take_along_axis(values, latest, axis=-1)


def mean_over(values: Numbers) -> tuple[Numbers, Numbers, Numbers]:
    """Mean, lowest and highest over the first axis, of what is known; NaN where nothing is."""
    known = np.isfinite(values)
    count = known.sum(axis=0).astype(np.float64)
    total = np.where(known, values, 0.0).sum(axis=0)
    low = np.where(known, values, np.inf).min(axis=0)
    high = np.where(known, values, -np.inf).max(axis=0)
    none = count == 0
    return divided(total, count), np.where(none, np.nan, low), np.where(none, np.nan, high)


Binned = NDArray[np.float64]  # [task, bin]; NaN where nothing was seen


@dataclass(frozen=True, kw_only=True)
class RunRow:
    """One run, as its summary has it."""

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
    """One task: what it is scored by and how many rows it has."""

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
    """What a finished run reached on one task, by that task's metric."""

    task: str
    label: str
    seed: int
    split: str
    value: float


@dataclass(frozen=True, kw_only=True, eq=False)
class Trace:
    """One run over time: its steps averaged in the bins of the study, its scores as they were."""

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
    """Everything the page shows. `labels` and `tasks` are in the order of the page."""

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

"""`transfer.json`: what a study of transfer taught, beside its runs and readable without taskmix.

Gains are improvements of the outcome in its own unit, above zero where a source helps, whichever
way the outcome runs; outcomes themselves are as measured. `docs/transfer-reference.md` has every entry.
A number that is not defined is null in the file and NaN here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from taskmix.numerics import Interval
from taskmix.records import LEFT_OUT_IF_NONE, read_document, write_document
from taskmix.transfer._designing import SubsetDesign
from taskmix.transfer._estimate import EstimateComparison
from taskmix.transfer._judging import Answer
from taskmix.transfer._surrogates import PriorAgreement

VERSION = 1
NAME = "transfer.json"


@dataclass(frozen=True)
class MeasuredValue:
    """A number with its interval.

    >>> from taskmix.numerics import Interval
    >>> MeasuredValue.of(Interval(0.5, 0.25, 0.75, n=3))
    MeasuredValue(value=0.5, low=0.25, high=0.75, n=3)
    """

    value: float
    low: float
    high: float
    n: int

    @classmethod
    def of(cls, interval: Interval) -> Self:
        return cls(interval.mean, interval.low, interval.high, interval.n)


@dataclass(frozen=True, kw_only=True)
class UsedDesign(SubsetDesign):
    """The design of the subsets, with what a pilot found where a precision was asked for.

    >>> UsedDesign(precision=0.01, pilot=24, noise=0.03).noise
    0.03
    """

    pilot: int | None = None  # subsets
    noise: float | None = None  # the deviation of one run


@dataclass(frozen=True)
class FailureRow:
    """A run that failed.

    >>> FailureRow(tasks=("a", "b"), seed=0, error="the loss became NaN").error
    'the loss became NaN'
    """

    tasks: tuple[str, ...]
    seed: int
    error: str


@dataclass(frozen=True, kw_only=True)
class SourceRow:
    """What a source does to a target; gains are improvements.

    >>> row = SourceRow(
    ...     source="b", gain=0.2, low=0.16, high=0.24, p_value=0.001, verdict="helps",
    ...     relative_gain=0.1, relative_low=0.06, relative_high=0.14)
    >>> row.verdict, row.relative_gain
    ('helps', 0.1)
    """

    source: str
    gain: float
    low: float
    high: float
    p_value: float
    verdict: Answer
    further_subsets: int | None = None  # that would tell; None where told, or not known
    further_single_runs: int | None = None
    relative_gain: float  # against the target's average source
    relative_low: float
    relative_high: float


@dataclass(frozen=True, kw_only=True)
class SelectionRow:
    """The sources that a rule would train a target with.

    >>> SelectionRow(rule="measured prefixes", sources=("b",), predicted=0.6).sources
    ('b',)
    """

    rule: str
    sources: tuple[str, ...]
    threshold: float | None = None  # on the gain, where the rule has one
    predicted: float  # the outcome with them


@dataclass(frozen=True, kw_only=True)
class HeldOutTest:
    """How well a surrogate predicts subsets that it was not fitted to.

    >>> known = MeasuredValue(0.9, 0.7, 0.98, n=12)
    >>> test = HeldOutTest(
    ...     spearman=known, r_squared=known, f1_positive=known, f1_negative=known,
    ...     positive_share=0.5, subsets=12)
    >>> test.spearman.value
    0.9
    """

    spearman: MeasuredValue
    r_squared: MeasuredValue
    f1_positive: MeasuredValue  # of telling that a subset helps
    f1_negative: MeasuredValue
    positive_share: float  # of the subsets, that do help
    subsets: int


@dataclass(frozen=True, kw_only=True)
class HeldOutRow:
    """A held-out subset: what came of it, and what the linear surrogate predicted.

    >>> row = HeldOutRow(sources=("b", "c"), observed=0.7, predicted=0.72)
    >>> round(row.predicted - row.observed, 2)
    0.02
    """

    sources: tuple[str, ...]
    observed: float
    predicted: float


@dataclass(frozen=True, kw_only=True)
class TargetRow:
    """What was learned about one target.

    >>> rows = [
    ...     SourceRow(
    ...         source=name, gain=gain, low=gain - 0.1, high=gain + 0.1, p_value=0.01, verdict=verdict,
    ...         relative_gain=gain, relative_low=gain - 0.1, relative_high=gain + 0.1)
    ...     for name, gain, verdict in (("b", -0.2, "harms"), ("c", 0.2, "helps"))]
    >>> target = TargetRow(
    ...     target="a", higher_is_better=False, alone=0.8, alone_runs=10, alone_deviation=0.02,
    ...     subsets=30, subset_runs=30, noise=0.03, sources=tuple(rows), chosen=("c",))
    >>> [row.source for row in target.best_first]
    ['c', 'b']
    """

    target: str
    higher_is_better: bool
    alone: float  # its outcome alone: mean, runs, deviation over seeds
    alone_runs: int
    alone_deviation: float
    subsets: int  # different ones
    subset_runs: int
    noise: float  # the deviation of one run
    failed: int = 0  # runs
    lost: tuple[tuple[str, ...], ...] = ()  # subsets of which all runs failed
    sources: tuple[SourceRow, ...]
    selections: tuple[SelectionRow, ...] = ()
    chosen: tuple[str, ...]  # the sources to train with
    measured: MeasuredValue | None = None  # the outcome with them, where it was measured
    extrapolation: Mapping[str, HeldOutTest] = field(default_factory=dict)  # by surrogate
    held_out: tuple[HeldOutRow, ...] = ()
    # That predicts left-out subsets best, and the error of each; not there in files of earlier versions.
    surrogate: str | None = field(default=None, metadata=LEFT_OUT_IF_NONE)
    left_out_errors: Mapping[str, float] | None = field(default=None, metadata=LEFT_OUT_IF_NONE)

    @property
    def best_first(self) -> list[SourceRow]:
        """The sources by their gains."""
        return sorted(self.sources, key=lambda row: -row.gain)


# Between models that differ in their seed; below it a target's sources have no order to go by.
LEAST_AGREEMENT = 0.5


@dataclass(frozen=True, kw_only=True)
class TransferDocument:
    """What `transfer.json` says; `load_transfer` reads it and `save_transfer` writes it.

    >>> document = TransferDocument(
    ...     command="taskmix transfer digits --all", outcome="metric", measure="accuracy",
    ...     budget="per-task", steps=100, estimate=None, design=UsedDesign(), runs=60,
    ...     tasks=("a", "b"), targets=(), groups=(("a", "b"),))
    >>> from pathlib import Path
    >>> save_transfer(Path("study"), document).name, load_transfer(Path("study")).groups
    ('transfer.json', (('a', 'b'),))
    """

    version: int = VERSION
    command: str
    outcome: str  # loss, margin or metric
    measure: str  # its name, such as accuracy
    split: str = "dev"
    budget: str
    steps: int
    estimate: str | None  # `gradients`, or None where subsets were trained
    design: UsedDesign
    runs: int  # distinct ones
    failed: int = 0
    failures: tuple[FailureRow, ...] = ()
    tasks: tuple[str, ...]
    targets: tuple[TargetRow, ...]
    groups: tuple[tuple[str, ...], ...]  # to train together; none unless all tasks are targets
    comparison: EstimateComparison | None = field(default=None, metadata=LEFT_OUT_IF_NONE)
    # Of an estimate: rank correlation of each target's gains between the models it came from.
    agreement: Mapping[str, float] | None = field(default=None, metadata=LEFT_OUT_IF_NONE)
    # How far a cheaper study agreed, where effects were drawn towards it.
    prior: PriorAgreement | None = field(default=None, metadata=LEFT_OUT_IF_NONE)

    @property
    def gains(self) -> dict[str, dict[str, float]]:
        """By target and source, of the targets that can be told of: a prior for another study."""
        return {
            target.target: {row.source: row.gain for row in target.sources}
            for target in self.targets
            if target.target not in self.refused
        }

    @property
    def refused(self) -> tuple[str, ...]:
        """Targets that the estimate cannot tell of, because its models disagree."""
        found = self.agreement or {}
        return tuple(name for name, rank in found.items() if rank < LEAST_AGREEMENT)


def save_transfer(folder: Path, document: TransferDocument) -> Path:
    """Writes `transfer.json` into a study, whole or not at all.

    >>> from pathlib import Path
    >>> document = TransferDocument(
    ...     command="taskmix transfer digits --all", outcome="loss", measure="loss",
    ...     budget="per-task", steps=100, estimate=None, design=UsedDesign(), runs=60,
    ...     tasks=("a", "b"), targets=(), groups=(("a", "b"),))
    >>> save_transfer(Path("study"), document).name, load_transfer(Path("study")).groups
    ('transfer.json', (('a', 'b'),))
    """
    return write_document(folder / NAME, document)


def load_transfer(folder: Path) -> TransferDocument | None:
    """What `save_transfer` wrote; None where there is none.

    >>> from pathlib import Path
    >>> load_transfer(Path("no-study")) is None
    True
    """
    return read_document(
        folder / NAME, TransferDocument, version=VERSION, command="taskmix transfer"
    )

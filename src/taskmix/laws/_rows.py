"""Rows that say what a law is in plain words and numbers: what is written, printed and compared."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from taskmix.laws._law import Law
from taskmix.numerics import Interval
from taskmix.records import LEFT_OUT_IF_NONE


@dataclass(frozen=True)
class FittedConstant:
    """A number of a law with the ends of its interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class LawRow:
    """The chosen law."""

    formula: str  # with the target: `f1 = 0.69*sqrt(n)`
    complexity: int
    constants: tuple[FittedConstant, ...]
    growth: Mapping[str, str | None]  # of each input, such as `n^0.5`; None where it is not known
    ranges: Mapping[str, tuple[float, float]]  # of the inputs in the data
    deviation: float  # of one measurement
    latex: str
    python: str


@dataclass(frozen=True)
class FrontRow:
    """A law of the front, with its errors."""

    complexity: int
    formula: str  # without the target
    constants: tuple[FittedConstant, ...]
    train_mse: float
    held_out_mse: float
    held_out_r2: float
    left_out_mse: float
    left_out_relative: float
    cross_mse: float  # NaN without folds
    nats: float  # of the message that tells law and rows
    chosen: bool
    growth: Mapping[str, str | None]
    latex: str
    # The geometric mean over all ranges left out in turn; None in documents of earlier versions.
    ranges_mse: float | None = field(default=None, metadata=LEFT_OUT_IF_NONE)
    # Why it should not be used where it is asked to hold.
    disqualified: str | None = field(default=None, metadata=LEFT_OUT_IF_NONE)


@dataclass(frozen=True)
class StackRow:
    """One of the laws that cannot be told from the chosen one, with its weight in their mean."""

    formula: str  # without the target
    weight: float
    chosen: bool


@dataclass(frozen=True)
class GroupRow:
    """One group's law."""

    group: str
    rows: int
    formula: str
    constants: tuple[FittedConstant, ...]  # shrunk towards those of the other groups
    alone: tuple[float, ...]  # the constants from its own rows only
    # Of one measurement; None in documents of earlier versions.
    deviation: float | None = field(default=None, metadata=LEFT_OUT_IF_NONE)


@dataclass(frozen=True)
class SharedRow:
    """A constant over groups: its mean, and whether each group has its own."""

    value: float
    shared: bool
    by: tuple[str, ...]  # the columns of groups by which it varies
    between: float  # the standard deviation between groups
    by_factor: bool  # whether groups differ by factors rather than by differences


def fitted_constants(intervals: Iterable[Interval]) -> tuple[FittedConstant, ...]:
    """Intervals as rows."""
    return tuple(FittedConstant(each.mean, each.low, each.high) for each in intervals)


def growth_words(law: Law) -> dict[str, str | None]:
    """How the law grows in each of its inputs."""
    return {
        name: None if found is None else found.describe(name)
        for name, found in law.growth().items()
    }


def law_row(law: Law) -> LawRow:
    """A law as a row."""
    return LawRow(
        formula=str(law),
        complexity=law.complexity,
        constants=fitted_constants(law.constants()),
        growth=growth_words(law),
        ranges=dict(law.ranges),
        deviation=law.deviation,
        latex=law.latex,
        python=law.python,
    )

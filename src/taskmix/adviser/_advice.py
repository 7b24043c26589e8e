"""What is asked of the adviser, what it says on its way, and everything that it found out."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from taskmix.adviser._budget import Budget, PricedBudget
from taskmix.adviser._growth import CurveGrowth
from taskmix.adviser._learned import Learned
from taskmix.adviser._race import Race
from taskmix.adviser._scores import Entry, judged_targets
from taskmix.errors import OptionError
from taskmix.models import Architecture
from taskmix.tasks import Finding, TaskSet
from taskmix.transfer import TransferLessons


@dataclass(frozen=True, kw_only=True)
class AdviseOptions:
    """What is asked of the adviser."""

    budget: Budget
    target: str | None = None  # one task to help; None: all of them
    batches: int | None = None  # of a run; None: what the budget allows
    level: float = 0.9  # of all intervals
    seed: int = 0
    # The training that will be, in batches or in seconds of this device; neither: until it is flat.
    train_batches: int | None = None
    train_seconds: float | None = None

    def __post_init__(self) -> None:
        if self.batches is not None and self.batches < 1:
            raise OptionError(f"A run should have at least one batch. Found {self.batches}.")
        if not 0 < self.level < 1:
            raise OptionError(f"`level` should lie between 0 and 1. Found {self.level}.")
        lengths = [n for n in (self.train_batches, self.train_seconds) if n is not None]
        if len(lengths) > 1 or not all(n > 0 for n in lengths):
            raise OptionError(
                "The training that will be should have a positive length, in steps or as a time. Found "
                f"`train_steps` {self.train_batches} and `train_time` {self.train_seconds}.",
                arguments=("train_steps", "train_time"),
            )

        if self.train_seconds is not None and self.budget.seconds is None:
            raise OptionError(
                "`train_time` should come with a budget of time, for which prices are measured. Found a "
                "budget of steps. Say how long with `train_steps`.",
                arguments=("train_time", "train_steps"),
            )

    @property
    def question(self) -> dict[str, Any]:
        """What a ledger is kept for: another question starts over."""
        later = ("train_batches", "train_seconds")  # that ledgers of earlier versions do not know
        found = asdict(self)
        return {
            name: value for name, value in found.items() if value is not None or name not in later
        }


@dataclass(frozen=True, kw_only=True)
class News:
    """What the adviser is at."""

    stage: str
    words: str
    spent: float = 0.0  # share of the budget
    left: float | None = None  # seconds of it, where it is a time


@dataclass(frozen=True, kw_only=True)
class Advice:
    """Everything that was found out."""

    options: AdviseOptions
    tasks: TaskSet
    targets: tuple[str, ...]
    findings: tuple[Finding, ...]
    budget: PricedBudget
    batches: int  # of a run of a candidate
    batch_size: int
    spent: float  # batches, probes at their price
    entries: dict[str, list[Entry]]
    race: Race
    lessons: TransferLessons | None
    unlearned: tuple[str, ...]  # tasks of which nothing was learned, by any baseline
    notes: tuple[str, ...] = ()
    learned: tuple[Learned, ...] = ()  # whether anything was, target by target
    length: int = 0  # batches of the training for which ways are ranked; 0: as long as the runs
    row_error: float = float("nan")  # of a difference, because dev rows are a sample
    leader_now: str = (
        ""  # the best of the runs as they are; the race's leader is that of the training
    )
    curve_error: float = 0.0  # of a difference, because runs are shorter than the training
    growth: CurveGrowth | None = None
    long: dict[str, list[Entry]] = field(default_factory=dict)  # longer runs of the leaders
    long_batches: int = 0
    rungs: dict[str, dict[str, list[Entry]]] = field(default_factory=dict)  # of cheaper models
    architecture: Architecture | None = None

    @property
    def promised(self) -> int:
        """Batches of the training for which scores are promised."""
        return self.length or self.batches

    @property
    def nothing_learned(self) -> bool:
        """Whether no way is seen to have learned anything of any target."""
        return bool(self.learned) and all(each.answer != "yes" for each in self.learned)

    @property
    def judged(self) -> tuple[str, ...]:
        """The targets whose scores count: of the others there is only noise."""
        return judged_targets(self.targets, self.unlearned)

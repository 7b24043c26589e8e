"""What is asked of the adviser, what it says on its way, and everything that it found out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from taskmix.adviser._budget import Budget
from taskmix.adviser._deliver import Delivered
from taskmix.adviser._judge import Race
from taskmix.adviser._learned import Learned, unlearned
from taskmix.adviser._members import BlendMember
from taskmix.adviser._propose import spoiled
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
    refit: bool = True  # whether what is delivered is trained again on train and dev rows

    def __post_init__(self) -> None:
        if self.batches is not None and self.batches < 1:
            raise OptionError(f"A run should have at least one batch. Found {self.batches}.")
        if not 0 < self.level < 1:
            raise OptionError(f"`level` should lie between 0 and 1. Found {self.level}.")

    @property
    def question(self) -> dict[str, Any]:
        """What a ledger is kept for: another question starts over."""
        return asdict(self)


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
    batches: int  # of a run of a candidate; 0: none was trained
    batch_size: int
    spent: float  # batches, at their prices
    share_spent: float  # of the budget
    entries: Mapping[str, Sequence[Entry]]
    race: Race | None  # None: the budget pays for no shared network
    lessons: TransferLessons | None
    peers: tuple[BlendMember, ...] = ()
    delivered: Delivered | None = None
    learned: tuple[Learned, ...] = ()  # whether anything was, target by target
    learned_together: bool = False  # whether the mean over all targets says so
    notes: tuple[str, ...] = ()
    rung: str = ""  # the cheaper model that candidates were tried on first
    architecture: Architecture | None = None

    @property
    def unlearned(self) -> tuple[str, ...]:
        """Tasks of which nothing was learned."""
        return unlearned(self.learned)

    @property
    def nothing_learned(self) -> bool:
        """Whether nothing is seen to have learned anything of any target, nor of all together."""
        known = bool(self.learned) and all(each.answer != "yes" for each in self.learned)
        return known and not self.learned_together

    @property
    def left_out(self) -> tuple[str, ...]:
        """What no plan should train: it teaches nothing, is there twice, or tells its own labels."""
        return (*self.unlearned, *spoiled(self.findings))

    @property
    def judged(self) -> tuple[str, ...]:
        """The targets whose scores count: the others no plan should train."""
        return judged_targets(self.targets, self.left_out)

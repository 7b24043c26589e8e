"""What the experiments of the transfer paper have in common: small runs, their subsets and seeds."""

from __future__ import annotations

from dataclasses import dataclass

from taskmix.engine import Optimization, Run, TaskSource
from taskmix.errors import OptionError
from taskmix.models import Architecture
from taskmix.transfer import SubsetDesign
from taskmix.weighting import Equal


@dataclass(frozen=True, kw_only=True)
class TransferOptions:
    """How long runs train, and how many there are."""

    hidden: tuple[int, ...] = (64,)
    steps: int = 300  # batches of every task, whatever it is trained with
    batch_size: int = 32
    learning_rate: float = 1e-3
    held_out: int = 24  # subsets of a target to be tried on
    repeats: int = 3  # runs of each of these
    alone: int = 10  # runs of each target alone
    seeds: int = 5  # of the methods that are compared
    seed: int = 0
    device: str = "cpu"

    def __post_init__(self) -> None:
        if self.repeats < 2 or not 2 <= self.seeds <= self.alone:
            raise OptionError(
                "`repeats` should be 2 or more, to know the noise, and `seeds` from 2 to `alone`. "
                f"Found {self.repeats}, {self.seeds} and {self.alone}."
            )

    def run(self, label: str, source: TaskSource, architecture: Architecture) -> Run:
        """A run of all tasks of a source with equal weights."""
        return Run(
            label=label,
            source=source,
            architecture=architecture,
            optimization=Optimization(learning_rate=self.learning_rate),
            weighting=Equal(),
            steps=self.steps,
            batch_size=self.batch_size,
            device=self.device,
            seed=self.seed,
        )

    def design(self, size: int, count: int | None, *, held_out: bool = False) -> SubsetDesign:
        """The subsets to fit, or others to be tried on, which have repeats."""
        return SubsetDesign(
            size=size,
            count=count,
            repeats=self.repeats if held_out else 1,
            alone=self.alone,
            seed=self.seed + held_out,
        )

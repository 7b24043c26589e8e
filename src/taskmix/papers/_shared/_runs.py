"""Carries out the runs of an experiment; one that did not finish is told in a sentence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from taskmix.engine import Engine, Executed, Progress, Run, run_all
from taskmix.errors import RunError
from taskmix.records import Study


@dataclass(frozen=True, kw_only=True)
class Executor:
    """How the runs of an experiment are executed: where, by how many processes, and who is told.

    >>> from pathlib import Path
    >>> from taskmix.records import Study
    >>> Executor(study=Study(Path("study"))).perform([])  # nothing is asked for, nothing is trained
    []
    """

    study: Study
    engine: Engine = "auto"
    workers: int | None = None
    on_progress: Callable[[Progress], None] | None = None
    should_stop: Callable[[], bool] | None = None

    def perform(self, runs: Sequence[Run]) -> list[Executed]:
        """Does all runs that the study does not hold yet; one that failed is told in its result."""
        return run_all(
            list(runs),
            self.study,
            engine=self.engine,
            workers=self.workers,
            on_progress=self.on_progress,
            should_stop=self.should_stop,
        )

    def finish(self, runs: Sequence[Run]) -> None:
        """The same, where all of them are needed; one that is named twice is done once."""
        distinct = list(dict.fromkeys(runs))
        all_must_have_finished(distinct, self.perform(distinct))


def all_must_have_finished(runs: Sequence[Run], results: Sequence[Executed]) -> None:
    """Says in a sentence which run did not finish."""
    for run, result in zip(runs, results, strict=True):
        if result.outcome not in ("finished", "already finished"):
            raise RunError(
                f"Run `{run.label}` with seed {run.seed} should have finished. Found it "
                f"{result.outcome}. {result.error or ''} Run the same command again to go on."
            )

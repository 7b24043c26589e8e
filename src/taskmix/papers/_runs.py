"""Carries out the runs of an experiment; one that did not finish is told in a sentence."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from taskmix.engine import Progress, Run, run_all
from taskmix.errors import RunError
from taskmix.records import Study


def carry_out(
    runs: Sequence[Run],
    study: Study,
    *,
    workers: int | None,
    on_progress: Callable[[Progress], None] | None,
    should_stop: Callable[[], bool] | None,
) -> None:
    """Does all runs that `study` does not hold yet."""
    results = run_all(
        list(runs), study, workers=workers, on_progress=on_progress, should_stop=should_stop
    )
    for run, result in zip(runs, results, strict=True):
        if result.outcome not in ("finished", "already finished"):
            raise RunError(
                f"Run `{run.label}` with seed {run.seed} should have finished. Found it "
                f"{result.outcome}. {result.error or ''} Run the same command again to go on."
            )

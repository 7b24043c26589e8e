"""`taskmix demo`: eight tasks from scikit-learn's digits, three ways to train, one page."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from taskmix.errors import RunError

if TYPE_CHECKING:
    from taskmix.engine import Run

_SHUFFLED = "shuffled"
_STEPS = 4_000


def demo(
    out: Annotated[Path, typer.Option("--out", help="The study to write.")] = Path("taskmix-demo"),
    seed: Annotated[int, typer.Option("--seed", help="The first of the seeds.")] = 0,
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="How many seeds.")] = 3,
    workers: Annotated[
        int | None, typer.Option("--workers", help="Processes at once [one a core].")
    ] = None,
    json_: Annotated[bool, typer.Option("--json", help="Print the scores as JSON.")] = False,
) -> None:
    """Train eight small tasks alone, uniformly and in proportion to size, and compare.

    The tasks are made from the digits that come with scikit-learn; two of them have shuffled labels,
    so the truth about what hurts is known. Nothing is downloaded. Run it again: it is done already.

    Example: taskmix demo --out taskmix-demo
    """
    from taskmix.cli._display import many_runs_bar, print_json
    from taskmix.cli._stopping import clean_stop
    from taskmix.cli._tables import print_table, score_table
    from taskmix.engine import run_all
    from taskmix.records import Study
    from taskmix.report import write_report
    from taskmix.tasks import digits_tasks

    begin = time.monotonic()
    tasks = digits_tasks()
    real = [name for name in tasks.names if _SHUFFLED not in name]
    runs = demo_runs(range(seed, seed + seeds))
    study = Study(out)
    with clean_stop() as should_stop, many_runs_bar(runs, quiet=json_, title="demo") as tell:
        results = run_all(runs, study, workers=workers, on_progress=tell, should_stop=should_stop)
    failed = [
        result for result in results if result.outcome not in ("finished", "already finished")
    ]
    if failed:
        reason = next((result.error for result in failed if result.error), "stopped")
        raise RunError(
            f"All {len(runs)} runs should have finished. Found {len(failed)} that did not "
            f"({reason}). Run the same command again to continue."
        )
    summaries = [result.summary for result in results if result.summary is not None]
    page = write_report(
        study,
        out / "report.html",
        labels=("single", "uniform", "proportional"),
        title="Eight tasks from handwritten digits",
        notes=(
            f"The two tasks named `{_SHUFFLED}…` have random labels: nothing can be learned there.",
        ),
    )
    table = score_table(summaries, "test", real)
    seconds = time.monotonic() - begin
    if json_:
        print_json({"seconds": seconds, "page": str(page), "rows": table.rows()})
        return
    sizes = {task.name: task.size for task in tasks}
    print_table(
        table,
        sizes,
        title=f"Test scores with 95 % intervals over {seeds} seeds",
        mean_name="mean of the real tasks",
    )
    typer.echo(
        f"The two tasks named `{_SHUFFLED}…` have random labels: nothing can be learned there."
    )
    typer.echo(f"{len(runs)} runs in {seconds:.0f} s. The page with the evidence: {page}")
    typer.echo(f"Learn a better division of the budget from these runs: taskmix improve {out}")


def demo_runs(seeds: range) -> list[Run]:
    """Single-task, uniform and size-proportional training, with equal numbers of steps in all."""
    from taskmix.engine import DigitsSource, Run
    from taskmix.models import Perceptron
    from taskmix.policies import HardProgress, SizeProportional, Uniform
    from taskmix.tasks import digits_tasks

    names = digits_tasks().names
    shared = Run(
        label="uniform",
        source=DigitsSource(),
        architecture=Perceptron(),
        policy=Uniform(),
        reward=HardProgress(),  # costs nothing, and `taskmix improve` can learn from it
        steps=_STEPS,
        evaluate_every=_STEPS // 16,
        checkpoint_every=_STEPS // 4,
        seed=0,
    )
    alone = replace(
        shared,
        label="single",
        reward=None,
        steps=_STEPS // len(names),
        evaluate_every=_STEPS // len(names) // 8,
        checkpoint_every=_STEPS // len(names),
    )
    runs: list[Run] = []
    for seed in seeds:
        runs.extend(replace(alone, tasks=(name,), seed=seed) for name in names)
        runs.append(replace(shared, seed=seed))
        runs.append(replace(shared, label="proportional", policy=SizeProportional(), seed=seed))
    return runs

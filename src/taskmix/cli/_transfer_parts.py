"""How `taskmix transfer` and `advise` execute runs, and the plan that follows from transfer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from taskmix.engine import Engine, Executed, Run, Workers
    from taskmix.plans import Plan
    from taskmix.records import Study
    from taskmix.transfer import Perform, TransferLessons


@contextmanager
def performing(
    study: Study,
    *,
    engine: Engine,
    workers: int | Workers | None,
    fresh: bool,
    quiet: bool,
    title: str = "transfer",
    is_over: Callable[[], bool] = lambda: False,
) -> Iterator[Perform]:
    """Gives a function that executes runs with a bar, and can be stopped: by the user, or by time."""
    from taskmix.cli._display import many_runs_bar
    from taskmix.cli._stopping import clean_stop
    from taskmix.engine import Workers, run_all

    begun: set[tuple[tuple[str, ...] | None, int, int]] = set()

    with clean_stop() as asked, ExitStack() as stack:
        if not isinstance(workers, Workers):
            workers = stack.enter_context(Workers(workers))
        processes = workers

        def should_stop() -> bool:
            return asked() or is_over()

        def execute(runs: Sequence[Run], *, over: bool) -> list[Executed]:
            with many_runs_bar(runs, quiet=quiet, title=title) as tell:
                return run_all(
                    runs,
                    study,
                    engine=engine,
                    workers=processes,
                    on_progress=tell,
                    should_stop=should_stop,
                    fresh=over,
                )

        def perform(runs: Sequence[Run]) -> list[Executed]:
            keys = [(run.tasks, run.seed, run.steps) for run in runs]
            # A run starts over once: a later stage that asks for it again wants that one.
            new = [run for run, key in zip(runs, keys, strict=True) if key not in begun]
            begun.update(keys)
            if fresh and new:
                execute(new, over=True)
            return execute(runs, over=False)

        yield perform


def make_plan(lessons: TransferLessons, document: dict[str, object]) -> Plan:
    """The groups, or for one target it with the sources chosen."""
    from taskmix.plans import Expected, Part, Plan, Shares

    description = lessons.carried.description
    # Which tasks to train together, and for which of them.
    groups = [(group, group) for group in lessons.groups] or [
        (
            tuple(
                name
                for name in description.tasks
                if name == lesson.target or name in lesson.chosen.sources
            ),
            (lesson.target,),
        )
        for lesson in lessons.targets
    ]
    metrics = {task.name: task.metric for task in description.loaded}
    expected = [
        Expected(
            task=lesson.target,
            metric=metrics[lesson.target]
            if description.outcome == "metric"
            else description.outcome,
            value=lesson.measured.mean,
            low=lesson.measured.low,
            high=lesson.measured.high,
        )
        for lesson in lessons.targets
        if not lessons.groups and lesson.measured is not None and lesson.measured.n > 1
    ]
    count = sum(len(group) for group, _ in groups)
    return Plan(
        parts=tuple(
            Part(
                tasks=group,
                scored=scored,
                share=len(group) / count,
                division=Shares.equal(len(group)),
            )
            for group, scored in groups
        ),
        expected=tuple(expected),
        evidence=document,
    )

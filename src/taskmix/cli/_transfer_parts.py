"""How `taskmix transfer` and `advise` execute runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from taskmix.engine import Engine, Executed, Run, Workers
    from taskmix.records import Study
    from taskmix.transfer import Perform


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

"""Many runs on this machine, by themselves or together."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Literal

from taskmix.engine._fleet import fleet_pays, run_fleet
from taskmix.engine._run import Executed, Run
from taskmix.engine._units import Alone, Progress, work_off
from taskmix.errors import OptionError
from taskmix.records import Study


def run_all(
    runs: Sequence[Run],
    study: Study,
    *,
    workers: int | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    should_stop: Callable[[], bool] | None = None,
    fresh: bool = False,
    engine: Literal["here", "fleet", "auto"] = "here",
) -> list[Executed]:
    """Executes every run that the study does not hold already; the results in the order asked.

    `fresh` starts them all over.
    A run that fails is told in its result and does not stop the others. What the user must mend (an
    `InputError`) stops all: it would come again with the next run.

    The engine "here" gives each core one run at a time, "fleet" trains runs of one architecture
    together (`run_fleet`), and "auto" takes the one that is faster for these runs (`fleet_pays`).
    """
    if engine not in ("here", "fleet", "auto"):
        raise OptionError(f'`engine` should be "here", "fleet" or "auto". Found {engine!r}.')
    if engine == "fleet" or (engine == "auto" and fleet_pays(runs)):
        return run_fleet(
            runs,
            study,
            workers=workers,
            on_progress=on_progress,
            should_stop=should_stop,
            fresh=fresh,
        )
    return work_off(
        [Alone(number, run) for number, run in enumerate(runs)],
        runs,
        study,
        workers=workers or os.cpu_count() or 1,
        on_progress=on_progress,
        should_stop=should_stop,
        fresh=fresh,
    )

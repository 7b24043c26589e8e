"""Many runs on this machine, by themselves or together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal, get_args

from taskmix.engine._fleet import fleet_pays, run_fleet
from taskmix.engine._ray import run_ray
from taskmix.engine._run import Executed, Run
from taskmix.engine._units import Alone, Progress, work_off
from taskmix.engine._workers import Workers, count_workers
from taskmix.errors import OptionError, RecordError
from taskmix.records import Study

Engine = Literal["here", "fleet", "auto", "ray"]


def run_all(
    runs: Sequence[Run],
    study: Study,
    *,
    workers: int | Workers | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    should_stop: Callable[[], bool] | None = None,
    fresh: bool = False,
    engine: Engine = "here",
) -> list[Executed]:
    """Executes every run that the study does not hold already; the results in the order asked.

    `fresh` starts them all over. `workers` is how many processes may be at work at once, or a
    `Workers` whose processes stay for the next call.
    A run that fails is told in its result and does not stop the others. What the user must mend (an
    `InputError`) stops all: it would come again with the next run.

    The engine "here" gives each core one run at a time, "fleet" trains runs of one architecture
    together (`run_fleet`), and "auto" takes the one that is faster for these runs (`fleet_pays`).
    "ray" gives them to the cluster of the `with cluster(...)` block around, or to one of this machine.
    """
    if engine not in get_args(Engine):
        raise OptionError(
            f"`engine` should be one of {', '.join(get_args(Engine))}. Found {engine!r}."
        )
    study.settle()
    if engine == "ray":
        return run_ray(
            runs,
            study,
            workers=None if isinstance(workers, Workers) else workers,
            on_progress=on_progress,
            should_stop=should_stop,
            fresh=fresh,
        )
    results = [None] * len(runs) if fresh else [_already(run, study) for run in runs]
    places = [place for place, result in enumerate(results) if result is None]
    rest = [runs[place] for place in places]

    def tell(progress: Progress) -> None:
        if on_progress is not None:
            on_progress(replace(progress, run=places[progress.run]))

    for place, result in enumerate(results):
        if result is not None and on_progress is not None:
            on_progress(Progress(place, runs[place].steps, done=True))
    if engine == "fleet" or (engine == "auto" and fleet_pays(rest)):
        done = run_fleet(
            rest,
            study,
            workers=workers,
            on_progress=tell,
            should_stop=should_stop,
            fresh=fresh,
        )
    else:
        done = work_off(
            [Alone(number, run) for number, run in enumerate(rest)],
            rest,
            study,
            workers=workers if isinstance(workers, Workers) else count_workers(workers),
            on_progress=tell,
            should_stop=should_stop,
            fresh=fresh,
        )
    found = iter(done)
    return [result if result is not None else next(found) for result in results]


def _already(run: Run, study: Study) -> Executed | None:
    """A run that is finished needs no process to say so."""
    folder = study.run(run.specification())
    try:
        summary = folder.summary()
    except RecordError:  # whoever claims the run sees to it
        return None
    finished = summary is not None and summary.status == "finished"
    return Executed(outcome="already finished", summary=summary) if finished else None

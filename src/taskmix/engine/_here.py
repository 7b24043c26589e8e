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
from taskmix.records import RunFolder, Study

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

    Runs that are equal but for their labels are done once. `fresh` starts them all over.
    `workers` is how many processes may be at work at once, or a
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
    folders = [run.folder(study) for run in runs]
    results = [None if fresh else _already(folder) for folder in folders]
    equals: dict[str, list[int]] = {}  # places of runs that are not done, by the run's name
    for place, (folder, result) in enumerate(zip(folders, results, strict=True)):
        if result is None:
            equals.setdefault(folder.name, []).append(place)
    places = list(equals.values())
    rest = [runs[first] for first, *_ in places]

    def tell(progress: Progress) -> None:
        if on_progress is not None:
            for place in places[progress.run]:
                on_progress(replace(progress, run=place))

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
    for (first, *others), executed in zip(places, done, strict=True):
        results[first] = executed
        for place in others:
            results[place] = executed.for_equal(folders[place])
    return [result for result in results if result is not None]


def _already(folder: RunFolder) -> Executed | None:
    """A run that is finished needs no process to say so."""
    try:
        summary = folder.summary()
    except RecordError:  # whoever claims the run sees to it
        return None
    if summary is None or summary.status != "finished":
        return None
    folder.keep_label()
    return Executed(outcome="already finished", summary=summary)

"""Executors of this machine: a process a core, a fleet, or whichever of the two is faster.

Frozen encoders read their texts before the runs begin, once, in the process that asks for them. The
runs' own processes then find the vectors in the cache, and none of them reads what another reads at the
same time.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from taskmix.engine._executor import (
    UNOBSERVED,
    Observers,
    equal_runs,
    never,
    sources_of,
    to_each,
)
from taskmix.engine._fleet import company, fleet_pays, plan_units, why_alone
from taskmix.engine._run import Executed, Run, find_device
from taskmix.engine._source import TaskSource, load_once, select_once
from taskmix.engine._units import Progress, SingleUnit, Stop, Unit, run_units
from taskmix.engine._workers import Workers, count_workers
from taskmix.errors import RecordError, TaskmixWarning
from taskmix.records import RunFolder, Study
from taskmix.tasks import FeatureEncoding

Processes = int | Workers | None  # at once; None: one a core. `Workers` stay for the next call


@dataclass(frozen=True, kw_only=True)
class _ThisMachine:
    """Runs as units of work for the processes of this machine; executors differ in the units."""

    workers: Processes = None
    observers: Observers = UNOBSERVED

    @property
    def at_once(self) -> int:
        """How many processes are at work at the same time."""
        return _count(self.workers)

    def run(
        self, runs: Sequence[Run], study: Study, *, stop: Stop = never, fresh: bool = False
    ) -> list[Executed]:
        """As any executor does; what others are merged of comes before these."""
        study.settle()
        merged = [place for place, run in enumerate(runs) if run.sources]
        if not merged:
            return self._round(runs, study, stop, fresh=fresh)
        plain = [place for place in range(len(runs)) if place not in merged]
        asked = [runs[place] for place in merged]
        wanted = [run for run in asked if fresh or _already(run.folder(study)) is None]
        first = [*(runs[place] for place in plain), *sources_of(wanted)]
        # Of the first only those that were asked for: the sources come after them.
        done = dict(zip(plain, self._round(first, study, stop, fresh=fresh), strict=False))
        done |= zip(merged, self._round(asked, study, stop, fresh=fresh), strict=True)
        return [done[place] for place in range(len(runs))]

    def _round(
        self, runs: Sequence[Run], study: Study, stop: Stop, *, fresh: bool
    ) -> list[Executed]:
        """Runs of which none waits for another."""
        observers = self.observers
        listening = observers.listening(study)
        folders = [run.folder(study) for run in runs]
        results = [None if fresh else _already(folder) for folder in folders]
        places = equal_runs(folders, [place for place, each in enumerate(results) if each is None])
        rest = [runs[first] for first, *_ in places]
        with observers.progress(runs) as tell:
            for place, result in enumerate(results):
                if result is not None:
                    tell(Progress(place, runs[place].steps, done=True))
            is_read = read_ahead(rest, stop=observers.either(stop))
            units, workers = self._units(rest if is_read else [], self.workers)
            done = run_units(
                units,
                rest,
                study,
                workers=workers,
                tell=to_each(tell, places),
                listening=listening.live,
                stop=observers.either(stop),
                fresh=fresh,
            )
        for (first, *others), executed in zip(places, done, strict=True):
            results[first] = executed
            for place in others:
                results[place] = executed.for_equal(folders[place])
        listening.replay(runs)
        return [result for result in results if result is not None]

    def _units(self, runs: Sequence[Run], workers: Processes) -> tuple[list[Unit], int | Workers]:
        """The runs as units, and the processes for them: one by one."""
        return [SingleUnit(number, run) for number, run in enumerate(runs)], _processes(workers)


@dataclass(frozen=True, kw_only=True)
class Here(_ThisMachine):
    """Each core gets one run at a time; with one process all is done in this one."""


@dataclass(frozen=True, kw_only=True)
class Fleet(_ThisMachine):
    """Runs of one architecture train together, as one model with a member axis.

    Runs of one family (the same source, architecture, steps, batch size, optimiser and times of
    evaluation) are cut into chunks that fit the device's memory; `chunk` sets how many models train at
    once. Runs that no fleet can take, because what they train on depends on their losses or their
    architecture has no stacked form, are done one by one, and a warning says why. On a GPU all is done
    in this process unless `workers` is a number: several pay where there are several families, as the
    host of one works while the steps of another run. With several GPUs each has a process.

    >>> from dataclasses import replace
    >>> from taskmix.models import Perceptron
    >>> from taskmix.records import Study
    >>> run = Run(label="demo", source=DigitsSource(), architecture=Perceptron(), steps=2, seed=0)
    >>> results = Fleet(workers=1).run([run, replace(run, seed=1)], Study("study"))
    >>> [result.summary.seed for result in results]
    [0, 1]
    """

    chunk: int | None = None

    def companions(self, runs: Sequence[Run]) -> list[int]:
        """How many models train in one batch with each, where memory allows."""
        workers = self.workers if isinstance(self.workers, int) else None
        return company(runs, on_cpu=self.at_once, on_gpu=workers or torch.cuda.device_count())

    def _units(self, runs: Sequence[Run], workers: Processes) -> tuple[list[Unit], int | Workers]:
        on_cpu = all(find_device(run.device).type == "cpu" for run in runs)
        if not on_cpu and not isinstance(workers, int):
            workers = max(1, torch.cuda.device_count())
        _say_why_alone(runs)
        units = plan_units(runs, chunk=self.chunk, workers=_count(workers))
        return units, _processes(workers)


@dataclass(frozen=True, kw_only=True)
class Auto(_ThisMachine):
    """`Fleet` where that is faster for the runs that are left to do, `Here` otherwise.

    >>> from taskmix.models import Perceptron
    >>> from taskmix.records import Study
    >>> run = Run(label="demo", source=DigitsSource(), architecture=Perceptron(), steps=2, seed=0)
    >>> executor, study = Auto(workers=1), Study("study")
    >>> [executor.run([run], study)[0].outcome for _ in range(2)]
    ['finished', 'already finished']
    """

    def companions(self, runs: Sequence[Run]) -> list[int]:
        """How many models train in one batch with each."""
        return Fleet(workers=self.workers).companions(runs) if fleet_pays(runs) else [1] * len(runs)

    def _units(self, runs: Sequence[Run], workers: Processes) -> tuple[list[Unit], int | Workers]:
        if fleet_pays(runs):
            with warnings.catch_warnings():  # nobody asked for a fleet
                warnings.simplefilter("ignore", TaskmixWarning)
                return Fleet()._units(runs, workers)
        return super()._units(runs, workers)


def _say_why_alone(runs: Sequence[Run]) -> None:
    """One sentence for each reason that keeps models out of a fleet."""
    for reason in dict.fromkeys(map(why_alone, runs)):
        if reason is not None:
            words = f"Some runs are trained one by one, because {reason}."
            warnings.warn(words, TaskmixWarning, stacklevel=5)


def _processes(workers: Processes) -> int | Workers:
    return workers if isinstance(workers, Workers) else count_workers(workers)


def _count(workers: Processes) -> int:
    return workers.count if isinstance(workers, Workers) else count_workers(workers)


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


class _StoppedReading(Exception):  # noqa: N818 - nothing is wrong
    pass


def read_ahead(
    runs: Sequence[Run],
    on_progress: Callable[[int, int], None] | None = None,
    *,
    stop: Stop | None = None,
) -> bool:
    """Has all texts of these runs read; False where `stop` said so before the end, in time.

    What was read by then is kept. Nothing happens where no run has a frozen encoder.

    >>> from taskmix.models import Perceptron
    >>> read_ahead([Run(label="a", source=DigitsSource(), architecture=Perceptron(), steps=2, seed=0)])
    True
    """

    def tell(done: int, total: int) -> None:
        if on_progress is not None:
            on_progress(done, total)
        if stop is not None and done < total and stop():
            raise _StoppedReading

    wanted: dict[tuple[TaskSource, FeatureEncoding], set[str] | None] = {}
    for run in runs:
        encoding = run.architecture.encoding
        if isinstance(encoding, FeatureEncoding):
            names = wanted.setdefault((run.source, encoding), set())
            if run.tasks is None or names is None:
                wanted[run.source, encoding] = None  # all of them
            else:
                names.update(run.tasks)
    for (source, encoding), names in wanted.items():
        tasks = load_once(source)
        if names is not None and names != set(tasks.names):
            tasks = select_once(source, tuple(name for name in tasks.names if name in names))
        try:
            encoding.read(tasks, cache=getattr(source, "cache", None), on_progress=tell)
        except _StoppedReading:
            return False
    return True

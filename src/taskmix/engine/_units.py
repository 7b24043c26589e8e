"""Units of work on this machine: one process a core, one torch thread a process.

A unit is one run, or runs that train together. On few cores processes beat threads within a run by
far; a process that dies takes no finished run with it, and its unfinished ones go on from their last
checkpoints.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from itertools import islice
from typing import Protocol

from taskmix.engine._run import Executed, Run, execute
from taskmix.engine._workers import Workers
from taskmix.errors import InputError, RecordError, TaskmixError
from taskmix.records import Study
from taskmix.training import Event, StepEvent

_TELL_EVERY = 0.1  # seconds between two words of one run about its progress
_RESTARTS = 3  # of the pool, when a worker was killed
_AHEAD = 4  # units a worker that are given out before they are needed


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is."""

    run: int  # its place among the runs asked for
    step: int
    done: bool = False


Tell = Callable[[Progress], None]
ShouldStop = Callable[[], bool]


class Unit(Protocol):
    """Runs that one process executes."""

    @property
    def numbers(self) -> tuple[int, ...]:
        """Their places among the runs asked for."""
        ...

    def work(
        self, study: Study, tell: Tell | None, should_stop: ShouldStop | None, *, fresh: bool
    ) -> list[Executed]:
        """Executes them; the results in their order."""
        ...


@dataclass(frozen=True)
class Alone:
    """One run by itself."""

    number: int
    run: Run

    @property
    def numbers(self) -> tuple[int, ...]:
        return (self.number,)

    def work(
        self, study: Study, tell: Tell | None, should_stop: ShouldStop | None, *, fresh: bool
    ) -> list[Executed]:
        last_told = 0.0

        def listen(event: Event) -> None:
            nonlocal last_told
            now = time.monotonic()
            if isinstance(event, StepEvent) and now - last_told > _TELL_EVERY and tell:
                last_told = now
                tell(Progress(self.number, event.step))

        run = self.run
        try:
            return [execute(run, study, listener=listen, should_stop=should_stop, fresh=fresh)]
        except InputError:
            raise
        except RecordError as error:
            return [Executed(outcome="failed", summary=None, error=str(error), recorded=False)]
        except TaskmixError as error:
            summary = study.run(run.specification()).summary()
            return [Executed(outcome="failed", summary=summary, error=str(error))]


def work_off(
    units: Sequence[Unit],
    runs: Sequence[Run],
    study: Study,
    *,
    workers: int | Workers,
    on_progress: Tell | None,
    should_stop: ShouldStop | None,
    fresh: bool,
) -> list[Executed]:
    """Executes the units, in processes or in this one; the results in the runs' order."""
    done = _Done(runs, on_progress)
    if isinstance(workers, Workers):
        if workers.count > 1:
            _with_restarts(units, done, study, workers, should_stop, fresh=fresh)
            return done.results(study)
    elif min(workers, len(units)) > 1:
        with Workers(min(workers, len(units))) as pool:
            _with_restarts(units, done, study, pool, should_stop, fresh=fresh)
        return done.results(study)
    for unit in units:
        if should_stop is not None and should_stop():
            break
        done.take(unit, unit.work(study, done.tell, should_stop, fresh=fresh))
    return done.results(study)


def _with_restarts(
    units: Sequence[Unit],
    done: _Done,
    study: Study,
    workers: Workers,
    should_stop: ShouldStop | None,
    *,
    fresh: bool,
) -> None:
    for _ in range(_RESTARTS):
        try:
            _pooled(done.missing(units), done, study, workers, should_stop, fresh=fresh)
            break
        except BrokenProcessPool:
            workers.close()
            fresh = False
            continue  # a worker was killed; what it held goes on from its checkpoint


class _Done:
    """What is done, each run told once."""

    def __init__(self, runs: Sequence[Run], on_progress: Tell | None) -> None:
        self._runs = runs
        self._on_progress = on_progress
        self._results: list[Executed | None] = [None] * len(runs)
        self._told: set[int] = set()

    def tell(self, progress: Progress) -> None:
        if progress.run in self._told:
            return
        if progress.done:
            self._told.add(progress.run)
        if self._on_progress is not None:
            self._on_progress(progress)

    def take(self, unit: Unit, results: Sequence[Executed]) -> None:
        for number, result in zip(unit.numbers, results, strict=True):
            self._results[number] = result
            if result.outcome != "stopped":
                self.tell(Progress(number, self._runs[number].steps, done=True))

    def missing(self, units: Sequence[Unit]) -> list[Unit]:
        return [unit for unit in units if self._results[unit.numbers[0]] is None]

    def results(self, study: Study) -> list[Executed]:
        return [
            result or Executed(outcome="stopped", summary=study.run(run.specification()).summary())
            for result, run in zip(self._results, self._runs, strict=True)
        ]


def _pooled(
    units: Sequence[Unit],
    done: _Done,
    study: Study,
    workers: Workers,
    should_stop: ShouldStop | None,
    *,
    fresh: bool,
) -> None:
    workers.begin()
    waiting: dict[Future[list[Executed]], Unit] = {}
    rest = iter(units)
    try:
        stopping = False
        while True:
            # A few are on their way: looking at all of them each time one is done would take
            # the square of their number.
            for unit in islice(rest, 0 if stopping else _AHEAD * workers.count - len(waiting)):
                waiting[workers.submit(unit, study, fresh=fresh)] = unit
            if not waiting:
                break
            ready, _ = wait(waiting, timeout=0.1, return_when=FIRST_COMPLETED)
            for progress in workers.told():
                done.tell(progress)
            for future in ready:
                unit = waiting.pop(future)
                done.take(unit, future.result())
            if should_stop is not None and not stopping and should_stop():
                stopping = True
                workers.ask_to_stop()
                for future in list(waiting):
                    if future.cancel():
                        del waiting[future]
    except BaseException:
        for future in waiting:
            future.cancel()
        workers.close()
        raise

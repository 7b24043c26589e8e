"""Units of work on this machine: one process a core, one torch thread a process.

A unit is one run, or runs that train together. On few cores processes beat threads within a run by
far; a process that dies takes no finished run with it, and its unfinished ones go on from their last
checkpoints.
"""

from __future__ import annotations

import queue
import signal
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Protocol

from taskmix.engine._run import Executed, Run, execute
from taskmix.errors import InputError, TaskmixError
from taskmix.records import Study
from taskmix.training import Event, StepEvent

_TELL_EVERY = 0.1  # seconds between two words of one run about its progress
_RESTARTS = 3  # of the pool, when a worker was killed


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
        except TaskmixError as error:
            summary = study.run(run.specification()).summary()
            return [Executed(outcome="failed", summary=summary, error=str(error))]


def work_off(
    units: Sequence[Unit],
    runs: Sequence[Run],
    study: Study,
    *,
    workers: int,
    on_progress: Tell | None,
    should_stop: ShouldStop | None,
    fresh: bool,
) -> list[Executed]:
    """Executes the units, in `workers` processes or in this one; the results in the runs' order."""
    done = _Done(runs, on_progress)
    workers = min(workers, len(units))
    if workers <= 1:
        for unit in units:
            if should_stop is not None and should_stop():
                break
            done.take(unit, unit.work(study, done.tell, should_stop, fresh=fresh))
        return done.results(study)
    for _ in range(_RESTARTS):
        try:
            _pooled(done.missing(units), done, study, workers, should_stop, fresh=fresh)
            break
        except BrokenProcessPool:
            fresh = False
            continue  # a worker was killed; what it held goes on from its checkpoint
    return done.results(study)


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
    workers: int,
    should_stop: ShouldStop | None,
    *,
    fresh: bool,
) -> None:
    context = get_context("spawn")
    told: Any = context.Queue()
    stop: Any = context.Event()
    with ProcessPoolExecutor(
        workers, mp_context=context, initializer=_begin_worker, initargs=(told, stop)
    ) as pool:
        waiting: dict[Future[list[Executed]], Unit] = {
            pool.submit(_in_worker, unit, study.path, fresh): unit for unit in units
        }
        try:
            while waiting:
                ready, _ = wait(waiting, timeout=0.1, return_when=FIRST_COMPLETED)
                _drain(told, done)
                for future in ready:
                    unit = waiting.pop(future)
                    done.take(unit, future.result())
                if should_stop is not None and should_stop() and not stop.is_set():
                    stop.set()
                    for future in list(waiting):
                        if future.cancel():
                            del waiting[future]
        except BaseException:
            stop.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _drain(told: Any, done: _Done) -> None:
    while True:
        try:
            done.tell(told.get_nowait())
        except queue.Empty:
            return


_told: Any = None
_stop: Any = None


def _begin_worker(told: Any, stop: Any) -> None:
    global _told, _stop
    import torch

    torch.set_num_threads(1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent says when to stop
    _told, _stop = told, stop


def _in_worker(unit: Unit, path: Path, fresh: bool) -> list[Executed]:
    return unit.work(Study(path), _told.put, _stop.is_set, fresh=fresh)

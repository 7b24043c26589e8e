"""Units of work on this machine: one process a core, one torch thread a process.

A unit is one run, or runs that train together. On few cores processes beat threads within a run by
far; a process that dies takes no finished run with it, and its unfinished ones go on from their last
checkpoints.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Protocol

from taskmix.engine._run import Executed, Listener, Run, execute
from taskmix.engine._workers import Ended, Workers
from taskmix.errors import InputError, RecordError, RunError, TaskmixError
from taskmix.records import Study
from taskmix.training import Event, StepEvent

_TELL_EVERY = 0.1  # seconds between two words of one run about its progress
_MOST_DEATHS = 3  # of workers in one call: then memory is short, and more of them would die


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is."""

    run: int  # its place among the runs asked for
    step: int
    done: bool = False
    losses: Mapping[int, float] = field(default_factory=dict)  # the latest of each task


Tell = Callable[[Progress], None]
Stop = Callable[[], bool]


class Unit(Protocol):
    """Runs that one process executes."""

    @property
    def numbers(self) -> tuple[int, ...]:
        """Their places among the runs asked for."""
        ...

    def work(self, study: Study, tell: Tell, stop: Stop, *, fresh: bool) -> list[Executed]:
        """Executes them; the results in their order."""
        ...


@dataclass(frozen=True)
class SingleUnit:
    """One run by itself."""

    number: int
    run: Run

    @property
    def numbers(self) -> tuple[int, ...]:
        return (self.number,)

    def work(
        self, study: Study, tell: Tell, stop: Stop, *, fresh: bool, listener: Listener | None = None
    ) -> list[Executed]:
        run = self.run
        listen = telling_progress(self.number, tell, listener)
        try:
            return [execute(run, study, listener=listen, should_stop=stop, fresh=fresh)]
        except InputError:
            raise
        except RecordError as error:
            return [Executed(outcome="failed", summary=None, error=str(error), recorded=False)]
        except TaskmixError as error:
            summary = run.folder(study).summary()
            return [Executed(outcome="failed", summary=summary, error=str(error))]


def telling_progress(number: int, tell: Tell, listener: Listener | None = None) -> Listener:
    """A listener that says now and then how far a run is, and passes every event on."""
    last_told = 0.0
    losses: dict[int, float] = {}

    def listen(event: Event) -> None:
        nonlocal last_told
        if isinstance(event, StepEvent):
            losses.update(zip(event.tasks, event.losses, strict=True))
            now = time.monotonic()
            if now - last_told > _TELL_EVERY:
                last_told = now
                tell(Progress(number, event.step, losses=dict(losses)))
        if listener is not None:
            listener(event)

    return listen


def run_units(
    units: Sequence[Unit],
    runs: Sequence[Run],
    study: Study,
    *,
    workers: int | Workers,
    tell: Tell,
    listening: Callable[[Run], AbstractContextManager[Listener | None]],  # to a run of this process
    stop: Stop,
    fresh: bool,
) -> list[Executed]:
    """Executes the units, in processes or in this one; the results in the runs' order."""
    done = _Done(runs, tell)
    if isinstance(workers, Workers):
        if workers.count > 1:
            _pooled(units, done, study, workers, stop, fresh=fresh)
            return done.results(study)
    elif min(workers, len(units)) > 1:
        with Workers(min(workers, len(units))) as pool:
            _pooled(units, done, study, pool, stop, fresh=fresh)
        return done.results(study)
    for unit in units:
        if stop():
            break
        if isinstance(unit, SingleUnit):
            with listening(unit.run) as listener:
                results = unit.work(study, done.tell, stop, fresh=fresh, listener=listener)
        else:
            results = unit.work(study, done.tell, stop, fresh=fresh)
        done.take(unit, results)
    return done.results(study)


class _Done:
    """What is done, each run told once."""

    def __init__(self, runs: Sequence[Run], tell: Tell) -> None:
        self._runs = runs
        self._tell = tell
        self._results: list[Executed | None] = [None] * len(runs)
        self._told: set[int] = set()

    def tell(self, progress: Progress) -> None:
        if progress.run in self._told:
            return
        if progress.done:
            self._told.add(progress.run)
        self._tell(progress)

    def take(self, unit: Unit, results: Sequence[Executed]) -> None:
        for number, result in zip(unit.numbers, results, strict=True):
            self._results[number] = result
            if result.outcome != "stopped":
                self.tell(Progress(number, self._runs[number].steps, done=True))

    def results(self, study: Study) -> list[Executed]:
        return [
            result or Executed(outcome="stopped", summary=run.folder(study).summary())
            for result, run in zip(self._results, self._runs, strict=True)
        ]


def _pooled(
    units: Sequence[Unit],
    done: _Done,
    study: Study,
    workers: Workers,
    stop: Stop,
    *,
    fresh: bool,
) -> None:
    rest = deque(units)
    begun: set[int] = set()  # by a process that was killed: what starts over does so once
    stopping, deaths = False, 0
    try:
        while workers.at_work or (rest and not stopping):
            workers.start(workers.at_work + len(rest))
            while rest and not stopping:
                if not workers.give(
                    rest[0], study, fresh=fresh and rest[0].numbers[0] not in begun
                ):
                    break
                rest.popleft()
            for word in workers.hear(timeout=0.1):
                if isinstance(word, Ended):
                    done.take(word.unit, word.results)
                elif isinstance(word, Progress):
                    done.tell(word)
                else:
                    deaths += 1
                    if word.unit is not None:  # it goes on from its checkpoint
                        begun.add(word.unit.numbers[0])
                        rest.appendleft(word.unit)
            if deaths >= _MOST_DEATHS:
                raise RunError(_too_many_deaths(deaths), arguments=("workers",))
            if not stopping and stop():
                stopping = True
                workers.ask_to_stop()
    except BaseException:
        workers.close()
        raise


def _too_many_deaths(deaths: int) -> str:
    return (
        f"The processes that train should come to their end. Found that {deaths} of them were killed. "
        "Run the same command again to continue, with fewer `workers` if memory is short."
    )

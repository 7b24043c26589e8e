"""Jobs in flight: sent off, brought home, and sent off again where they were lost."""

from __future__ import annotations

import contextlib
import time
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import replace
from types import TracebackType
from typing import Any

from taskmix.engine._ray._cluster import (
    import_ray,
    is_alive,
    processes_live,
    require_gpus,
    start_again,
)
from taskmix.engine._ray._sender import Job, Queue, Sender
from taskmix.engine._ray._store import Copies
from taskmix.engine._ray._work import Done
from taskmix.engine._run import Executed, Run
from taskmix.engine._units import Progress, Stop, Tell
from taskmix.errors import InputError, RecordError, RunError
from taskmix.records import RunFolder, RunSummary, Study, unpack_run

Outcome = tuple[int, Executed]

MOST_DEATHS = 3  # of workers at one run, after which it has failed
WAITS = 6  # for another process that holds a run which was ours before
MOST_RESTARTS = 3  # of our own cluster, after which the machine is to blame
STOP_SECONDS = 30.0  # for workers to end with a checkpoint where the driver goes first


class JobsInFlight:
    """One driver's call, from its first job to its last."""

    def __init__(
        self,
        runs: Iterable[Run],
        study: Study,
        sender: Sender,
        *,
        copies: Copies | None,
        tell: Tell,
        stop: Stop,
        fresh: bool,
    ) -> None:
        self._study, self._sender, self._copies, self._fresh = study, sender, copies, fresh
        self._tell, self._stop = tell, stop
        self._queue = Queue(runs, self._is_done)
        self._flying: dict[Any, Job] = {}  # by Ray's reference to the result
        self._drawn: dict[int, RunFolder] = {}  # of runs that have no result yet
        self._names: set[str] = set()  # of these folders
        # By the name of a run that has no result yet: equal ones, which will have the same.
        self._equals: dict[str, list[tuple[int, Run, RunFolder]]] = {}
        self._ready: deque[Outcome] = deque()
        self._stopping = False
        self._restarts = 0

    def results(self) -> Iterator[Outcome]:
        """Yields results until all runs have one, or until the work has stopped."""
        while True:
            self._stopping = self._stopping or self._stop()
            if not self._stopping:
                self._send_jobs()
            if self._copies is not None:
                self._ready += self._copies.made()
            idle = not self._ready
            while self._ready:
                yield self._ready.popleft()
            copying = self._copies is not None and self._copies.at_work
            over = self._stopping or self._queue.is_empty
            if over and not self._flying and not copying:
                return
            if idle:
                self._wait()

    def _send_jobs(self) -> None:
        while True:
            places = self._sender.places
            on_gpu = sum(job.on_gpu for job in self._flying.values())
            job = self._queue.next_job(
                places,
                cores=places.ahead * places.cores - (len(self._flying) - on_gpu),
                gpus=places.ahead * places.gpus - on_gpu,
            )
            if self._queue.wants_gpus:
                require_gpus(places)
            if job is None:
                return
            self._flying[self._sender.send(job, self._drawn)] = job

    def _wait(self) -> None:
        """Until a job ends, or a moment; takes what has come."""
        ray = import_ray()
        if not processes_live():
            self._start_again()
            return
        references = list(self._flying)
        if not references:
            time.sleep(0.05)  # for a copy, or for the next attempt of a run
            return
        ready, _ = ray.wait(references, timeout=0.1)
        if ready:
            ready, _ = ray.wait(references, num_returns=len(references), timeout=0)
        self._hear(now=False)
        for reference in ready:
            job = self._flying.pop(reference, None)
            if job is None:  # lost with its cluster, a moment ago
                continue
            try:
                done = ray.get(reference)
            except ray.exceptions.RayError as error:
                self._lost(job, error)
            else:
                self._take_all(job, done)
        if self._sender.should_look:
            if not is_alive():
                self._start_again()
            self._sender.look()

    def _hear(self, *, now: bool) -> None:
        told, files = self._sender.ear.hear(stop=self._stopping, now=now)
        for number, record in files.items():
            if number in self._drawn:
                unpack_run(self._drawn[number], record)
        for progress in told:
            if progress.run in self._drawn and not progress.done:
                self._tell(progress)

    def _take_all(self, job: Job, results: list[Done]) -> None:
        if any(done.sent for done in results):
            self._hear(now=True)
        again: list[int] = []
        crashed: dict[int, str] = {}
        for done in results:
            if done.input_error is not None:
                raise InputError(done.input_error)
            if done.crash is not None:
                crashed[done.number] = done.crash
            elif not self._take(job, done):
                again.append(done.number)
        begun = {done.number for done in results}
        again += [number for number in job.numbers if number not in begun]
        if again and not self._stopping:
            self._queue.put_back(job.only(again).later())
        if crashed:
            self._died(job.only(crashed), next(iter(crashed.values())))

    def _take(self, job: Job, done: Done) -> bool:
        """Takes the result of a run; False where it has to be asked for again."""
        number, executed = done.number, done.executed
        assert executed is not None
        outcome = executed.outcome
        held = outcome == "busy" and 0 < job.attempt < WAITS  # by a worker of ours that lost touch
        lost_touch = outcome == "stopped" and not self._stopping
        undelivered = done.sent and outcome == "finished" and not self._drawn[number].is_finished
        if held or lost_touch or undelivered:
            return False
        if outcome == "finished" and not job.on_gpu:
            self._queue.took(done.seconds)
        if outcome == "already finished" and job.attempt:  # by the attempt before
            executed = replace(executed, outcome="finished")
        self._settle(number, job.run_of(number), executed)
        return True

    def _settle(self, number: int, run: Run, executed: Executed) -> None:
        folder = self._drawn.pop(number)
        self._names.discard(folder.name)
        if executed.summary is not None:
            folder.keep_label()
        if executed.outcome != "stopped":
            self._tell(Progress(number, run.steps, done=True))
        if self._copies is not None and executed.outcome in ("finished", "already finished"):
            self._copies.make(folder, (number, executed))
        else:
            self._ready.append((number, executed))
        for other, equal, theirs in self._equals.pop(folder.name, ()):
            self._drawn[other] = theirs
            self._settle(other, equal, executed.for_equal(theirs))

    def _lost(self, job: Job, error: Exception) -> None:
        """A worker is dead; what it had finished is in the study, and the rest goes on elsewhere."""
        if not is_alive():
            self._queue.put_back(job.later())
            self._start_again()
            return
        self._hear(now=True)
        rest = []
        for number in job.numbers:
            summary = self._summary(number)
            if summary is not None and summary.status == "finished":
                executed = Executed(outcome="finished", summary=summary)
                self._settle(number, job.run_of(number), executed)
            else:
                rest.append(number)
        if rest and not self._stopping:
            words = " ".join(str(error).split())[:300]
            self._died(job.only(rest), f"{type(error).__name__}: {words}")

    def _died(self, job: Job, words: str) -> None:
        """Another attempt for what a dead worker left, unless there were enough."""
        again = job.later(died=True)
        if again.deaths < MOST_DEATHS:
            self._queue.put_back(again)
            return
        for number, run in zip(job.numbers, job.runs, strict=True):
            error = (
                f"The worker of run `{run.label}` with seed {run.seed} should have come to its end. "
                f"Found that it failed {MOST_DEATHS} times, last with: {words}."
            )
            summary = self._summary(number)
            self._settle(number, run, Executed(outcome="failed", summary=summary, error=error))

    def _start_again(self) -> None:
        """Our own cluster, after its death; one that is not ours is its owner's to mend."""
        self._stopping = self._stopping or self._stop()
        if self._stopping:  # a signal to all processes ended it too
            self._flying.clear()
            return
        self._restarts += 1
        lost = list(self._flying.values())
        self._flying.clear()
        if self._restarts > MOST_RESTARTS or not start_again():
            raise RunError(
                "The Ray cluster should stay up for as long as there are runs. Found it lost. "
                "Run the same command again to go on: every finished run is kept."
            )
        for job in lost:
            self._queue.put_back(job.later())
        self._sender.begin()

    def _is_done(self, number: int, run: Run) -> bool:
        """Whether a run needs no worker; one that starts over is emptied here, once."""
        folder = run.folder(self._study)
        if folder.name in self._names:
            self._equals.setdefault(folder.name, []).append((number, run, folder))
            return True
        self._drawn[number] = folder
        executed = None
        if self._fresh:
            with folder.claim(fresh=True) as claim:
                if claim.writer is None:
                    executed = Executed(outcome="busy", summary=folder.summary())
        elif folder.is_finished or (self._copies is not None and self._copies.fetch(folder)):
            summary = self._drawn[number].summary()
            executed = Executed(outcome="already finished", summary=summary)
        if executed is None:
            self._names.add(folder.name)
            return False
        self._settle(number, run, executed)
        return True

    def _summary(self, number: int) -> RunSummary | None:
        try:
            return self._drawn[number].summary()
        except RecordError:  # whoever claims the run sees to it
            return None

    def __enter__(self) -> JobsInFlight:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        ray = import_ray()
        self._stopping = True
        with contextlib.suppress(ray.exceptions.RayError, RecordError):
            if self._flying and kind is not KeyboardInterrupt:
                self._hear(now=True)
                ray.wait(list(self._flying), num_returns=len(self._flying), timeout=STOP_SECONDS)
                self._hear(now=True)
        with contextlib.suppress(ray.exceptions.RayError):
            for reference in self._flying:
                ray.cancel(reference, force=True)
            self._sender.close()
        if self._copies is not None:
            self._copies.close()

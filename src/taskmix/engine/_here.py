"""Many runs on this machine: one process a core, one torch thread a process.

On few cores that beats threads within a run by far; a process that dies takes no finished run with
it, and its unfinished one goes on from its last checkpoint.
"""

from __future__ import annotations

import os
import queue
import signal
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

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


def run_all(
    runs: Sequence[Run],
    study: Study,
    *,
    workers: int | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    should_stop: Callable[[], bool] | None = None,
    fresh: bool = False,
) -> list[Executed]:
    """Executes every run that the study does not hold already; the results in the order asked.

    `fresh` starts them all over.
    A run that fails is told in its result and does not stop the others. What the user must mend (an
    `InputError`) stops all: it would come again with the next run.
    """
    workers = min(workers or os.cpu_count() or 1, max(len(runs), 1))
    results: list[Executed | None] = [None] * len(runs)
    if workers == 1:
        for number, run in enumerate(runs):
            if should_stop is not None and should_stop():
                break
            results[number] = _guarded(number, run, study, on_progress, should_stop, fresh=fresh)
        return [result or _not_begun(run, study) for result, run in zip(results, runs, strict=True)]
    for _ in range(_RESTARTS):
        open_runs = [number for number, result in enumerate(results) if result is None]
        try:
            _pooled(runs, open_runs, results, study, workers, on_progress, should_stop, fresh=fresh)
            break
        except BrokenProcessPool:
            fresh = False
            continue  # a worker was killed; what it held goes on from its checkpoint
    return [result or _not_begun(run, study) for result, run in zip(results, runs, strict=True)]


def _pooled(
    runs: Sequence[Run],
    open_runs: Sequence[int],
    results: list[Executed | None],
    study: Study,
    workers: int,
    on_progress: Callable[[Progress], None] | None,
    should_stop: Callable[[], bool] | None,
    *,
    fresh: bool,
) -> None:
    context = get_context("spawn")
    told: Any = context.Queue()
    stop: Any = context.Event()
    with ProcessPoolExecutor(
        workers, mp_context=context, initializer=_begin_worker, initargs=(told, stop)
    ) as pool:
        waiting: dict[Future[Executed], int] = {
            pool.submit(_in_worker, number, runs[number], study.path, fresh): number
            for number in open_runs
        }
        try:
            while waiting:
                done, _ = wait(waiting, timeout=0.1, return_when=FIRST_COMPLETED)
                _drain(told, on_progress)
                for future in done:
                    number = waiting.pop(future)
                    results[number] = future.result()
                    if on_progress is not None:
                        on_progress(Progress(number, runs[number].steps, done=True))
                if should_stop is not None and should_stop() and not stop.is_set():
                    stop.set()
                    for future in list(waiting):
                        if future.cancel():
                            del waiting[future]
        except BaseException:
            stop.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _drain(told: Any, on_progress: Callable[[Progress], None] | None) -> None:
    while True:
        try:
            progress = told.get_nowait()
        except queue.Empty:
            return
        if on_progress is not None:
            on_progress(progress)


_told: Any = None
_stop: Any = None


def _begin_worker(told: Any, stop: Any) -> None:
    global _told, _stop
    import torch

    torch.set_num_threads(1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent says when to stop
    _told, _stop = told, stop


def _in_worker(number: int, run: Run, path: Path, fresh: bool) -> Executed:
    return _guarded(number, run, Study(path), _told.put, _stop.is_set, fresh=fresh)


def _guarded(
    number: int,
    run: Run,
    study: Study,
    on_progress: Callable[[Progress], None] | None,
    should_stop: Callable[[], bool] | None,
    *,
    fresh: bool,
) -> Executed:
    last_told = 0.0

    def tell(event: Event) -> None:
        nonlocal last_told
        now = time.monotonic()
        if isinstance(event, StepEvent) and now - last_told > _TELL_EVERY and on_progress:
            last_told = now
            on_progress(Progress(number, event.step))

    try:
        return execute(run, study, listener=tell, should_stop=should_stop, fresh=fresh)
    except InputError:
        raise
    except TaskmixError as error:
        summary = study.run(run.specification()).summary()
        return Executed(outcome="failed", summary=summary, error=str(error))


def _not_begun(run: Run, study: Study) -> Executed:
    return Executed(outcome="stopped", summary=study.run(run.specification()).summary())

"""Processes that execute units of work: they start once and stay for as many calls as there are.

Starting one takes seconds (it imports torch, reads the tasks and encodes them), so a command that
executes runs in several rounds keeps one `Workers` throughout.
"""

from __future__ import annotations

import os
import queue
import signal
import threading
import warnings
from concurrent.futures import Future, ProcessPoolExecutor
from multiprocessing import get_context, parent_process
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from taskmix.errors import OptionError, TaskmixWarning
from taskmix.records import Study

if TYPE_CHECKING:
    from taskmix.engine._run import Executed
    from taskmix.engine._units import Progress, Unit


def count_workers(count: int | None) -> int:
    """How many processes may be at work: as many as were asked for, else one a core."""
    if count is not None and count < 1:
        raise OptionError(f"`workers` should be 1 or more. Found {count}. None is one a core.")
    return (os.cpu_count() or 1) if count is None else count


class Workers:
    """Up to `count` processes, one a core where nothing is said; none before they are needed."""

    def __init__(self, count: int | None = None) -> None:
        self.count = count_workers(count)
        self._pool: ProcessPoolExecutor | None = None
        self._told: Any = None
        self._stop: Any = None
        self._call = 0  # words of an earlier call may still be on their way

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def begin(self) -> None:
        """A new call: everything that is told from now on belongs to it."""
        self._call += 1
        if self._pool is None:
            context = get_context("spawn")
            self._told, self._stop = context.Queue(), context.Event()
            self._pool = ProcessPoolExecutor(
                self.count,
                mp_context=context,
                initializer=_begin_worker,
                initargs=(self._told, self._stop),
            )
        self._stop.clear()

    def submit(self, unit: Unit, study: Study, *, fresh: bool) -> Future[list[Executed]]:
        assert self._pool is not None
        return self._pool.submit(_in_worker, unit, study, fresh, self._call)

    def told(self) -> list[Progress]:
        """What units of this call have said since they were asked last."""
        found: list[Progress] = []
        while True:
            try:
                call, progress = self._told.get_nowait()
            except queue.Empty:
                return found
            if call is None:  # from any of them, as if it had come up here
                warnings.warn(progress, TaskmixWarning, stacklevel=2)
            elif call == self._call:
                found.append(progress)

    def ask_to_stop(self) -> None:
        """Units at work end with a checkpoint."""
        if self._stop is not None:
            self._stop.set()

    def close(self) -> None:
        """Ends the processes; a later call starts new ones."""
        pool, self._pool = self._pool, None
        if pool is not None:
            self.ask_to_stop()
            pool.shutdown(wait=True, cancel_futures=True)
            self._told.close()


_told: Any = None
_stop: Any = None


def _begin_worker(told: Any, stop: Any) -> None:
    global _told, _stop
    import torch

    torch.set_num_threads(1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent says when to stop
    threading.Thread(target=_end_with_the_parent, daemon=True).start()
    _told, _stop = told, stop
    _tell_warnings()


def _tell_warnings() -> None:
    """Lets the parent say what is ours: once, and in its own manner."""
    show = warnings.showwarning

    def tell(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
        if issubclass(category, TaskmixWarning):
            _told.put((None, str(message)))
        else:
            show(message, category, *place, **more)

    warnings.showwarning = tell


def _end_with_the_parent() -> None:
    """A parent that is killed stops nobody: its workers would go on, and then wait for ever."""
    parent = parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)  # as if killed too: every run goes on from its last checkpoint


def _in_worker(unit: Unit, study: Study, fresh: bool, call: int) -> list[Executed]:
    def tell(progress: Progress) -> None:
        _told.put((call, progress))

    return unit.work(study, tell, _stop.is_set, fresh=fresh)

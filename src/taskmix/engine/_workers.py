"""Processes that execute units of work: they start once and stay for as many calls as there are.

Starting one takes seconds (it imports torch, reads the tasks and encodes them), so a command that
executes runs in several rounds keeps one `Workers` throughout.

A pipe to each process carries everything: units and the wish to stop to it, word of its progress and
results back. Pipes leave nothing behind when a process is killed, at whichever moment; queues and
events of `multiprocessing` would leave semaphores. Processes are deaf to Ctrl-C and SIGTERM from their
first moment on, which would otherwise end them with a traceback each: this process says when to stop.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
import warnings
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context, resource_tracker
from multiprocessing.connection import wait
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from taskmix.engine._worker import READY, STOP, Failed, Warned, serve
from taskmix.errors import OptionError, TaskmixWarning
from taskmix.records import Study

if TYPE_CHECKING:
    from taskmix.engine._run import Executed
    from taskmix.engine._units import Progress, Unit

CHECKPOINT_SECONDS = 1.0  # for runs that are broken off: Ctrl-C waits for so long
END_SECONDS = 1.0  # for the kernel to end a killed process


@dataclass(frozen=True)
class Ended:
    """A unit is done."""

    unit: Unit
    results: list[Executed]


@dataclass(frozen=True)
class Died:
    """A process is dead, and left a unit behind if it had one."""

    unit: Unit | None


def count_workers(count: int | None) -> int:
    """How many processes may be at work: as many as were asked for, else one a core."""
    if count is not None and count < 1:
        raise OptionError(f"`workers` should be 1 or more. Found {count}. None is one a core.")
    return (os.cpu_count() or 1) if count is None else count


class Workers:
    """Up to `count` processes, one a core where nothing is said; none before they are needed.

    >>> with Workers(4) as workers:
    ...     executor = Here(workers=workers)  # for as many calls as there are
    ...     executor.at_once, workers.at_work
    (4, 0)
    """

    def __init__(self, count: int | None = None) -> None:
        self.count = count_workers(count)
        self._processes: list[_Process] = []
        # Who never closes them should not wait for them either, when the interpreter ends.
        self._kill = weakref.finalize(self, _kill, self._processes)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def at_work(self) -> int:
        """How many units have been given out and have not ended."""
        return sum(process.unit is not None for process in self._processes)

    def start(self, wanted: int) -> None:
        """Starts processes until there are so many, or `count`."""
        while len(self._processes) < min(wanted, self.count):
            taken = {process.number for process in self._processes}
            self._processes.append(_Process(min(set(range(self.count)) - taken)))

    def give(self, unit: Unit, study: Study, *, fresh: bool) -> bool:
        """Gives a unit to a process that has none; False where there is no such process."""
        for process in self._processes:
            if process.is_ready and process.unit is None:
                process.give(unit, study, fresh=fresh)
                return True
        return False

    def hear(self, timeout: float) -> Iterator[Progress | Ended | Died]:
        """What processes say within so many seconds, once one of them has said something."""
        by_connection = {process.connection: process for process in self._processes}
        for connection in wait(list(by_connection), timeout):
            process = by_connection[connection]  # type: ignore[index]
            word = process.hear()
            if isinstance(word, Died):
                self._processes.remove(process)
                _kill([process])
            if word is not None:
                yield word

    def ask_to_stop(self) -> None:
        """Units at work end with a checkpoint."""
        for process in self._processes:
            process.ask_to_stop()

    def close(self) -> None:
        """Ends the processes, after a moment for checkpoints; a later call starts new ones."""
        deadline = time.monotonic() + CHECKPOINT_SECONDS
        try:
            self.ask_to_stop()
            while self.at_work and (left := deadline - time.monotonic()) > 0:
                with contextlib.suppress(Exception):  # nobody waits for it any more
                    for _ in self.hear(left):
                        pass
        finally:
            _kill(self._processes)


class _Process:
    """One process, from this side."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.is_ready = False
        self.unit: Unit | None = None
        context = get_context("spawn")
        self.connection, other = context.Pipe()
        try:
            with _deaf_children():
                self._process = context.Process(target=serve, args=(other, number))
                self._process.start()
        except BaseException:
            self.connection.close()  # by which a process that has started knows
            raise
        finally:
            other.close()

    def give(self, unit: Unit, study: Study, *, fresh: bool) -> None:
        self.unit = unit
        self._send((unit, study, fresh))

    def ask_to_stop(self) -> None:
        if self.unit is not None:
            self._send(STOP)

    def _send(self, words: Any) -> None:
        try:
            self.connection.send(words)
        except OSError:  # it is dead, which is heard as soon as somebody listens
            return

    def hear(self) -> Progress | Ended | Died | None:
        try:
            word = self.connection.recv()
        except (EOFError, OSError):
            return Died(self.unit)
        if word == READY:
            self.is_ready = True
            return None
        if isinstance(word, list):
            unit, self.unit = self.unit, None
            assert unit is not None
            return Ended(unit, word)
        if isinstance(word, Warned):  # as if it had come up here
            warnings.warn(word.message, TaskmixWarning, stacklevel=2)
            return None
        if isinstance(word, Failed):
            self.unit = None
            raise word.error
        progress: Progress = word
        return progress

    def kill(self) -> None:
        self.connection.close()
        self._process.kill()

    def join(self) -> None:
        self._process.join(END_SECONDS)


def _kill(processes: list[_Process]) -> None:
    ending, processes[:] = processes[:], []
    for process in ending:
        process.kill()
    for process in ending:
        process.join()


@contextmanager
def _deaf_children() -> Iterator[None]:
    """Processes that start in the block do not hear Ctrl-C and SIGTERM; this one does, afterwards.

    A mask is inherited. What is ignored would be as well, but a signal that came meanwhile be lost.
    """
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    resource_tracker.ensure_running()  # its start lifts the mask
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _NUMBERS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


_NUMBERS = (signal.SIGINT, signal.SIGTERM)

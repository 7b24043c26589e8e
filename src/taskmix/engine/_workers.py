"""Processes that execute units of work: they start once and stay for as many calls as there are.

Starting one takes seconds (it imports torch, reads the tasks and encodes them), so a command that
executes runs in several rounds keeps one `Workers` throughout.

A pipe to each process carries everything: units and the wish to stop to it, word of its progress and
results back. Pipes leave nothing behind when a process is killed, at whichever moment; queues and
events of `multiprocessing` would leave semaphores. Processes are deaf to Ctrl-C and SIGTERM from their
first moment on, which would otherwise end them with a traceback each: this process says when to stop.

A worker process (`serve`) waits for units, executes them, and says how far they are.
"""

from __future__ import annotations

import contextlib
import copy
import os
import queue
import signal
import threading
import time
import traceback
import warnings
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context, parent_process, resource_tracker
from multiprocessing.connection import Connection, wait
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn, Self

from taskmix.errors import InputError, OptionError, RunError, TaskmixWarning
from taskmix.records import Study

if TYPE_CHECKING:
    from taskmix.engine._run import Executed
    from taskmix.engine._units import Progress, Unit


READY = "ready"  # the first word of a process
STOP = "stop"  # to a process whose unit should end with a checkpoint


@dataclass(frozen=True)
class Failed:
    """What a unit ended with."""

    error: Exception


@dataclass(frozen=True)
class Warned:
    """A note of ours, which the parent says in its own manner."""

    message: str


def serve(connection: Connection[Any, Any], number: int) -> None:
    """Executes what comes through the pipe until it is closed, or until the parent is gone.

    `number` tells the processes apart: of several GPUs each has its own.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    if hasattr(signal, "pthread_sigmask"):  # the mask that it was started with
        signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGINT, signal.SIGTERM))
    stop = threading.Event()
    units: queue.SimpleQueue[Any] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(connection, units, stop), daemon=True).start()
    import torch

    torch.set_num_threads(1)
    gpus = torch.cuda.device_count()
    if gpus > 1:
        torch.cuda.set_device(number % gpus)
    speaking = threading.Lock()

    def say(word: Any) -> None:
        with speaking:
            try:
                connection.send(word)
            except OSError:  # the parent is gone, which the listener has not heard yet
                _leave()

    _send_warnings(say)
    say(READY)
    while True:
        say(_executed(units.get(), say, stop))


def _send_warnings(say: Callable[[Any], None]) -> None:
    show = warnings.showwarning

    def tell(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
        if issubclass(category, TaskmixWarning):
            say(Warned(str(message)))
        else:
            show(message, category, *place, **more)

    warnings.showwarning = tell


def _executed(asked: Any, tell: Any, stop: threading.Event) -> Any:
    if isinstance(asked, Exception):
        return Failed(_portable(asked))
    unit: Unit = asked[0]
    try:
        return unit.work(asked[1], tell, stop.is_set, fresh=asked[2])
    except Exception as error:
        return Failed(_portable(error))


def _listen(
    connection: Connection[Any, Any], units: queue.SimpleQueue[Any], stop: threading.Event
) -> None:
    """Takes what comes. A parent that is killed stops nobody: its workers would go on, and then wait
    for ever."""
    parent = parent_process()
    assert parent is not None
    while True:
        ready = wait([connection, parent.sentinel])
        try:
            if parent.sentinel in ready:
                raise EOFError
            word = connection.recv()
        except (EOFError, OSError):
            _leave()
        except Exception as error:  # it cannot be unpickled here
            word = error
        if word == STOP:
            stop.set()
        else:
            stop.clear()
            units.put(word)


def _leave() -> NoReturn:
    os._exit(1)  # as if killed too: every run goes on from its last checkpoint


def _portable(error: Exception) -> Exception:
    """The error with where it came from, or its words where it cannot travel."""
    where = "".join(traceback.format_exception(error))
    try:
        copied = copy.copy(error)
    except Exception:  # its class asks for more than its words
        copied = InputError(str(error)) if isinstance(error, InputError) else RunError(str(error))
    copied.add_note(f"In a worker process:\n{where}")
    return copied


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

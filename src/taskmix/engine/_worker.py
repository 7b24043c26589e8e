"""What a worker process does: it waits for units, executes them, and says how far they are."""

from __future__ import annotations

import copy
import os
import queue
import signal
import threading
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing import parent_process
from multiprocessing.connection import Connection, wait
from typing import TYPE_CHECKING, Any, NoReturn

from taskmix.errors import InputError, RunError, TaskmixWarning

if TYPE_CHECKING:
    from taskmix.engine._units import Unit

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

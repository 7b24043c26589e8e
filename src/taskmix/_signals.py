"""Ctrl-C and SIGTERM for the command line: one sentence, exit code 130, and nobody left behind.

Python runs a signal's handler between two steps of the main thread, which may be seconds away: in
the import of a library, in one call of a matrix product. The C half of it writes the signal's number
into a pipe at once, though, and a thread of ours reads it there. Where nothing is at work that would
be worth a checkpoint, the thread ends the program. Within `grace` it says that a stop is asked for,
and ends the program after `GRACE` seconds, or with the second signal.

Ending means: every process that we started is killed, and this one leaves without a farewell to
threads and libraries. What is on the disk is whole at every moment, so nothing is lost by that.

Only the program (`_program.py`) listens; who imports taskmix keeps Python's own way with signals.
This module is imported before anything else, so it imports next to nothing itself.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # `signal` itself takes milliseconds to import
import _thread
import atexit
import os
import sys

# Done by hand, as `contextlib` and `typing` take longer to import than Python itself.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

STOPPED = 130  # the exit code; 128 + SIGINT, as of shells
GRACE = 1.0  # seconds for a checkpoint; all have to be gone two seconds after the signal
CONTINUE = "taskmix: stopped. Run the same command again to continue."
BEGIN_ANEW = "taskmix: stopped. Nothing is kept: the same command begins anew."
WATCHED = "taskmix: stopped watching. The study is as it was."
# Commands that write once, at their end, or nothing; the word behind some of them says so.
KEEP_NOTHING = {"check", "improve", "laws", "mix", "plan", "predict", "report", "transfer --new"}
KEEP_NOTHING |= {f"sequences {word}" for word in ("adapt", "next", "sample", "score")}

_NUMBERS = (_signal.SIGINT, _signal.SIGTERM)


class Stopped(BaseException):
    """The user asked for a stop, and the work has come to one."""


class _State:
    """What the thread and the program tell each other."""

    asked = False  # for a stop
    working = 0  # blocks of `grace` that the program is in, in all its threads
    patient = False  # a second signal means nothing
    code: int | None = None  # to leave with


_ending = _thread.allocate_lock()
_counting = _thread.allocate_lock()  # threads write files too


def listen() -> None:
    """From now on a signal stops the program. Only the main thread may call it."""
    ear, mouth = os.pipe()
    os.set_blocking(mouth, False)
    _signal.set_wakeup_fd(mouth, warn_on_full_buffer=False)
    for number in _NUMBERS:
        _signal.signal(number, _heard)
    _thread.start_new_thread(_wait, (ear,))
    if hasattr(_signal, "pthread_sigmask"):
        _signal.pthread_sigmask(_signal.SIG_UNBLOCK, _NUMBERS)
    atexit.register(_leave)  # the first to be registered is the last to be called


def asked() -> bool:
    """Whether the user has asked for a stop."""
    return _State.asked


class grace:  # noqa: N801 - used like a function
    """A block whose work stops by itself when `asked()` says so, or takes a moment; then `Stopped`
    follows.

    Blocks may lie in each other, and the outermost ends the work. Where it is `patient` a second
    signal does not end the program: a launcher sends its own after the user's.
    """

    def __init__(self, *, patient: bool = False) -> None:
        self._patient = patient

    def __enter__(self) -> None:
        with _counting:
            _State.patient = _State.patient or self._patient
            _State.working += 1

    def __exit__(self, *error: object) -> None:
        with _counting:
            _State.working -= 1
            is_outermost = not _State.working
        if _State.asked and is_outermost:
            raise Stopped


def end() -> NoReturn:
    """Kills what we started, says the sentence and leaves; from whichever thread comes first."""
    if not _ending.acquire(blocking=False):
        while True:  # the other thread is about to end the process
            _sleep(1.0)
    try:
        _kill(_descendants())
        _say(_sentence(sys.argv[1:]))
    finally:
        os._exit(STOPPED)


def leave_with(code: int) -> None:
    """Says what the program's exit code is going to be, now that all is done."""
    _State.code = code


def _leave() -> None:
    """The last function that is called when all is done.

    Python would take itself and its libraries down now, in up to some seconds in which nobody listens
    to signals. Nothing is gained by that, and a signal could still spoil the exit code.
    """
    for number in _NUMBERS:
        _signal.signal(number, _signal.SIG_IGN)
    if _State.code is not None:
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        except (OSError, ValueError):
            return  # nobody reads it any more: Python has its own way to say so
        os._exit(_State.code)


def _heard(number: int, frame: object) -> None:
    """The thread hears of it; this only keeps the signal from ending the process."""


def _wait(ear: int) -> None:
    while os.read(ear, 1)[0] not in _NUMBERS:
        pass  # a signal that somebody else handles
    _State.asked = True
    if _State.working:
        # What the main thread does until then may be torn off at any place: not a word of that.
        sys.unraisablehook = lambda unraisable: None
        _second_signal(ear, GRACE)
    end()


def _second_signal(ear: int, seconds: float) -> None:
    """Waits for it, at most so long."""
    import select

    if _State.patient:
        _sleep(seconds)
    else:
        select.select([ear], [], [], seconds)


def _sleep(seconds: float) -> None:
    import time

    time.sleep(seconds)


def _sentence(words: list[str]) -> str:
    command, *more = words or [""]
    if command == "report" and "--live" in more:
        return WATCHED
    named = more if command == "transfer" else more[:1]  # an option may stand anywhere
    asked = {command, *(f"{command} {word.partition('=')[0]}" for word in named)}
    return BEGIN_ANEW if asked & KEEP_NOTHING else CONTINUE


def _say(sentence: str) -> None:
    """On standard error, unless another process of the same model says it, or nobody would take it."""
    import select

    if os.environ.get("RANK", "0") != "0":
        return
    # A bar on a terminal has hidden the cursor, and stands in the middle of a line.
    begin = "\n\x1b[?25h" if os.isatty(2) else ""
    if select.select([], [2], [], 0.2)[1]:
        os.write(2, f"{begin}{sentence}\n".encode())


def _descendants() -> list[int]:
    """The processes that came of this one, parents before their children; none where none are told."""
    children: dict[int, list[int]] = {}
    try:
        names = os.listdir("/proc")  # noqa: PTH208 - `pathlib` is not imported yet
    except OSError:
        return []  # no Linux: workers notice by themselves that this process is gone
    for name in names:
        if name.isdecimal():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:  # noqa: PTH123
                    # The name of a program may have spaces and brackets in it.
                    parent = int(file.read().rpartition(b")")[2].split()[1])
            except OSError:
                continue  # gone meanwhile
            children.setdefault(parent, []).append(int(name))
    found = [os.getpid()]
    for process in found:  # which grows on the way
        found += children.get(process, ())
    return found[1:]


def _kill(processes: list[int]) -> None:
    for process in processes:
        try:
            os.kill(process, _signal.SIGKILL)
        except OSError:
            continue  # gone meanwhile

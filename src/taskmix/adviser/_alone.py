"""One adviser at a time on a study.

Its runs follow from each other and its ledger says what was decided, so two of them would stand in
each other's way: who comes second is told so before it has trained anything.
"""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from taskmix.errors import InputError, RecordError, RunError
from taskmix.files import delete, holding, make_folder, read_note

LOCK = ".advise.lock"  # in the study; the kernel releases it with the process


@contextmanager
def advising_alone(study: Path) -> Iterator[None]:
    """Holds the study for the block; raises at once where another process advises on it.

    >>> from pathlib import Path
    >>> with advising_alone(Path("study")), advising_alone(Path("study")):
    ...     pass
    Traceback (most recent call last):
    taskmix.errors.RunError: One `advise` at a time should work on `study`. Found that process ...
    """
    is_new, lock = not study.exists(), study / LOCK
    make_folder(study)
    with holding(lock, note=_who()) as held:
        if not held:
            raise RunError(
                f"One `advise` at a time should work on `{study}`. Found that "
                f"{read_note(lock) or 'another process'} is at it. Wait for it, or choose another "
                "`out`.",
                arguments=("out",),
            )
        try:
            yield
        except InputError:
            if is_new:  # nothing was done, so nothing is left behind
                with contextlib.suppress(RecordError):
                    delete(study, is_ours=lambda path: path == lock)
            raise


def _who() -> str:
    since = datetime.now().astimezone().strftime("%Y-%m-%d %H:%M:%S")
    return f"process {os.getpid()} on {socket.gethostname()}, since {since},"

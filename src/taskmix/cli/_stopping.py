"""Ctrl-C and SIGTERM ask for a clean stop: finish the step, write a checkpoint, say how to go on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from taskmix import _signals


@contextmanager
def clean_stop(*, patient: bool = False) -> Iterator[Callable[[], bool]]:
    """Gives a function that tells whether to stop; who has been asked to does not leave the block.

    Whatever is at work has a little more than a second for a checkpoint; then the program ends, with
    the sentence and the exit code of a stop. A second signal ends it at once, unless it is `patient`:
    a launcher sends its own signal after the user's.
    """
    with _signals.grace(patient=patient):
        yield _signals.asked

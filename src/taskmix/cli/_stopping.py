"""Ctrl-C and SIGTERM ask for a clean stop: finish the step, write a checkpoint, say how to go on."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def clean_stop(*, patient: bool = False) -> Iterator[Callable[[], bool]]:
    """Gives a function that tells whether to stop; a second signal interrupts at once.

    Not so where it is `patient`: a launcher sends its signal after the user's, and kills at last.
    """
    asked = False

    def handle(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        if asked and not patient:
            raise KeyboardInterrupt
        asked = True

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

"""What may be spent: seconds of this device, or batches, which are worth the same on every machine."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from taskmix.errors import OptionError

_SECONDS_PER_UNIT = {"s": 1.0, "m": 60.0, "h": 3600.0}
END_SHARE, END_SECONDS = 0.02, 4.0  # of the time, for what comes after the last run: model and page
OVERRUN_SHARE = 0.03  # of the time, by which runs may be late before they are stopped


@dataclass(frozen=True, kw_only=True)
class Budget:
    """Seconds, or batches of the model; one of the two.

    >>> Budget.parse("1.5h").seconds, Budget.parse("2000-steps").batches
    (5400.0, 2000)
    """

    seconds: float | None = None
    batches: int | None = None

    def __post_init__(self) -> None:
        given = [value for value in (self.seconds, self.batches) if value is not None]
        if len(given) != 1 or not given[0] > 0:
            raise OptionError(
                "A budget should be a positive number of seconds or of steps, one of the two. Found "
                f"{self.seconds} seconds and {self.batches} steps."
            )

    @classmethod
    def parse(cls, words: str | float) -> Budget:
        """`90s`, `30m`, `1.5h` or `2000-steps`; a number is seconds."""
        if (seconds := _seconds(words)) is not None:
            return cls(seconds=seconds)
        words = str(words)
        steps = re.fullmatch(r"([0-9]{1,12})-steps", words.strip())
        time = re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)([smh])", words.strip())
        if steps is not None and int(steps[1]):
            return cls(batches=int(steps[1]))
        if time is not None and float(time[1]):
            return cls(seconds=float(time[1]) * _SECONDS_PER_UNIT[time[2]])
        raise OptionError(
            "A budget should be a time such as 90s, 30m or 1.5h, or a number of steps such as "
            f"2000-steps. Found {words!r}."
        )


def _seconds(given: str | float) -> float | None:
    """A positive number that is no text; None for anything else, which has to be read."""
    if isinstance(given, str | bool) or not isinstance(given, int | float):
        return None
    return float(given) if 0 < given < math.inf else None


def parse_time(words: str | float | None) -> float | None:
    """Seconds of `90s`, `30m` or `1.5h`; a number is seconds.

    >>> parse_time("1.5h"), parse_time(90), parse_time(None)
    (5400.0, 90.0, None)
    """
    if words is None:
        return None
    if (seconds := _seconds(words)) is not None:
        return seconds
    words = str(words)
    time = re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)([smh])", words.strip())
    if time is None or not float(time[1]):
        raise OptionError(
            f"A time should be such as 90s, 30m or 1.5h. Found {words!r}.",
            arguments=("train_time",),
        )
    return float(time[1]) * _SECONDS_PER_UNIT[time[2]]


def typed_time(seconds: float) -> str:
    """A time as one types it for a budget: 90s, 12m, 3h; rounded up.

    >>> [typed_time(seconds) for seconds in (89.2, 700, 10_801)]
    ['90s', '12m', '4h']
    """
    if seconds <= 180:
        return f"{math.ceil(seconds)}s"
    return f"{math.ceil(seconds / 60)}m" if seconds <= 3 * 3600 else f"{math.ceil(seconds / 3600)}h"


@dataclass(kw_only=True)
class Timer:
    """The clock of a budget in seconds, over all sessions; one without seconds never ends.

    The last part of the time is kept for what comes after the runs: the answer, the model, the page.
    """

    seconds: float | None = None
    before: float = 0.0  # used by earlier sessions
    begin: float = field(default_factory=time.monotonic)
    now: Callable[[], float] = time.monotonic

    def used(self) -> float:
        return self.before + self.now() - self.begin

    def rest(self) -> float:
        """Of all the time."""
        return math.inf if self.seconds is None else self.seconds - self.used()

    def left(self) -> float:
        """For runs."""
        if self.seconds is None:
            return math.inf
        return self.seconds * (1 - END_SHARE) - END_SECONDS - self.used()

    def is_over(self) -> bool:
        """Whether work should stop: it took longer than anyone could foresee."""
        return self.seconds is not None and self.left() < -OVERRUN_SHARE * self.seconds

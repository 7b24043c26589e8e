"""What may be spent, and what things cost.

A budget of steps is worth the same on every machine, and nothing measured decides what is done with
it. Of a budget of seconds, prices that are measured once say how long a run can be, and the clock
says how many there are; whatever the clock decides is kept in the study (`_ledger.py`), so that
an adviser that was stopped decides the same again.
"""

from __future__ import annotations

import heapq
import math
import re
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from taskmix.errors import OptionError

_SECONDS_PER_UNIT = {"s": 1.0, "m": 60.0, "h": 3600.0}
# Of a probe's batch, in batches of the model, where nothing is measured: it says how many probes a
# budget of steps pays for, so a change makes other runs of the same budget.
PROBE_PRICE = 0.1
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


@dataclass(frozen=True, kw_only=True)
class Prices:
    """Seconds that things take one process while all `workers` of them are at work."""

    batch: float
    probe: float | None = None  # a batch of the probe, with all of its run, where it is known apart
    start: float = 0.0  # a run, without steps and rows
    row: float = 0.0  # one that is evaluated
    once: float = 0.0  # in each process, before the first run: encoding the rows
    members: int = 1  # models trained in one batch
    workers: int = 1

    def __post_init__(self) -> None:
        fine = self.batch > 0 and min(self.start, self.row, self.once) >= 0
        if not fine or not (self.probe is None or self.probe > 0) or self.workers < 1:
            raise OptionError(f"Prices should be positive, and workers at least 1. Found {self}.")


@dataclass(frozen=True, kw_only=True)
class PricedBudget:
    """The budget in batches of the model, and what they cost where it was a time."""

    batches: int
    probe_price: float  # of a probe's batch, in batches
    prices: Prices | None = None  # None: batches are all that is counted

    @classmethod
    def of(
        cls, budget: Budget, prices: Prices | None, seconds: float | None = None
    ) -> PricedBudget:
        """Seconds (those that are left of the budget) need prices; steps do without."""
        if budget.batches is not None:
            return cls(batches=budget.batches, probe_price=PROBE_PRICE)
        if prices is None or budget.seconds is None:
            raise OptionError("A budget of seconds should come with prices. Found none.")
        left = budget.seconds if seconds is None else seconds
        return cls(
            batches=max(int(left * prices.workers / prices.batch), 0),
            probe_price=PROBE_PRICE if prices.probe is None else prices.probe / prices.batch,
            prices=prices,
        )

    @property
    def workers(self) -> int:
        return 1 if self.prices is None else self.prices.workers

    def share(self, count: int) -> float:
        """What a run may cost where the budget should pay for so many."""
        if self.prices is None:
            return self.batches / count
        return self.batches * self.prices.batch / count

    def cost(self, batches: float, rows: float) -> float:
        """Of a run and of the rows that it is evaluated on: in seconds, or in batches alone."""
        if self.prices is None:
            return batches
        prices = self.prices
        return prices.start + rows * prices.row + batches * prices.batch

    def affordable(self, cost: float, rows: float) -> int:
        """Batches of a run that costs so much."""
        return max(int((cost - self.cost(0, rows)) / self.cost_of_batch), 0)

    @property
    def cost_of_batch(self) -> float:
        return 1.0 if self.prices is None else self.prices.batch


def makespan(costs: Iterable[float], workers: int) -> float:
    """When the last is done if each of `workers` takes the longest that is left (Graham, 1969)."""
    ends = [0.0] * workers
    for cost in sorted(costs, reverse=True):
        heapq.heapreplace(ends, ends[0] + cost)
    return max(ends)


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

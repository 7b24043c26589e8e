"""What may be spent, and what things cost.

Decisions must not depend on how fast the machine happens to be at the moment: an adviser that is
stopped and goes on should end with the same plan. So seconds are turned into batches once, at the
start, with prices measured then and kept in the study; from there on only batches are counted.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from taskmix.errors import OptionError

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}
PROBE_PRICE = 0.1  # of a probe's batch, in batches of the model, where nothing is measured


@dataclass(frozen=True, kw_only=True)
class Budget:
    """Seconds, or batches of the model; one of the two."""

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
    def parse(cls, words: str) -> Budget:
        """`90s`, `30m`, `1.5h` or `2000-steps`."""
        steps = re.fullmatch(r"([0-9]{1,12})-steps", words.strip())
        time = re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)([smh])", words.strip())
        if steps is not None and int(steps[1]):
            return cls(batches=int(steps[1]))
        if time is not None and float(time[1]):
            return cls(seconds=float(time[1]) * _UNITS[time[2]])
        raise OptionError(
            "A budget should be a time such as 90s, 30m or 1.5h, or a number of steps such as "
            f"2000-steps. Found {words!r}."
        )


@dataclass(frozen=True, kw_only=True)
class Prices:
    """Seconds a batch takes, evaluations and all, with as many processes as there are."""

    batch: float
    probe: float

    def __post_init__(self) -> None:
        if not (self.batch > 0 and self.probe > 0):
            raise OptionError(f"Prices should be positive. Found {self.batch} and {self.probe}.")


@dataclass(frozen=True, kw_only=True)
class Purse:
    """The budget in batches of the model."""

    batches: int
    probe_price: float  # of a probe's batch, in batches

    @classmethod
    def of(cls, budget: Budget, prices: Prices | None) -> Purse:
        """Seconds need prices; steps do without, so that nothing measured decides."""
        if budget.batches is not None:
            return cls(batches=budget.batches, probe_price=PROBE_PRICE)
        if prices is None or budget.seconds is None:
            raise OptionError("A budget of seconds should come with prices. Found none.")
        return cls(
            batches=int(budget.seconds / prices.batch), probe_price=prices.probe / prices.batch
        )

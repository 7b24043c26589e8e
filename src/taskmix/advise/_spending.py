"""What is spent and what can still be paid: batches of a budget of steps, the time of one of seconds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from taskmix.advise._budget import Budget, Prices, Purse, Timer, makespan
from taskmix.advise._ledger import Ledger
from taskmix.errors import RecordError

Costs = Sequence[float]  # of the runs of one candidate
PATIENCE = 2.0  # seconds of runs from which on they say how fast the machine is now


@dataclass
class Spending:
    """Keeps the budget. What the clock decides is kept in the ledger under the name given."""

    purse: Purse
    timer: Timer
    ledger: Ledger
    batches: float = 0.0  # spent
    _expected: float = field(default=0.0, repr=False)  # seconds of runs by their prices
    _took: float = field(default=0.0, repr=False)  # seconds that they took

    @classmethod
    def open(
        cls, ledger: Ledger, timer: Timer, budget: Budget, measure: Callable[[], Prices]
    ) -> Spending:
        """With the prices of the ledger, or else measured now; the time before counts as used."""
        timer.before = ledger.seconds
        kept = ledger.decisions.get("purse")
        if kept is None:
            prices = None if budget.seconds is None else measure()
            purse = Purse.of(budget, prices, None if prices is None else timer.left())
        else:
            purse = _purse(kept)
        return cls(purse, timer, ledger)

    def begin(self) -> None:
        """Writes the purse down: from here on it counts."""
        self.ledger.settle("purse", asdict(self.purse), seconds=self.timer.used())

    @property
    def by_clock(self) -> bool:
        return self.purse.prices is not None

    @property
    def share(self) -> float:
        """Of the budget that is spent."""
        if self.timer.seconds is not None:
            return min(self.timer.used() / self.timer.seconds, 1.0)
        return min(self.batches / self.purse.batches, 1.0)

    @property
    def pace(self) -> float:
        """How many times as long as their prices runs take by now."""
        return self._took / self._expected if self._expected > PATIENCE else 1.0

    def can_pay(self, groups: Sequence[Costs]) -> bool:
        costs = [cost for group in groups for cost in group]
        if not self.by_clock:
            return self.batches + sum(costs) <= self.purse.batches
        return makespan(costs, self.purse.hands) * self.pace <= self.timer.left()

    def affords(self, name: str, groups: Sequence[Costs]) -> bool:
        """Whether all of them can be paid for."""
        return bool(self._decide(name, lambda: self.can_pay(groups)))

    def affordable(self, name: str, groups: Sequence[Costs], *, least: int) -> int:
        """How many of the first ones can be paid for; `least` are done whatever they cost."""

        def count() -> int:
            found = len(groups)
            while found > least and not self.can_pay(groups[:found]):
                found -= 1
            return found

        return int(self._decide(name, count))

    def _decide(self, name: str, make: Callable[[], Any]) -> Any:
        if not self.by_clock:
            return make()
        return self.ledger.decide(name, make, seconds=self.timer.used())

    def settle(self, name: str, value: Any) -> None:
        """Overrules what was decided, because time ran out in the middle of it."""
        self.ledger.settle(name, value, seconds=self.timer.used())

    def learn(self, costs: Costs, seconds: float) -> None:
        """Takes notice of how long runs took that should have cost so much."""
        if self.by_clock:
            self._expected += makespan(costs, self.purse.hands)
            self._took += seconds
            self.ledger.take_time(self.timer.used())


def _purse(kept: Any) -> Purse:
    try:
        prices = None if kept["prices"] is None else Prices(**kept["prices"])
        return Purse(**{**kept, "prices": prices})
    except (TypeError, KeyError) as error:
        raise RecordError(
            "`advise.json` should say what the adviser may spend. Found something else. Choose "
            "another --out, or remove the file."
        ) from error

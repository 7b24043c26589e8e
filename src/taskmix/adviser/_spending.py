"""What is spent and what can still be paid: batches of a budget of steps, the time of one of seconds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from taskmix.adviser._budget import Budget, PricedBudget, Prices, Timer, makespan
from taskmix.adviser._ledger import Ledger
from taskmix.errors import RecordError

Costs = Sequence[float]  # of the runs of one candidate
_BUDGET_KEYS = ("budget", "purse")  # of the priced budget in a ledger; the second in old ones
# Of runs, by their prices, from which on they say how fast the machine is now: a few short runs would
# have the adviser give up seeds for one slow moment.
FEWEST_TIMED_SECONDS = 2.0


@dataclass
class Spending:
    """Keeps the budget. What the clock decides is kept in the ledger under the name given."""

    budget: PricedBudget
    timer: Timer
    ledger: Ledger
    batches: float = 0.0  # spent
    _expected: float = field(default=0.0, repr=False)  # seconds of runs by their prices
    _took: float = field(default=0.0, repr=False)  # seconds that they took

    @classmethod
    def of_ledger(
        cls, ledger: Ledger, timer: Timer, budget: Budget, measure: Callable[[], Prices]
    ) -> Spending:
        """With the prices of the ledger, or else measured now; the time before counts as used."""
        timer.before = ledger.seconds
        kept = next(
            (ledger.decisions[key] for key in _BUDGET_KEYS if key in ledger.decisions), None
        )
        if kept is not None:
            return cls(_priced(kept), timer, ledger)
        prices = None if budget.seconds is None else measure()
        left = None if prices is None else timer.left()
        return cls(PricedBudget.of(budget, prices, left), timer, ledger)

    @property
    def is_settled(self) -> bool:
        """Whether the budget has been written down, now or by an adviser that was stopped."""
        return any(key in self.ledger.decisions for key in _BUDGET_KEYS)

    def begin(self) -> None:
        """Writes the budget down: from here on it counts."""
        self.ledger.settle(_BUDGET_KEYS[0], asdict(self.budget), seconds=self.timer.used())

    @property
    def by_clock(self) -> bool:
        return self.budget.prices is not None

    @property
    def share(self) -> float:
        """Of the budget that is spent."""
        if self.timer.seconds is not None:
            return min(self.timer.used() / self.timer.seconds, 1.0)
        return min(self.batches / self.budget.batches, 1.0)

    @property
    def pace(self) -> float:
        """How many times as long as their prices runs take by now."""
        return self._took / self._expected if self._expected > FEWEST_TIMED_SECONDS else 1.0

    def can_pay(self, groups: Sequence[Costs]) -> bool:
        costs = [cost for group in groups for cost in group]
        if not self.by_clock:
            return self.batches + sum(costs) <= self.budget.batches
        return makespan(costs, self.budget.workers) * self.pace <= self.timer.left()

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
            self._expected += makespan(costs, self.budget.workers)
            self._took += seconds
            self.ledger.take_time(self.timer.used())


def _priced(kept: Any) -> PricedBudget:
    try:
        prices = None if kept["prices"] is None else _prices(kept["prices"])
        return PricedBudget(**{**kept, "prices": prices})
    except (TypeError, KeyError, AttributeError) as error:
        raise RecordError(
            "`ledger.json` should say what the adviser may spend. Found something else. Choose "
            "another `out`, or remove the file.",
            arguments=("out",),
        ) from error


def _prices(kept: Any) -> Prices:
    """Ledgers of earlier versions call the workers hands."""
    return Prices(**{{"hands": "workers"}.get(name, name): value for name, value in kept.items()})

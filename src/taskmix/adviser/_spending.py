"""What is spent and what can still be paid: batches of a budget of steps, the time of one of seconds.

A run's price is that of its kind (`_prices.py`), measured when it is first asked for. Every stage that
is done corrects the prices of its kinds: how many times as long as foreseen it took is their pace. A
kind of which little has been done is taken to go at the pace of all.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from taskmix.adviser._budget import Budget, PricedBudget, Prices, Timer, makespan
from taskmix.adviser._candidates import evaluated_rows
from taskmix.adviser._ledger import Ledger
from taskmix.adviser._prices import Kind, Meter, NoTimeError
from taskmix.engine import Executor, Run, companions
from taskmix.errors import RecordError
from taskmix.policies import Uniform

Costs = Sequence[float]  # of the runs of one candidate
_BUDGET_KEYS = ("budget", "purse")  # of the priced budget in a ledger; the second in old ones
_PRICES_KEY = "prices of "  # and the key of a kind
# Of runs, by their prices, that count as much as what was known before: a few short runs would have the
# adviser give up seeds for one slow moment.
PRIOR_SECONDS = 2.0
RUNS_OF_A_STAGE = 8  # about: by the company of so many the budget is priced
MEASURES_LEFT = (
    4  # times that a kind could be measured in the time left: with less, it is not any more
)
UNAFFORDABLE = Prices(batch=math.inf)  # of a kind for which there is no time, nor to measure it


@dataclass
class Paces:
    """How many times as long as their prices runs of each kind take."""

    _expected: dict[str, float] = field(default_factory=dict)  # seconds by their prices
    _took: dict[str, float] = field(default_factory=dict)  # seconds that they took

    def learn(self, expected: dict[str, float], seconds: float) -> None:
        """That a stage took so long, whose runs of each kind should have taken so much of it.

        Nobody knows which kind was late, so all of them share it as they share the stage.
        """
        whole = sum(expected.values())
        for key, part in expected.items():
            self._expected[key] = self._expected.get(key, 0.0) + part
            self._took[key] = self._took.get(key, 0.0) + seconds * part / max(whole, 1e-9)

    def of(self, key: str) -> float:
        """Of a kind, shrunk to that of all kinds, and that to 1."""
        overall = _ratio(sum(self._took.values()), sum(self._expected.values()), 1.0)
        return _ratio(self._took.get(key, 0.0), self._expected.get(key, 0.0), overall)


def _ratio(took: float, expected: float, before: float) -> float:
    return (took + PRIOR_SECONDS * before) / (expected + PRIOR_SECONDS)


@dataclass
class Spending:
    """Keeps the budget. What the clock decides is kept in the ledger under the name given."""

    budget: PricedBudget
    timer: Timer
    ledger: Ledger
    meter: Meter | None = None  # None: all runs have the budget's own prices, as in old studies
    executor: Executor | None = None  # that trains the runs: it says which of them together
    batches: float = 0.0  # spent
    paces: Paces = field(default_factory=Paces, repr=False)
    _known: dict[str, Prices] = field(default_factory=dict, repr=False)  # by kinds
    _begun: set[str] = field(default_factory=set, repr=False)  # kinds that processes have encoded

    @classmethod
    def of_ledger(
        cls,
        ledger: Ledger,
        timer: Timer,
        budget: Budget,
        *,
        template: Run,
        executor: Executor,
        meter: Meter,
        measure: Callable[[], Prices] | None = None,  # of every kind; None: by the meter
    ) -> Spending:
        """With the prices of the ledger, or else measured now; the time before counts as used."""
        timer.before = ledger.seconds
        kept = next(
            (ledger.decisions[key] for key in _BUDGET_KEYS if key in ledger.decisions), None
        )
        known = {
            key.removeprefix(_PRICES_KEY): _prices(value)
            for key, value in ledger.decisions.items()
            if key.startswith(_PRICES_KEY)
        }
        if kept is not None:
            has_kinds = bool(known) and measure is None
            return cls(
                _priced(kept),
                timer,
                ledger,
                meter if has_kinds else None,
                executor,
                _known=known,
            )
        if budget.seconds is None:
            return cls(PricedBudget.of(budget, None), timer, ledger, None, executor)
        if measure is not None:
            prices = measure()
            return cls(PricedBudget.of(budget, prices, timer.left()), timer, ledger, None, executor)
        if timer.left() < meter.seconds:
            raise meter.no_time()
        # Until the budget has a price of its own, which is that of a usual stage.
        unpriced = PricedBudget(batches=0, probe_price=1.0, prices=Prices(batch=1.0))
        found = cls(unpriced, timer, ledger, meter, executor)
        prices = found.usual_prices(template)
        found.budget = PricedBudget.of(budget, prices, timer.left())
        return found

    @property
    def is_settled(self) -> bool:
        """Whether the budget has been written down, now or by an adviser that was stopped."""
        return any(key in self.ledger.decisions for key in _BUDGET_KEYS)

    def begin(self) -> None:
        """Writes the budget down: from here on it counts."""
        seconds = self.timer.used()
        for key, prices in self._known.items():
            self.ledger.settle(_PRICES_KEY + key, asdict(prices), seconds=seconds)
        self.ledger.settle(_BUDGET_KEYS[0], asdict(self.budget), seconds=seconds)

    @property
    def by_clock(self) -> bool:
        return self.budget.prices is not None

    @property
    def share(self) -> float:
        """Of the budget that is spent."""
        if self.timer.seconds is not None:
            return min(self.timer.used() / self.timer.seconds, 1.0)
        return min(self.batches / self.budget.batches, 1.0)

    def costs(self, runs: Sequence[Run]) -> list[float]:
        """What each of these runs takes if all are asked for at once.

        In seconds of one process on this device, at the pace so far; or in batches, where the budget
        is one of steps.
        """
        if not self.by_clock:
            return [run.cost for run in runs]
        priced = self._priced(runs)
        return [cost * self.paces.of(key) for key, cost in priced]

    def in_batches(self, cost: float) -> float:
        """A cost as batches of the model."""
        prices = self.budget.prices
        return cost if prices is None else cost / prices.batch

    def usual_prices(self, template: Run) -> Prices:
        """Of runs of a model in the company that a stage of candidates gives them."""
        runs = [
            replace(template, label="price", policy=Uniform(), weighting=None, seed=seed)
            for seed in range(RUNS_OF_A_STAGE)
        ]
        members = 1 if self.executor is None else companions(self.executor, runs)[0]
        return self._prices_of(runs[0], members)[1]

    def seconds_of_batch(self, run: Run) -> float:
        """Of a run that is trained alone, as the final one will be."""
        return self._prices_of(run, 1)[1].batch

    def can_pay(self, groups: Sequence[Costs]) -> bool:
        costs = [cost for group in groups for cost in group]
        if not self.by_clock:
            return self.batches + sum(costs) <= self.budget.batches
        return makespan(costs, self.budget.workers) <= self.timer.left()

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

    def learn(self, runs: Sequence[Run], seconds: float) -> None:
        """Takes notice of how long these runs took, all of them together."""
        if not self.by_clock:
            return
        if runs:
            priced = self._priced(runs)
            whole = makespan([cost for _, cost in priced], self.budget.workers)
            parts = Counter[str]()
            for key, cost in priced:
                parts[key] += cost  # type: ignore[assignment]
            factor = whole / max(sum(parts.values()), 1e-9)
            self.paces.learn({key: part * factor for key, part in parts.items()}, seconds)
            self._begun.update(key for key, _ in priced)
        self.ledger.take_time(self.timer.used())

    def _priced(self, runs: Sequence[Run]) -> list[tuple[str, float]]:
        """Kind and price of each, as measured."""
        together = [1] * len(runs)
        if self.meter is not None and self.executor is not None:
            together = companions(self.executor, runs)
        first: Counter[str] = Counter()  # runs of a kind that no process has encoded rows for
        found = []
        for run, members in zip(runs, together, strict=True):
            key, prices = self._prices_of(run, members)
            rows = evaluated_rows(run.load(), _evaluations(run))
            cost = prices.start + rows * prices.row + run.cost * prices.batch
            if key not in self._begun and first[key] < self.budget.workers:
                cost += prices.once
                first[key] += 1
            found.append((key, cost))
        return found

    def _prices_of(self, run: Run, members: int) -> tuple[str, Prices]:
        """The kind's name and what it costs where so many train in one batch."""
        if self.meter is None:
            prices = self.budget.prices
            assert prices is not None
            return "all", prices
        if members == 1:
            return self._of_kind(run, together=False)
        key, fleet = self._of_kind(run, together=True)
        # Part of a step is the same however many take it: between alone and all that was measured, the
        # root of their number is near what fleets of perceptrons and adapters take.
        fewer = max(fleet.members / members, 1.0) ** 0.5
        return key, replace(fleet, batch=fleet.batch * fewer, row=fleet.row * fewer)

    def _of_kind(self, run: Run, *, together: bool) -> tuple[str, Prices]:
        key = Kind.of(run, together=together).key
        if key not in self._known:
            assert self.meter is not None
            if self.is_settled and self.timer.left() < MEASURES_LEFT * self.meter.seconds:
                return key, UNAFFORDABLE
            try:
                found = self.meter.measure(run, together=together)
            except NoTimeError:
                if not self.is_settled:
                    raise
                return key, UNAFFORDABLE
            self._known[key] = found
            if self.is_settled:
                self.settle(_PRICES_KEY + key, asdict(found))
        return key, self._known[key]


def _evaluations(run: Run) -> int:
    return max(run.steps // run.evaluate_every, 1) if run.evaluate_every else 1


def _priced(kept: Any) -> PricedBudget:
    try:
        prices = None if kept["prices"] is None else _prices(kept["prices"])
        return PricedBudget(**{**kept, "prices": prices})
    except (TypeError, KeyError, AttributeError) as error:
        raise _damaged() from error


def _prices(kept: Any) -> Prices:
    """Ledgers of earlier versions call the workers hands."""
    try:
        return Prices(
            **{{"hands": "workers"}.get(name, name): value for name, value in kept.items()}
        )
    except (TypeError, AttributeError) as error:
        raise _damaged() from error


def _damaged() -> RecordError:
    return RecordError(
        "`ledger.json` should say what the adviser may spend. Found something else. Choose "
        "another `out`, or remove the file.",
        arguments=("out",),
    )

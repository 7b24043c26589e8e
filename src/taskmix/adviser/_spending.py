"""What runs cost on this machine, and what can still be paid.

A budget of steps counts batches, and nothing measured decides what is done with it. Of a budget of
seconds, a few short runs of what will be asked for, done together as it will be, say what a run takes:
so much whatever its length, and so much for each batch. Every stage corrects that by how long it took. A
run that the study already has costs nothing, so an adviser that was stopped goes on with the same runs;
what was measured is kept (`_ledger.py`).
"""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from taskmix.adviser._budget import Budget, Timer
from taskmix.adviser._ledger import Ledger
from taskmix.engine import Executor, Run, Until, is_stop_asked
from taskmix.errors import RecordError, RunError
from taskmix.records import Study

WARMING_STEPS, FIRST_STEPS, MOST_STEPS = 2, 8, 400  # of the short runs
MEASURED_SHARE, LEAST_SECONDS = 0.03, 0.3  # of the time, that measuring may take
WARMING_SHARE, WARMING_SECONDS = 0.2, 5.0  # the first short runs start processes and load the model
# Seconds by prices that count as much as what was known before: a few short runs would have the adviser
# give up seeds for one slow moment.
PRIOR_SECONDS = 2.0


@dataclass(frozen=True, kw_only=True)
class Price:
    """Of a run among others of its stage: seconds of all processes together, or batches."""

    start: float
    batch: float

    def of(self, batches: float) -> float:
        return self.start + self.batch * batches


@dataclass
class Spending:
    """Keeps the budget; kinds of runs (the model, rungs, probes) have names."""

    budget: Budget
    timer: Timer
    executor: Executor
    ledger: Ledger
    batches: float = 0.0  # spent, at their prices
    clock: Callable[[], float] = time.monotonic
    _prices: dict[str, Price] = field(default_factory=dict)
    _expected: float = 0.0  # seconds that stages should have taken, and that they did
    _took: float = 0.0

    @property
    def by_clock(self) -> bool:
        return self.budget.seconds is not None

    @property
    def share(self) -> float:
        """Of the budget that is spent."""
        whole = self.budget.seconds or self.budget.batches or 1
        return min((self.timer.used() if self.by_clock else self.batches) / whole, 1.0)

    @property
    def left(self) -> float:
        """Seconds, or batches."""
        return self.timer.left() if self.by_clock else (self.budget.batches or 0) - self.batches

    def price(
        self,
        kind: str,
        runs_of: Callable[[int], Sequence[Run]],  # a stage of runs that are so many batches long
        count: int,  # of candidates among them
        *,
        counted: float = 1.0,  # what a batch of it counts in a budget of steps
    ) -> Price | None:
        """Of one candidate of a kind; None where the time does not even pay for measuring it."""
        if not self.by_clock:
            return self._prices.setdefault(kind, Price(start=0.0, batch=counted))
        if kind not in self._prices:
            name = f"price of {kind}"
            known = self.ledger.decisions.get(name)
            found = _price(known) if known is not None else self._measure(runs_of, count)
            if found is None:
                return None
            self._prices[kind] = found
            self.ledger.settle(name, asdict(found), seconds=self.timer.used())
        return self._prices[kind]

    def pays(self, kind: str, batches: float, count: float, *, keep: float = 0.0) -> bool:
        """Whether so many runs of a kind can be paid for while `keep` is left over."""
        price = self._prices.get(kind)
        if price is None:
            return False
        return count * price.of(batches) * self._pace + keep <= self.left

    def affordable(self, kind: str, batches: float, *, keep: float = 0.0) -> int:
        """How many runs of a kind can be paid for."""
        price = self._prices.get(kind)
        if price is None:
            return 0
        return max(int((self.left - keep) / max(price.of(batches) * self._pace, 1e-12)), 0)

    def cost(self, kind: str, batches: float, count: float = 1.0) -> float:
        """In the budget's own currency."""
        return count * self._prices[kind].of(batches) * self._pace

    def longest(self, kind: str, cost: float) -> int:
        """Batches of a run that costs so much."""
        price = self._prices[kind]
        return max(int((cost / self._pace - price.start) / price.batch), 0)

    def spend(self, kind: str, batches: float, count: float, seconds: float) -> None:
        """Takes notice of a stage of so many runs, and of how long it took."""
        price = self._prices[kind]
        self.batches += count * price.of(batches) if not self.by_clock else count * batches
        if self.by_clock:
            self._expected += count * price.of(batches)
            self._took += seconds
            self.ledger.take_time(self.timer.used())

    @property
    def _pace(self) -> float:
        """How many times as long as their prices runs have taken."""
        if not self.by_clock:
            return 1.0
        return (self._took + PRIOR_SECONDS) / (self._expected + PRIOR_SECONDS)

    def _measure(self, runs_of: Callable[[int], Sequence[Run]], count: int) -> Price | None:
        most = MEASURED_SHARE * (self.budget.seconds or 0.0) + LEAST_SECONDS
        warming = WARMING_SHARE * max(self.timer.left(), 0.0) + WARMING_SECONDS
        with tempfile.TemporaryDirectory(prefix="taskmix-price-") as folder:
            first = self._time(runs_of(WARMING_STEPS), Study(Path(folder) / "0"), warming)
            if first is None:
                return None
            if not first.is_whole:  # one step is as long as all measuring should be
                return Price(start=0.0, batch=first.seconds / max(first.steps, 1) * 2)
            short = self._time(runs_of(FIRST_STEPS), Study(Path(folder) / "1"), most)
            if short is None:
                return None
            each = short.seconds / max(short.steps, 1)
            steps = int(min(most / max(each * count, 1e-9), MOST_STEPS))
            if not short.is_whole or steps < 2 * FIRST_STEPS:
                return Price(start=0.0, batch=each)
            longer = self._time(runs_of(steps), Study(Path(folder) / "2"), 3 * most)
            if longer is None:
                return None
        batch = (longer.seconds - short.seconds) / max(longer.steps - short.steps, 1)
        batch = min(max(batch, 0.05 * each), longer.seconds / max(longer.steps, 1))
        start = max(short.seconds - batch * short.steps, 0.0) / count
        return Price(start=start, batch=max(batch, 1e-7))

    def _time(self, runs: Sequence[Run], study: Study, seconds: float) -> _Timed | None:
        """None where the budget is over, or almost."""
        if self.timer.left() < LEAST_SECONDS:
            return None
        begin = self.clock()
        until = Until(self.executor, lambda: self.clock() - begin > seconds)
        results = until.run(runs, study)
        took = self.clock() - begin
        if error := next((each.error for each in results if each.error is not None), None):
            raise RunError(f"A first short run should work. It failed: {error}")
        if self.timer.is_over():
            return None
        if is_stop_asked(self.executor):
            raise RunError(
                "Stopped before it was known how long a batch takes. Run the same command again."
            )
        done = [0 if each.summary is None else each.summary.step for each in results]
        cost = sum(run.cost_of(step) for run, step in zip(runs, done, strict=True))
        whole = all(each.outcome != "stopped" for each in results)
        return _Timed(took, math.ceil(cost), whole)


@dataclass(frozen=True)
class _Timed:
    seconds: float
    steps: int  # done, of all runs
    is_whole: bool


def _price(kept: object) -> Price:
    try:
        return Price(**kept)  # type: ignore[arg-type]
    except TypeError as error:
        raise RecordError(
            "`ledger.json` should say what runs cost. Found something else. Choose another `out`, or "
            "remove the file.",
            arguments=("out",),
        ) from error

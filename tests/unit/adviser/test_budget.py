from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskmix.adviser._budget import Budget, PricedBudget, Prices, Timer, makespan, typed_time
from taskmix.errors import OptionError


@pytest.mark.parametrize(
    ("words", "seconds", "batches"),
    [
        ("90s", 90.0, None),
        ("30m", 1800.0, None),
        ("1.5h", 5400.0, None),
        (" 2000-steps ", None, 2000),
    ],
)
def test_a_budget_is_a_time_or_a_number_of_steps(
    words: str, seconds: float | None, batches: int | None
) -> None:
    assert Budget.parse(words) == Budget(seconds=seconds, batches=batches)


@pytest.mark.parametrize(
    "words", ["", "30", "0m", "-5m", "0-steps", "5 minutes", "1e3s", "٣m", "5d"]
)
def test_anything_else_is_refused_in_words(words: str) -> None:
    with pytest.raises(OptionError, match="A budget should be"):
        Budget.parse(words)


@given(st.text(max_size=20))
def test_no_words_make_it_fail_in_another_way(words: str) -> None:
    with contextlib.suppress(OptionError):
        found = Budget.parse(words)
        (amount,) = (each for each in (found.seconds, found.batches) if each is not None)
        assert amount > 0


def test_seconds_become_batches_by_their_price() -> None:
    prices = Prices(batch=0.02, probe=0.001, workers=2)
    budget = PricedBudget.of(Budget(seconds=60.0), prices, 50.0)
    assert budget == PricedBudget(batches=5000, probe_price=0.05, prices=prices)


def test_what_a_run_takes_besides_its_batches_is_in_its_cost() -> None:
    prices = Prices(batch=0.01, probe=0.001, start=0.5, row=0.002)
    budget = PricedBudget.of(Budget(seconds=100.0), prices)
    assert budget.cost(100, rows=1000) == pytest.approx(0.5 + 2.0 + 1.0)
    share = budget.share(10)
    assert share == pytest.approx(10.0)
    assert budget.cost(budget.affordable(share, 1000), 1000) == pytest.approx(share, abs=0.01)
    steps = PricedBudget.of(Budget(batches=1000), None)
    assert steps.affordable(steps.share(10), 10**9) == 100


def test_runs_are_packed_longest_first() -> None:
    assert makespan([3, 3, 2, 2, 2], 2) == 7.0  # Graham's example: 6 is possible, 7 is what comes
    assert makespan([], 3) == 0.0


@given(
    st.lists(st.floats(0.01, 100), min_size=1, max_size=20),
    st.integers(1, 4),
)
def test_a_makespan_lies_between_the_ideal_and_grahams_bound(
    costs: list[float], workers: int
) -> None:
    ideal = max(sum(costs) / workers, max(costs))
    assert ideal * (1 - 1e-9) <= makespan(costs, workers) <= sum(costs) / workers + max(costs)


def test_time_of_earlier_sessions_counts() -> None:
    timer = Timer(seconds=100.0, before=60.0, begin=10.0, now=lambda: 20.0)
    assert timer.used() == 70.0
    assert 20 < timer.left() < 30, "some is kept for what comes after the runs"
    assert not timer.is_over()
    assert Timer(seconds=100.0, begin=0.0, now=lambda: 110.0).is_over()
    assert Timer(now=lambda: 1e9).left() == float("inf")
    assert not Timer(now=lambda: 1e9).is_over()


@pytest.mark.parametrize(
    ("seconds", "words"), [(59.2, "60s"), (181, "4m"), (7200, "120m"), (5 * 3600, "5h")]
)
def test_times_are_said_as_they_are_typed(seconds: float, words: str) -> None:
    assert typed_time(seconds) == words
    found = Budget.parse(words).seconds
    assert found is not None
    assert found >= seconds


def test_steps_are_worth_the_same_on_every_machine() -> None:
    fast, slow = Prices(batch=0.001, probe=0.0005), Prices(batch=1.0, probe=0.001)
    budget = Budget(batches=500)
    assert (
        PricedBudget.of(budget, fast)
        == PricedBudget.of(budget, slow)
        == PricedBudget.of(budget, None)
    )


def test_seconds_without_prices_are_refused() -> None:
    with pytest.raises(OptionError):
        PricedBudget.of(Budget(seconds=1.0), None)

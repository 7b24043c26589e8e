from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskmix.advise._budget import Budget, Prices, Purse
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
        Budget.parse(words)


def test_seconds_become_batches_by_their_price() -> None:
    purse = Purse.of(Budget(seconds=60.0), Prices(batch=0.02, probe=0.001))
    assert purse == Purse(batches=3000, probe_price=0.05)


def test_steps_are_worth_the_same_on_every_machine() -> None:
    fast, slow = Prices(batch=0.001, probe=0.0005), Prices(batch=1.0, probe=0.001)
    budget = Budget(batches=500)
    assert Purse.of(budget, fast) == Purse.of(budget, slow) == Purse.of(budget, None)


def test_seconds_without_prices_are_refused() -> None:
    with pytest.raises(OptionError):
        Purse.of(Budget(seconds=1.0), None)

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskmix.adviser import Budget, typed_time
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


@pytest.mark.parametrize(
    ("seconds", "words"), [(59.2, "60s"), (181, "4m"), (7200, "120m"), (5 * 3600, "5h")]
)
def test_times_are_said_as_they_are_typed(seconds: float, words: str) -> None:
    assert typed_time(seconds) == words
    found = Budget.parse(words).seconds
    assert found is not None
    assert found >= seconds

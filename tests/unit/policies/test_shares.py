from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from taskmix.errors import OptionError, ShapeError
from taskmix.policies import (
    Capped,
    Fixed,
    Scheduled,
    Tempered,
    draw,
    draw_many,
)
from taskmix.records import describe


def test_a_temperature_of_two_takes_the_square_root_of_the_sizes() -> None:
    # Sizes 1 and 4 have the roots 1 and 2, so a third and two thirds.
    policy = Tempered(temperature=2.0)
    state = policy.init(np.array([1, 4]))
    np.testing.assert_allclose(policy.probabilities(state), [1 / 3, 2 / 3])


def test_a_tiny_temperature_neither_overflows_nor_leaves_a_task_out() -> None:
    policy = Tempered(temperature=0.001)
    probabilities = policy.probabilities(policy.init(np.array([1, 10**12])))
    assert probabilities[1] == 1.0
    assert probabilities[0] > 0


@pytest.mark.parametrize("temperature", [0.0, -1.0, math.inf, math.nan])
def test_a_temperature_that_is_not_above_zero_is_refused(temperature: float) -> None:
    with pytest.raises(OptionError, match="above zero"):
        Tempered(temperature=temperature)


def test_no_task_counts_for_more_rows_than_the_limit() -> None:
    # T5's min(e, K): sizes 1000, 300, 100 count as 300, 300, 100.
    policy = Capped(limit=300)
    state = policy.init(np.array([1000, 300, 100]))
    np.testing.assert_allclose(policy.probabilities(state), [3 / 7, 3 / 7, 1 / 7])


def test_without_a_limit_it_is_the_median_of_the_sizes() -> None:
    sizes = np.array([10, 4000, 20, 30, 40])  # 10, 30, 20, 30, 30
    state = Capped().init(sizes)
    np.testing.assert_allclose(state.shares, np.array([10, 30, 20, 30, 30]) / 120)


@pytest.mark.parametrize("limit", [0, -5, 1.5, True])
@pytest.mark.parametrize("policy", [Capped, Tempered])
def test_a_limit_that_is_no_number_of_rows_is_refused(policy: Any, limit: int) -> None:
    with pytest.raises(OptionError, match="whole number of rows"):
        policy(limit=limit)


def test_a_tempered_policy_with_a_limit_tempers_what_the_limit_leaves() -> None:
    # T5's min(e, K)^(1/T): sizes 1000, 400, 100 count as 400, 400, 100, whose roots are 20, 20, 10.
    sizes = np.array([1000, 400, 100])
    found = Tempered(temperature=2.0, limit=400).init(sizes).shares
    np.testing.assert_allclose(found, [0.4, 0.4, 0.2])
    alone = Tempered(temperature=1.0, limit=400).init(sizes).shares
    np.testing.assert_allclose(alone, Capped(limit=400).init(sizes).shares)


def test_a_policy_without_a_limit_names_runs_as_it_did_before_it_could_have_one() -> None:
    assert describe(Tempered()) == {"kind": "Tempered", "temperature": 2.0}
    assert describe(Tempered(limit=9)) == {"kind": "Tempered", "temperature": 2.0, "limit": 9}


def test_fixed_from_logits_is_their_softmax() -> None:
    policy = Fixed.from_logits([math.log(1.0), math.log(3.0)])
    np.testing.assert_allclose(policy.shares, [0.25, 0.75])
    with pytest.raises(OptionError, match="finite"):
        Fixed.from_logits([0.0, math.inf])


def test_fixed_takes_arrays_and_rounded_shares_and_compares_by_value() -> None:
    assert Fixed(np.array([0.25, 0.75])) == Fixed([0.25, 0.75])
    assert sum(Fixed([0.333, 0.333, 0.333]).shares) == pytest.approx(1.0)


def test_fixed_refuses_a_task_without_a_share_and_the_wrong_number_of_tasks() -> None:
    with pytest.raises(OptionError, match="above zero"):
        Fixed([1.0, 0.0])
    with pytest.raises(ShapeError, match="one number per task"):
        Fixed([0.5, 0.5]).init(np.array([1, 1, 1]))
    with pytest.raises(ShapeError, match="one number per task"):
        Fixed([[0.5, 0.5]])  # type: ignore[list-item]


def shares_at(policy: Scheduled, step: int) -> list[float]:
    from taskmix.policies import Choice, Outcome

    state = policy.init(np.array([5, 5]))
    for _ in range(step):
        state = policy.update(state, Outcome(Choice(0, 0.5), loss=1.0))
    return list(policy.probabilities(state))


def test_a_stage_holds_until_the_next_one_starts() -> None:
    policy = Scheduled(((0, (0.9, 0.1)), (10, (0.5, 0.5))))
    assert shares_at(policy, 9) == pytest.approx([0.9, 0.1])
    assert shares_at(policy, 10) == pytest.approx([0.5, 0.5])
    assert shares_at(policy, 1000) == pytest.approx([0.5, 0.5])


def test_interpolated_shares_are_half_way_at_half_time() -> None:
    policy = Scheduled(((0, (0.9, 0.1)), (10, (0.5, 0.5))), interpolate=True)
    assert shares_at(policy, 5) == pytest.approx([0.7, 0.3])
    assert shares_at(policy, 10) == pytest.approx([0.5, 0.5])
    assert shares_at(policy, 99) == pytest.approx([0.5, 0.5])


@pytest.mark.parametrize(
    ("stages", "words"),
    [
        ((), "start at step 0"),
        (((5, (0.5, 0.5)),), "start at step 0"),
        (((0, (0.5, 0.5)), (0, (0.4, 0.6))), "one after another"),
        (((0, (0.5, 0.5)), (9, (1.0,))), "one share per task"),
        (((0, (0.5, 0.5)), (9, (1.0, 0.0))), "above zero"),
    ],
)
def test_a_schedule_that_cannot_be_followed_is_refused(stages: tuple, words: str) -> None:
    with pytest.raises((OptionError, ShapeError), match=words):
        Scheduled(stages)


def test_many_draws_at_once_are_the_draws_one_by_one() -> None:
    shares = np.array([0.1, 0.6, 0.3])
    one, many = np.random.default_rng(5), np.random.default_rng(5)
    for count in (1, 7, 100):
        expected = [draw(shares, one).task for _ in range(count)]
        assert draw_many(shares, many, count).tolist() == expected
    assert one.random() == many.random()

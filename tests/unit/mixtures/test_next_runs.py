"""What to run next: the expected regret, batches, their reasons, and when it is enough."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from known_forecasts import KnownForecast, effective_law, table_of
from linear_forecasts import Floats, LinearForecast, linear_table

from taskmix.errors import InputError
from taskmix.mixtures import (
    MixtureLimits,
    MixtureTarget,
    estimate_regret,
    find_optimum,
    next_mixtures,
)


def one_of_two(draws: int = 32, spread: float = 0.01) -> KnownForecast:
    """By half of the laws all of `d0` is best, by the others all of `d1`; `d2` never helps."""

    def first(shares: Floats) -> Floats:
        return 1 - shares[:, :1]

    def second(shares: Floats) -> Floats:
        return 1 - shares[:, 1:2]

    table = replace(table_of(first, runs=3), shares=np.eye(3), values=first(np.eye(3)))
    return KnownForecast(table, (first, second) * (draws // 2), spread)


def test_the_expected_regret_is_the_mean_over_laws() -> None:
    # Whatever is chosen of d0 and d1, the mean target is one half, and each law's best is 0.
    regret = estimate_regret(one_of_two())
    assert regret.mean == pytest.approx(0.5, abs=1e-3)
    assert regret.recommended[2] == pytest.approx(0.0, abs=1e-3)
    # All of d0: half of the laws lose nothing, half of them everything.
    regret = estimate_regret(one_of_two(), recommended=np.array([1.0, 0.0, 0.0]))
    assert (regret.mean, regret.high) == pytest.approx((0.5, 1.0), abs=1e-6)
    assert regret.error == pytest.approx(0.5 / 32**0.5, abs=1e-6)
    assert estimate_regret(
        one_of_two(), recommended=np.array([0.0, 0.0, 1.0])
    ).mean == pytest.approx(1)


def test_the_expected_regret_is_nothing_where_one_law_is_certain() -> None:
    law = effective_law(3)
    forecast = KnownForecast(table_of(law), (law,) * 8)
    regret = estimate_regret(forecast)
    assert regret.mean == pytest.approx(0.0, abs=1e-9)
    runs = next_mixtures(forecast, count=2)
    assert runs.is_good_enough
    assert runs.is_enough
    assert runs.describe().startswith("Enough: the expected regret is 0, and")


def test_a_metric_that_should_rise_turns_the_answer_round() -> None:
    forecast = one_of_two()
    table = table_of(lambda shares: 1 - shares[:, :1], larger_is_better=("m0",))
    turned = KnownForecast(table, tuple(lambda s, law=law: -law(s) for law in forecast.laws), 0.01)
    assert estimate_regret(turned).mean == pytest.approx(estimate_regret(forecast).mean, abs=1e-3)


def test_the_run_that_tells_the_laws_apart_is_chosen_and_its_reason_told() -> None:
    runs = next_mixtures(one_of_two(), count=1)
    # One run shows which law holds, wherever d0 and d1 have different shares; then nothing is left.
    assert abs(runs.shares[0, 0] - runs.shares[0, 1]) > 0.3
    assert runs.reasons[0] in (
        "settles the share of d0: 0.00 or 1.00",
        "settles the share of d1: 0.00 or 1.00",
    )
    assert runs.regret_after < 0.1 * runs.regret.mean
    assert runs.is_worth_running
    assert not runs.is_enough
    assert runs.describe().startswith("Go on: the expected regret is 0.5")


def test_runs_that_noise_drowns_are_not_worth_it_and_this_is_said() -> None:
    runs = next_mixtures(one_of_two(), count=2, noise=1000.0)
    assert not runs.is_good_enough
    assert not runs.is_worth_running
    assert runs.is_enough
    assert "but 2 more runs would lower it by" in runs.describe()


def test_a_batch_asks_every_question_once() -> None:
    # Two metrics, each about a pair of domains of its own: four laws, and a run may answer either pair.
    def law(one: int, other: int) -> Any:
        def of(shares: Floats) -> Floats:
            return np.stack([1 - shares[:, one] / 2, 1 - shares[:, 2 + other] / 2], axis=1)

        return of

    laws = tuple(law(one, other) for one in (0, 1) for other in (0, 1)) * 8
    table = table_of(laws[0], domains=4)
    halves = MixtureLimits(at_most=0.5)
    sides = np.array([[0.5, 0.0, 0.25, 0.25], [0.45, 0.05, 0.25, 0.25], [0.25, 0.25, 0.5, 0.0]])
    runs = next_mixtures(KnownForecast(table, laws, 0.001), None, halves, count=2, runs_among=sides)
    assert runs.taken_from is not None
    assert 2 in runs.taken_from  # and one of the two that ask about the first pair
    assert runs.regret_after < 0.2 * runs.regret.mean


def test_runs_come_from_a_pool_each_once_and_the_answer_too() -> None:
    forecast = LinearForecast(linear_table())
    pool = np.random.default_rng(1).dirichlet(np.ones(4), 12)
    runs = next_mixtures(forecast, count=20, runs_among=pool, best_among=pool[:3])
    assert runs.taken_from is not None
    assert sorted(runs.taken_from) == list(range(12))
    np.testing.assert_array_equal(runs.shares, pool[list(runs.taken_from)])
    assert any(np.array_equal(runs.regret.recommended, row) for row in pool[:3])


@settings(max_examples=6, deadline=None)
@given(
    seed=st.integers(0, 1000),
    count=st.integers(1, 5),
    most=st.floats(0.4, 1.0),
    worst=st.booleans(),
)
def test_runs_keep_limits_and_are_the_same_for_the_same_seed(
    seed: int, count: int, most: float, worst: bool
) -> None:
    forecast = LinearForecast(linear_table(seed=seed), draws=16)
    limits, target = MixtureLimits(at_most=most), MixtureTarget(worst=worst)
    runs, again = (
        next_mixtures(forecast, target, limits, count=count, seed=seed) for _ in range(2)
    )
    assert runs.shares.shape == (count, 4)
    assert len(runs.reasons) == count
    feasible = limits.feasible(forecast.table.domains)
    assert feasible.contains(runs.shares).all()
    assert feasible.contains(runs.regret.recommended[None]).all()
    np.testing.assert_array_equal(runs.shares, again.shares)
    assert runs.reasons == again.reasons
    assert 0 <= runs.regret_after <= runs.regret.mean


def test_what_the_final_run_repeats_counts_for_the_choice_and_not_for_small_runs() -> None:
    # Of d0 there is a tenth of the budget, and repeated tokens teach nothing.
    def law(shares: Floats) -> Floats:
        return 1 - np.sqrt(shares[:, :1]) - 0.5 * np.sqrt(shares[:, 1:2])

    forecast = KnownForecast(table_of(law), (law,) * 8)
    limits = MixtureLimits(supply={"d0": 10, "d1": 1000, "d2": 1000}, budget=100, repetition=0.0)
    found = estimate_regret(forecast, None, limits).recommended
    np.testing.assert_allclose(found, [0.1, 0.9, 0.0], atol=0.01)


def test_the_tolerance_is_absolute_or_a_part_of_the_spread_between_runs() -> None:
    forecast = LinearForecast(linear_table(metrics=1))
    spread = forecast.table.values.std()
    assert next_mixtures(forecast, count=1).tolerance == pytest.approx(0.02 * spread)
    assert next_mixtures(forecast, count=1, tolerance=0.3).tolerance == 0.3
    assert next_mixtures(forecast, count=1, tolerance=100.0).is_good_enough


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"count": 0}, "`count` should be at least 1"),
        ({"count": 1, "tolerance": -0.1}, "`tolerance` should be a number of at least 0"),
        ({"count": 1, "relative_tolerance": np.nan}, "`relative_tolerance` should be a number"),
        ({"count": 1, "noise": -1.0}, "`noise` should be standard deviations"),
        (
            {"count": 1, "runs_among": np.ones((3, 2)) / 2},
            "`runs_among` should have a row a mixture",
        ),
        (
            {"count": 1, "best_among": np.ones((3, 4))},
            "`best_among` should have shares of at least 0",
        ),
        ({"count": 1, "limits": MixtureLimits(at_most=0.1)}, "contradict"),
        ({"count": 1, "target": MixtureTarget(metric="speed")}, "`speed`"),
    ],
)
def test_what_cannot_be_asked_is_refused_in_a_sentence(
    options: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(InputError, match=sentence):
        next_mixtures(LinearForecast(linear_table()), **options)


def test_a_forecast_of_too_few_draws_is_refused() -> None:
    with pytest.raises(InputError, match="at least 8 draws"):
        next_mixtures(LinearForecast(linear_table(), draws=4), count=1)


def test_a_recommended_mixture_outside_the_limits_is_refused() -> None:
    with pytest.raises(InputError, match="sum to 1 and keep the limits"):
        estimate_regret(
            one_of_two(), None, MixtureLimits(at_most=0.5), recommended=np.array([1.0, 0.0, 0.0])
        )


def test_laws_that_know_nothing_leave_no_regret_larger_than_the_runs_differ() -> None:
    known = one_of_two()
    wild = tuple(lambda shares, law=law: 1e6 * law(shares) for law in known.laws)
    forecast = KnownForecast(known.table, wild, spread=0.01)  # type: ignore[arg-type]
    regret = estimate_regret(forecast)
    assert (regret.mean, regret.high) == (1.0, 1.0), "the runs lie between 0 and 1"
    assert find_optimum(forecast).regret == 1.0
    runs = next_mixtures(forecast, count=2)
    assert runs.is_worth_running, "a run tells the two laws apart, whatever bounds the regret"
    assert runs.regret_after < 0.1

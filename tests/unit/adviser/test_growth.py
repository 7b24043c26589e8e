from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskmix.adviser._growth import (
    FLAT_GAIN,
    KEPT_PRIOR,
    MOST_DOUBLINGS,
    UNSURE_TRUST,
    CurveGrowth,
    Points,
    fit_growth,
)

BATCHES = np.arange(50.0, 801.0, 50.0)
SLOPES = {"a": 0.5, "b": 1.0, "c": 2.0, "d": 3.0}
LEVELS = {"a": 0.9, "b": 0.85, "c": 0.95, "d": 0.8}


def curves_of(
    slopes: Mapping[str, float], power: float, noise: float = 0.0, seeds: int = 1
) -> dict[str, list[Points]]:
    """By the law itself, with an error at every evaluation."""
    generator = np.random.default_rng(0)

    def curve(way: str) -> Points:
        scores = LEVELS[way] - slopes[way] * BATCHES**-power
        scores += noise * generator.standard_normal(len(BATCHES))
        return list(zip(BATCHES.tolist(), scores.tolist(), strict=True))

    return {way: [curve(way) for _ in range(seeds)] for way in slopes}


def points(*scores: float) -> Points:
    return [(100.0 * (place + 1), score) for place, score in enumerate(scores)]


def growth(**other: float) -> CurveGrowth:
    values = {"batches": 100.0, "power": 1.0, "trust": 1.0, "contraction": 1.0}
    values |= {"error": 0.0, "mean_error": 0.0} | other
    return CurveGrowth(slopes={"a": 1.0, "b": 3.0}, **values)  # type: ignore[arg-type]


@pytest.mark.parametrize("power", [0.3, 0.5, 1.0])
def test_a_known_law_is_found_again_and_read_beyond_its_end(power: float) -> None:
    found = fit_growth(curves_of(SLOPES, power), noise=0.0)
    assert found is not None
    assert found.batches == 800
    assert found.power == pytest.approx(power)
    assert found.slopes == pytest.approx(SLOPES)
    assert (found.trust, found.contraction) == pytest.approx((1.0, 1.0))
    assert (found.error, found.mean_error) == pytest.approx((0.0, 0.0), abs=1e-9)
    lack = 800**-power - 3200**-power
    gains = found.gains(["d", "a"], begin=800, end=3200)
    assert gains == pytest.approx([3.0 * lack, 0.5 * lack])


def test_noise_draws_slopes_to_their_mean_and_makes_an_error() -> None:
    equal = dict.fromkeys(SLOPES, 1.0)
    found = fit_growth(curves_of(equal, 0.5, noise=0.002), noise=0.002)
    assert found is not None
    gains = found.gains(list(SLOPES), begin=800, end=1600)
    truth = 800**-0.5 - 1600**-0.5
    assert gains == pytest.approx(np.full(4, truth), rel=0.5)
    assert np.ptp(gains) < 0.1 * truth, "they scatter no more than their errors make them"
    assert 0 < found.error < 0.006


def test_more_seeds_make_gains_truer() -> None:
    def off(seeds: int) -> float:
        found = fit_growth(curves_of(SLOPES, 0.5, noise=0.01, seeds=seeds), noise=0.01)
        assert found is not None
        gains = found.gains(list(SLOPES), begin=800, end=1600)
        truth = np.array(list(SLOPES.values())) * (800**-0.5 - 1600**-0.5)
        return float(np.abs(gains - truth).max())

    assert off(40) < 0.6 * off(1)


def test_a_gain_worked_out_by_hand() -> None:
    # From 100 to 200 batches a slope of 1 brings 1/100 - 1/200 = 0.005.
    assert growth().gains(["a", "b"], begin=100, end=200) == pytest.approx([0.005, 0.015])
    assert growth().gains(["unknown"], begin=100, end=200) == pytest.approx([0.01]), "the mean"
    half = growth(trust=0.5).gains(["a", "b"], begin=100, end=200)
    assert half == pytest.approx([0.0075, 0.0125]), "differences by half, their mean as it is"


@pytest.mark.parametrize(
    ("batches", "flat"),
    # The steepest is 3: a doubling from n brings 3 (1/n - 1/2n) = 1.5/n, a fifth of a point at 750.
    [(100.0, 750.0), (50.0, 50.0 * 2**MOST_DOUBLINGS), (800.0, 800.0)],
)
def test_a_curve_is_flat_where_a_doubling_brings_a_fifth_of_a_point(
    batches: float, flat: float
) -> None:
    assert FLAT_GAIN == 0.002
    assert growth(batches=batches).flat_after == pytest.approx(flat)


def test_ways_that_drew_together_go_on_to_do_so() -> None:
    # Until half of the batches all are flat; then differences shrink to 0.6 of what they were.
    def curve(level: float) -> Points:
        return points(*[level] * 4, *[0.5 + 0.6 * (level - 0.5)] * 4)

    found = fit_growth({way: [curve(x)] for way, x in zip("abc", (0.3, 0.5, 0.7), strict=True)}, 0)
    assert found is not None
    # What is seen once is believed in part, and the rest of it counts as an error.
    assert found.contraction == pytest.approx(1 - 0.4 / (1 + KEPT_PRIOR))
    lack = found.contraction - 0.6
    assert found.error == pytest.approx(lack * np.sqrt(0.2**2 + 0.2**2))


def test_differences_are_kept_where_seeds_could_have_shrunk_them() -> None:
    def curve(level: float) -> Points:
        return points(*[level] * 4, *[0.5 + 0.6 * (level - 0.5)] * 4)

    curves = {way: [curve(x)] for way, x in zip("abc", (0.49, 0.5, 0.51), strict=True)}
    found = fit_growth(curves, noise=0.1)
    assert found is not None
    assert found.contraction > 0.99


def test_early_slopes_that_say_nothing_are_not_trusted() -> None:
    # Who rose early rises no more, and who did not rises late.
    early, late = points(0.1, 0.4, 0.5, 0.55), points(0.5, 0.5, 0.5, 0.5)
    curves = {
        "early": [[*early, *points(*[0.55] * 8)[4:]]],
        "late": [[*late, *points(*[0.7] * 8)[4:]]],
    }
    found = fit_growth(curves, noise=0.0)
    assert found is not None
    assert found.trust == 0.0
    assert np.ptp(found.gains(["early", "late"], begin=800, end=1600)) == 0.0


def test_two_evaluations_are_a_curve_and_one_is_none() -> None:
    assert fit_growth({"a": [points(0.5)], "b": []}, noise=0.1) is None
    assert fit_growth({}, noise=0.1) is None
    found = fit_growth({"a": [points(0.5, 0.6)], "b": [points(0.5)]}, noise=0.01)
    assert found is not None
    assert found.batches == 200
    assert list(found.slopes) == ["a"]
    assert np.isfinite(found.gains(["a", "b"], begin=200, end=400)).all()


@given(
    st.lists(
        st.lists(st.floats(-1, 1), min_size=2, max_size=9).map(sorted), min_size=1, max_size=4
    ),
    st.floats(0, 0.1),
    st.floats(0, 10),
)
def test_no_curve_is_said_to_fall_and_no_doublings_have_no_error(
    scores: list[list[float]], noise: float, doublings: float
) -> None:
    found = fit_growth({str(way): [points(*some)] for way, some in enumerate(scores)}, noise)
    assert found is not None
    end = found.batches * 2**doublings
    gains = found.gains([*found.slopes, "unknown"], begin=found.batches, end=end)
    assert (gains >= 0).all()
    assert 0 <= found.trust <= 1
    assert 0 < found.contraction_between(found.batches, end) <= 1
    assert found.error_between(found.batches, found.batches) == 0
    assert found.mean_error_between(end, end) == 0
    assert found.contraction_between(end, end) == 1
    assert found.batches <= found.flat_after <= found.batches * 2**MOST_DOUBLINGS


def test_what_a_wrong_trust_would_do_is_shared_by_all_ways() -> None:
    # Slopes 1 and 3, power 1: from 100 to 400 batches 0.0075 and 0.0225, so 0.0075 about the mean.
    found = growth(trust=0.0).unsure_between(["a", "b", "?"], begin=100, end=400)
    assert found == pytest.approx(UNSURE_TRUST * np.array([-0.0075, 0.0075, 0.0]))

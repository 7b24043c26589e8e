from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from taskmix.errors import InputError, OptionError
from taskmix.numerics import PowerLaw, fit_power_law, squares_by_power

SIZES = np.array([5.0, 10.0, 20.0, 40.0, 80.0, 160.0])


def test_exact_points_give_back_limit_factor_and_power() -> None:
    fit = fit_power_law(SIZES, 0.9 - 0.8 * SIZES**-0.5)
    assert (fit.best.limit, fit.best.factor, fit.best.power) == pytest.approx((0.9, -0.8, 0.5))
    # 0.9 - 0.8 / 20 by hand, and an interval without width
    said = fit.predict([400.0])
    assert (said.low[0], said.values[0], said.high[0]) == pytest.approx(
        (0.86, 0.86, 0.86), abs=1e-6
    )


def test_limit_and_factor_at_one_power_are_those_worked_out_by_hand() -> None:
    # 1/x is 1, 1/2 and 1/4; the line of least squares through (1, 4), (1/2, 3), (1/4, 1):
    # means 7/12 and 8/3, slope (sum xy - n mx my) / (sum xx - n mx^2) = (13/12) / (7/24) = 26/7
    law = fit_power_law([1, 2, 4], [4.0, 3.0, 1.0], powers=[1.0]).best
    assert (law.factor, law.limit) == pytest.approx((26 / 7, 8 / 3 - 26 / 7 * 7 / 12))


def test_a_weight_of_three_is_three_equal_points() -> None:
    generator = np.random.default_rng(0)
    values = 1 + SIZES**-0.5 + 0.01 * generator.standard_normal(len(SIZES))
    weights = np.array([3, 1, 1, 2, 1, 1])
    once = fit_power_law(SIZES, values, weights=weights).best
    often = fit_power_law(np.repeat(SIZES, weights), np.repeat(values, weights)).best
    assert once == often or (once.limit, once.factor) == pytest.approx((often.limit, often.factor))


def test_huber_is_hardly_moved_by_one_point_far_off() -> None:
    sizes = np.geomspace(1, 1000, 20)
    generator = np.random.default_rng(1)
    values = 2 + sizes**-0.5 + 0.005 * generator.standard_normal(20)
    values[12] += 1.0
    truth = 2 + 4000**-0.5
    robust, plain = (
        abs(float(fit_power_law(sizes, values, huber=each).predict([4000.0]).values[0]) - truth)
        for each in (True, False)
    )
    assert robust < 0.03 < plain


def test_intervals_hold_what_they_promise_beyond_the_data_and_widen() -> None:
    generator, held, widths = np.random.default_rng(2), [], []
    for _ in range(300):
        law = PowerLaw(
            generator.uniform(0, 1), generator.uniform(0.5, 2), generator.uniform(0.2, 1)
        )
        values = law.at(SIZES) + 0.01 * generator.standard_normal(len(SIZES))
        said = fit_power_law(SIZES, values).predict([80.0, 640.0], level=0.9)
        held.append(said.holds(law.at([80.0, 640.0]))[1])
        widths.append(said.high - said.low)
    assert 0.85 <= np.mean(held) <= 0.99
    inside, outside = np.median(widths, axis=0)
    assert outside > 2 * inside


def test_squares_of_curves_that_share_a_power_agree_with_a_general_optimiser() -> None:
    generator = np.random.default_rng(3)
    curves = [
        (SIZES, a + b * SIZES**-0.4 + 0.02 * generator.standard_normal(len(SIZES)))
        for a, b in ((1.0, 2.0), (0.5, -1.0))
    ]

    def missed(told: np.ndarray, *, one: bool) -> float:
        factors = (told[2], told[2]) if one else (told[2], told[3])
        return sum(
            float(((y - limit - factor * x**-0.7) ** 2).sum())
            for (x, y), limit, factor in zip(curves, told[:2], factors, strict=True)
        )

    for one in (False, True):
        oracle = minimize(lambda told, one=one: missed(told, one=one), np.zeros(4), tol=1e-12).fun
        found = squares_by_power(curves, [0.7], one_factor=one)
        assert found[0] == pytest.approx(oracle, rel=1e-6)


@pytest.mark.parametrize("sizes", [[1.0], [0.0, 1.0], [1.0, np.nan]])
def test_sizes_that_have_no_power_are_refused_in_a_sentence(sizes: list[float]) -> None:
    with pytest.raises(InputError, match="A power law should have"):
        fit_power_law(sizes, np.ones(len(sizes)))
    with pytest.raises(OptionError, match="`weights` should have"):
        fit_power_law([1.0, 2.0], [1.0, 2.0], weights=[1.0, 0.0])

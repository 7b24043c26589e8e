"""Constants by least squares, and noise as it is: unequal, far off, of equal rows, weighted."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.stats import f as f_distribution

from taskmix.errors import InputError, OptionError
from taskmix.laws import LawRegressor, SearchOptions, evaluate_formula, fit_formula, parse_formula
from taskmix.laws._expression import Variable, free
from taskmix.laws._fit import Observations, fit_constants
from taskmix.laws._noise import (
    BEND,
    huber_loss,
    huber_scale,
    lack_of_fit,
    likeliest_noise,
    row_weights,
)
from taskmix.laws._normal import add, multiply
from taskmix.laws._parse import free_numbers
from taskmix.laws._targets import divided_rows

QUICK = SearchOptions(rounds=1, beam=1, branches=2)


def test_noise_that_falls_with_an_input_is_told_by_that_input() -> None:
    generator = np.random.default_rng(1)
    n = generator.choice([1.0, 4.0, 16.0, 64.0], 400)
    T = generator.uniform(1, 10, 400)
    law = 5 + 2 * T
    target = law + generator.normal(size=400) / np.sqrt(n)
    assert likeliest_noise({"n": n, "T": T}, target, law) == "n^-0.5"


@pytest.mark.parametrize(("power", "word"), [(0.0, "absolute"), (0.5, "root"), (1.0, "relative")])
def test_noise_that_grows_with_the_value_is_told_by_its_power(power: float, word: str) -> None:
    generator = np.random.default_rng(2)
    x = np.geomspace(1, 1000, 600)
    law = 3 * x
    target = law + 0.2 * law**power * generator.normal(size=600)
    found = likeliest_noise({"x": generator.permutation(x)}, target, law)
    assert found == word


def test_rows_count_by_their_noise_and_by_what_they_are_means_of() -> None:
    columns, target = {"n": np.array([1.0, 4.0])}, np.array([1.0, 3.0])
    # The noise is 1 / sqrt(n), so the weights are as 1 to 2, and three times that for 9 measurements.
    weight = row_weights(columns, target, "n^-0.5", None, np.array([1.0, 9.0]))
    assert weight[1] / weight[0] == pytest.approx(6.0)


def test_a_word_for_noise_that_means_nothing_is_refused() -> None:
    n = np.arange(1.0, 21.0)
    with pytest.raises(OptionError, match=r"power of an input, such as n\^-0\.5. Found 'm\^2'"):
        LawRegressor(noise="m^2").fit({"n": n}, n)
    with pytest.raises(OptionError, match=r"auto, squares or huber\. Found 'cubes'"):
        LawRegressor(loss="cubes").fit({"n": n}, n)  # type: ignore[arg-type]


@given(st.lists(st.floats(-50, 50), min_size=3, max_size=30), st.floats(0.1, 10))
def test_hubers_loss_never_exceeds_squares_and_agrees_below_its_bound(
    deviations: list[float], bound: float
) -> None:
    rows = np.array(deviations)
    losses = huber_loss(rows, bound)
    assert np.all(losses <= rows**2 + 1e-9)
    inside = np.abs(rows) <= bound
    np.testing.assert_array_equal(losses[inside], rows[inside] ** 2)


def test_the_scale_is_the_likeliest_one() -> None:
    rows = np.random.default_rng(3).standard_t(2, size=200)

    def cost(log_scale: np.ndarray) -> float:
        scale = math.exp(log_scale[0])
        return 0.5 * float(np.sum(huber_loss(rows / scale, BEND))) + len(rows) * math.log(scale)

    slow = math.exp(minimize(cost, [0.0], method="Nelder-Mead").x[0])
    assert huber_scale(rows) == pytest.approx(slow, rel=1e-3)


def test_a_fit_with_a_bound_finds_the_minimum_of_hubers_loss() -> None:
    generator = np.random.default_rng(5)
    x = np.linspace(0, 10, 60)
    y = 2 + 3 * x + generator.normal(size=60)
    y[::10] += 40
    data = Observations({"x": x}, y, np.ones(60), bound=1.5)
    found = fit_constants(add(multiply(free(1.0), Variable("x")), free(0.0)), data, tolerance=1e-12)

    def loss(constants: np.ndarray) -> float:
        return float(np.mean(huber_loss(constants[0] * x + constants[1] - y, 1.5)))

    slow = minimize(loss, [3.0, 2.0], method="Nelder-Mead", options={"xatol": 1e-8, "fatol": 1e-12})
    np.testing.assert_allclose(found.expression.constants, slow.x, rtol=1e-3)
    assert found.mean_square == pytest.approx(slow.fun, rel=1e-5)


def test_a_law_is_found_in_spite_of_outliers_where_squares_go_astray() -> None:
    generator = np.random.default_rng(6)
    n = generator.choice(np.geomspace(100, 10_000, 15), 120)
    y = 3 * np.sqrt(n) * (1 + 0.01 * generator.normal(size=120))
    far = generator.choice(120, 8, replace=False)
    y[far] *= 3
    resisting = LawRegressor(QUICK).fit({"n": n}, y)
    squares = LawRegressor(QUICK, loss="squares").fit({"n": n}, y)
    truth = 3 * math.sqrt(1e5)
    assert resisting.loss_ == "huber"
    assert squares.loss_ == "squares"
    errors = [abs(model.predict({"n": [1e5]})[0] / truth - 1) for model in (resisting, squares)]
    assert errors[0] < 0.02 < errors[1]
    assert any("Huber's loss" in note for note in resisting.notes_)
    assert resisting.law_.same_form("sqrt(n)")


def test_equal_rows_tell_the_pure_error_and_whether_the_law_fits() -> None:
    x, y = np.array([1.0, 1, 2, 2, 3, 3]), np.array([1.0, 3, 2, 4, 9, 11])
    found = lack_of_fit({"x": x}, y, x + 1, np.ones(6), 1)
    assert found is not None
    # By hand: S_e = 2 + 2 + 2 over 3 degrees, S - S_e = 2 (10 - 4)² = 72 over 3 - 1.
    assert found.statistic == pytest.approx((72 / 2) / (6 / 3))
    assert found.probability == pytest.approx(float(f_distribution.sf(18.0, 2, 3)))
    assert (found.cells, found.beyond) == (3, 3)
    assert lack_of_fit({"x": np.arange(6.0)}, y, x, np.ones(6), 1) is None


def test_rows_with_equal_inputs_are_held_out_together() -> None:
    x = np.repeat(np.arange(80.0), 3)
    train, held_out = divided_rows({"x": x}, 0.1, 0)
    assert not set(x[train]) & set(x[held_out])
    assert 24 <= len(held_out) <= 27
    assert sorted([*train, *held_out]) == list(range(240))


def test_a_row_of_weight_four_counts_as_the_mean_of_four() -> None:
    generator = np.random.default_rng(8)
    n = np.repeat(np.arange(1.0, 31.0), 4)
    y = 2 * n + generator.normal(size=120)
    means = y.reshape(30, 4).mean(axis=1)
    whole = LawRegressor(QUICK, noise="absolute", loss="squares", seed=1)
    whole.fit({"n": n[::4]}, means, sample_weight=np.full(30, 4.0))
    unweighted = fit_formula("n", {"n": n}, y, noise="absolute")
    law = next(law for law in whole.front_ if law.same_form("2*n"))
    assert law.expression.constants[0] == pytest.approx(
        unweighted.expression.constants[0], rel=0.02
    )
    # The deviation is that of one measurement, not of a mean of four.
    assert law.deviation == pytest.approx(1.0, abs=0.3)


def test_weights_have_to_be_positive_and_one_a_row() -> None:
    n = np.arange(1.0, 21.0)
    with pytest.raises(InputError, match=r"weight above 0 for each of the 20 rows\. Found 0"):
        LawRegressor().fit({"n": n}, n, sample_weight=np.zeros(20))
    with pytest.raises(InputError, match="Found 3 of them"):
        LawRegressor().fit({"n": n}, n, sample_weight=np.ones(3))


def rows(formula: str, seed: int = 0) -> tuple[dict[str, np.ndarray], np.ndarray]:
    generator = np.random.default_rng(seed)
    columns = {"n": generator.uniform(1, 50, 300), "T": generator.uniform(1, 15, 300)}
    return columns, evaluate_formula(parse_formula(formula), columns)


def test_it_agrees_with_scipy_on_a_curved_problem() -> None:
    from scipy.optimize import curve_fit

    columns, y = rows("5*n/(n + 12)")
    y = y + 0.1 * np.random.default_rng(1).normal(size=len(y))
    form = free_numbers(parse_formula("2*n/(n + 3)"))
    found = fit_constants(form, Observations(columns, y, np.ones(len(y))), tolerance=1e-14)
    wanted, _ = curve_fit(lambda n, a, c: a * n / (n + c), columns["n"], y, p0=[2, 3])
    np.testing.assert_allclose(found.expression.constants, wanted, rtol=1e-5)


@settings(max_examples=25, deadline=None)
@given(st.floats(0.5, 20), st.floats(1, 40))
def test_the_constants_of_a_saturation_come_back_without_noise(scale: float, half: float) -> None:
    columns, y = rows(f"{scale}*n/(n + {half})")
    data = Observations(columns, y, np.ones(len(y)))
    found = fit_constants(free_numbers(parse_formula("3*n/(n + 8)")), data, tolerance=1e-14)
    np.testing.assert_allclose(found.expression.constants, [scale, half], rtol=1e-4)


def test_a_constant_is_the_weighted_mean() -> None:
    data = Observations({"n": np.arange(3.0)}, np.array([1.0, 2.0, 6.0]), np.array([1.0, 1.0, 2.0]))
    # Weights are squared: (1 + 2 + 4 * 6) / 6.
    assert fit_constants(free(0.0), data).expression.constants[0] == pytest.approx(4.5)

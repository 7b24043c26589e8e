from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taskmix.laws import parse_formula
from taskmix.laws._fitting._fit import Observations, fit_constants
from taskmix.laws._fitting._noise import row_weights
from taskmix.laws._forms._evaluate import evaluate_formula
from taskmix.laws._forms._expression import free
from taskmix.laws._forms._parse import free_numbers


def rows(formula: str, seed: int = 0) -> tuple[dict[str, np.ndarray], np.ndarray]:
    generator = np.random.default_rng(seed)
    columns = {"n": generator.uniform(1, 50, 300), "T": generator.uniform(1, 15, 300)}
    return columns, evaluate_formula(parse_formula(formula), columns)


def test_a_straight_line_is_solved_in_one_step() -> None:
    columns, y = rows("3*n + 2")
    data = Observations(columns, y, np.ones(len(y)))
    found = fit_constants(free_numbers(parse_formula("1*n*7 + 9")), data, steps=1)
    np.testing.assert_allclose(sorted(found.expression.constants), [2, 3], rtol=1e-9)


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


def test_a_step_out_of_the_domain_is_refused() -> None:
    columns, y = rows("log(n + 0.5)")
    data = Observations(columns, y, np.ones(len(y)))
    found = fit_constants(free_numbers(parse_formula("log(n - 0.9)")), data)
    assert np.isfinite(found.mean_square)
    assert found.expression.constants[-1] == pytest.approx(0.5, abs=1e-3)


def test_a_formula_that_is_defined_nowhere_is_infinitely_bad() -> None:
    columns, y = rows("n")
    data = Observations(columns, y, np.ones(len(y)))
    assert fit_constants(free_numbers(parse_formula("log(0 - n)*2")), data).mean_square == np.inf


def test_a_constant_is_the_weighted_mean() -> None:
    data = Observations({"n": np.arange(3.0)}, np.array([1.0, 2.0, 6.0]), np.array([1.0, 1.0, 2.0]))
    # Weights are squared: (1 + 2 + 4 * 6) / 6.
    assert fit_constants(free(0.0), data).expression.constants[0] == pytest.approx(4.5)


@pytest.mark.parametrize("kind", ["absolute", "relative"])
def test_the_kind_of_noise_is_told_from_the_rows(kind: str) -> None:
    right = 0
    for seed in range(10):
        columns, y = rows("3*n^0.7*T^0.5", seed)
        noise = np.random.default_rng(seed).normal(size=len(y))
        y = y * (1 + 0.05 * noise) if kind == "relative" else y + 2 * noise
        right += (np.ptp(row_weights(columns, y, "auto")) > 0) == (kind == "relative")
    assert right >= 9

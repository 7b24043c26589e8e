from __future__ import annotations

import numpy as np
import pytest
from law_tables import table_of

from taskmix.errors import OptionError
from taskmix.laws import GplearnEngine, LawRegressor, OperonEngine
from taskmix.laws._engines._translate import fits_of
from taskmix.laws._fitting._fit import Observations
from taskmix.laws._forms._print import as_formula


def test_operon_gives_the_same_kind_of_result() -> None:
    pytest.importorskip("pyoperon")
    X, y = table_of("0.69*sqrt(n)", 0)
    model = LawRegressor(OperonEngine(evaluations=20_000), seed=1).fit(X, y)
    assert model.law_.errors.held_out_r2 > 0.99
    assert model.law_.complexity <= 12


def test_gplearn_runs_with_the_papers_settings() -> None:
    pytest.importorskip("gplearn")
    X, y = table_of("0.69*sqrt(n)", 0)
    engine = GplearnEngine(generations=3, population=60)
    model = LawRegressor(engine, seed=1).fit(X, y)
    assert len(model.front_) >= 1
    assert np.isfinite(model.law_.errors.held_out)
    parameters = engine.regressor(["n"], 0).get_params()
    assert parameters["p_crossover"] == 0.7
    assert parameters["parsimony_coefficient"] == 0.2
    assert {str(getattr(f, "name", f)) for f in parameters["function_set"]} == {
        "add", "sub", "mul", "div", "log", "sqrt", "neg", "exp",
    }  # fmt: skip


def test_formulas_of_nested_calls_are_read() -> None:
    data = Observations({"n": np.array([1.0, 4.0])}, np.array([1.0, 2.0]), np.ones(2))
    (found,) = fits_of(["div(mul(sqrt(n), 200.0), 100)"], data)
    assert as_formula(found.expression) == "2*sqrt(n)"


def test_what_cannot_be_read_or_evaluated_is_left_out() -> None:
    data = Observations({"n": np.array([1.0, 4.0])}, np.array([1.0, 2.0]), np.ones(2))
    assert fits_of(["tan(n)", "add(n", "log(sub(n, 9.0))", "add(n, 1) n"], data) == []


@pytest.mark.parametrize(
    "make",
    [lambda: OperonEngine(evaluations=1), lambda: GplearnEngine(scale=0.0)],
)
def test_options_of_engines_are_checked(make: object) -> None:
    with pytest.raises(OptionError):
        make()  # type: ignore[operator]

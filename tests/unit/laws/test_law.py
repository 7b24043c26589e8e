from __future__ import annotations

import numpy as np
import pytest
from law_tables import formula_of, table_of
from sklearn.base import clone

from taskmix.errors import InputError, OptionError, ShapeError
from taskmix.laws import (
    PAPER_LAWS,
    Law,
    LawRegressor,
    SearchOptions,
    bootstrap_law,
    compare_formulas,
    fit_formula,
    fit_groups,
    learn_laws,
    paper_comparisons,
)

QUICK = SearchOptions(rounds=1, beam=1, branches=2)


def law_for(formula: str, X: dict[str, np.ndarray], y: np.ndarray) -> Law:
    return fit_formula(formula, X, y, noise="relative")


def test_the_interval_of_a_straight_line_is_the_textbooks() -> None:
    generator = np.random.default_rng(0)
    x = np.linspace(1, 10, 200)
    y = 2 * x + 1 + generator.normal(size=200)
    law = fit_formula("2*x + 1", {"x": x}, y, noise="absolute")
    design = np.column_stack([x, np.ones(200)])
    solved, left, *_ = np.linalg.lstsq(design, y, rcond=None)
    errors = np.sqrt(np.diag(np.linalg.inv(design.T @ design)) * left[0] / 198)
    for constant, value, error in zip(law.constants(), solved, errors, strict=True):
        assert constant.mean == pytest.approx(value, rel=1e-6)
        assert constant.half_width == pytest.approx(
            1.972 * error, rel=0.15
        )  # robust to unequal noise


def test_intervals_cover_the_true_constants() -> None:
    held = 0
    for seed in range(60):
        X, y = table_of("3*n/(n + 5000)", seed)
        scale, half = law_for("2*n/(n + 3000)", X, y).constants()
        held += (scale.low <= 3 <= scale.high) + (half.low <= 5000 <= half.high)
    assert 104 <= held <= 120  # of 120, 95 % wanted


def test_the_bootstrap_agrees_with_the_delta_method_where_both_should() -> None:
    X, y = table_of("3*n/(n + 5000)", 0)
    law = law_for("2*n/(n + 3000)", X, y)
    drawn = bootstrap_law(law, X, y, generator=np.random.default_rng(0), repeats=150)
    for one, other in zip(law.constants(), drawn.constants(), strict=True):
        assert one.half_width == pytest.approx(other.half_width, rel=0.35)
    low, high = drawn.predict({"n": np.array([3000.0])})
    assert low[0] < law.predict({"n": [3000.0]}).values[0] < high[0]


def test_a_measurement_is_less_sure_than_the_law() -> None:
    X, y = table_of("0.69*sqrt(n)", 0)
    law = law_for("1*sqrt(n)*0.5", X, y)
    of_law, of_row = law.predict(X), law.predict(X, measurement=True)
    inside = np.mean((of_row.low <= y) & (y <= of_row.high))
    assert 0.93 <= inside <= 0.97
    assert np.all(of_law.high - of_law.low < of_row.high - of_row.low)


def test_a_prediction_outside_the_data_says_so() -> None:
    X, y = table_of("0.69*sqrt(n)", 0)
    law = law_for("0.5*sqrt(n)", X, y)
    assert law.predict({"n": [5000.0]}).warning == ""
    far = law.predict({"n": [5000.0, 1e6]})
    assert far.outside.tolist() == [False, True]
    assert "n = 1e+06 (data 1000 to 20000)" in far.warning


@pytest.mark.parametrize(
    ("formula", "X", "words"),
    [
        ("a*n", {"n": [1.0, 2.0, 3.0]}, "Found a, and the columns are n"),
        ("2*n", {"n": [1.0, 2.0]}, "each of the 3 values of the target. Found 2 in `n`"),
        ("1 + 2*n + 3*n^2", {"n": [1.0, 2.0, 3.0]}, "more rows than that. Found 3"),
        ("2*log(n)", {"n": [-1.0, 2.0, 3.0]}, "should have a value on every row"),
    ],
)
def test_a_form_that_cannot_be_fitted_is_told(
    formula: str, X: dict[str, list[float]], words: str
) -> None:
    with pytest.raises(InputError, match=words):
        fit_formula(formula, X, [1.0, 2.0, 3.0])


@pytest.fixture(scope="module")
def searched() -> LawRegressor:
    """The search's laws for a table of equation 6."""
    X, y = table_of(formula_of("eq6"), 0)
    return LawRegressor().fit(X, y)


def test_the_gain_of_a_change_is_the_difference_of_two_predictions(
    searched: LawRegressor,
) -> None:
    law = searched.law_
    assert law.same_form(formula_of("eq6")), str(law)
    gain = law.gain({"n": 2000, "ami": 0.6, "T": 2}, T=5)
    before = float(np.sqrt((np.log(2) + 0.45) * 0.6 * 2000 / 1.2))
    after = float(np.sqrt((np.log(5) + 0.45) * 0.6 * 2000 / 1.2))
    assert gain.interval.mean == pytest.approx(after - before, rel=0.02)
    assert gain.interval.low < gain.interval.mean < gain.interval.high
    assert law.gain({"n": 2000, "ami": 0.6, "T": 2}, T=90).warning
    with pytest.raises(OptionError, match="change should be of an input"):
        law.gain({"n": 2000}, tasks=5)


def test_one_form_is_told_from_another() -> None:
    X, y = table_of(formula_of("eq6"), 0)
    law = law_for(formula_of("eq6"), X, y)
    assert law.same_form("sqrt(3*n*(log(T) + 2)*ami/(ami + 9))")
    assert not law.same_form("sqrt(n*T*ami)")
    assert not law.same_form("sqrt(other)")


def test_a_law_is_sympy_latex_python_and_a_function() -> None:
    X, y = table_of("0.69*sqrt(n)", 0)
    law = law_for("0.5*sqrt(n)", X, y)
    values = law.predict(X).values
    np.testing.assert_allclose(law.function()(n=X["n"]), values)
    assert law.function()(n=400.0) == pytest.approx(law.expression.constants[0] * 20)
    assert r"\sqrt{n}" in law.latex
    assert "np.sqrt(n)" in law.python
    assert str(law).startswith("y = 0.6")
    assert law.growth()["n"].power == 0.5  # type: ignore[union-attr]
    with pytest.raises(InputError, match="called with n"):
        law.function()(T=2)


def test_given_formulas_are_judged_on_the_same_rows() -> None:
    X, y = table_of("0.69*sqrt(n)", 0)
    (found,) = compare_formulas({"twice": "1.38*sqrt(n)"}, X, y)
    assert found.as_given > 100 * found.rescaled
    assert found.refitted == pytest.approx(found.rescaled)
    names = {each.name for each in paper_comparisons(X, y)}
    assert {"eq3", "eq7", "eq8", "maurer_n", "liu_n"} <= names
    assert not names & {"eq6", "eq11"}  # there is no AMI
    assert len(PAPER_LAWS) == 9


def test_the_papers_formulas_are_in_hundredths() -> None:
    X = {"n": [1000.0, 4000.0], "T": [1.0, 4.0], "ami": [0.5, 0.8]}
    by_hand = {  # worked out with a calculator, in hundredths
        "eq3": (21.8197, 43.6394),
        "eq4": (5.7735, 7.3030),
        "eq5": (4.4721, 8.9443),
        "eq6": (14.3019, 64.7861),
        "eq7": (31.6228, 63.2456),
        "eq8": (21.8197, 43.6394),
        "eq9": (38.4615, 48.6504),
        "eq10": (0.0, 31.2753),
        "eq11": (88.7431, 421.6911),
    }
    shares = {each.name: each for each in paper_comparisons(X, [0.2, 0.4])}
    hundredths = {each.name: each for each in paper_comparisons(X, [20.0, 40.0])}
    for name, (first, second) in by_hand.items():
        wanted = ((first - 20) ** 2 + (second - 40) ** 2) / 2
        assert hundredths[name].as_given == pytest.approx(wanted, rel=1e-4)
        assert shares[name].as_given == pytest.approx(wanted / 100**2, rel=1e-4)


def test_the_regressor_has_scikit_learns_manners() -> None:
    X, y = table_of("0.69*sqrt(n)", 0)
    array = X["n"][:, None]
    model = LawRegressor(noise="relative", folds=3, enough=0.99)
    assert clone(model).get_params() == model.get_params()
    assert model.fit(array, y) is model
    assert model.n_features_in_ == 1
    assert model.score(array, y) > 0.99
    assert model.predict(array[:5]).shape == (5,)
    assert model.law_ in list(model.front_)
    assert np.isfinite(model.law_.errors.cross)


def test_pandas_and_arrow_tables_are_taken() -> None:
    import pandas as pd
    import pyarrow as pa

    X, y = table_of("0.69*sqrt(n)", 0, noise=0.0)
    frame = pd.DataFrame(X)
    model = LawRegressor(enough=0.999).fit(frame, pd.Series(y, name="f1"))
    assert model.law_.target == "f1"
    assert model.feature_names_in_.tolist() == ["n"]
    np.testing.assert_allclose(model.predict(frame), y, rtol=1e-6)
    np.testing.assert_allclose(model.predict(pa.table(X)), y, rtol=1e-6)


def test_a_frame_with_numbered_columns_is_read_as_an_array_by_everything_that_takes_frames() -> (
    None
):
    import pandas as pd

    n, m = np.arange(1.0, 25.0), np.tile([1.0, 2.0, 4.0, 8.0], 6)
    array, y = np.column_stack([n, m]), 3 * np.sqrt(n) + m
    frame = pd.DataFrame(array)
    model = LawRegressor(QUICK, enough=0.99).fit(frame, pd.Series(y, name=1))
    assert (model.law_.target, model.n_features_in_) == ("y", 2)
    assert model.feature_names_in_.tolist() == ["x0", "x1"]
    np.testing.assert_array_equal(model.predict(frame), model.predict(array))
    np.testing.assert_array_equal(model.law_.predict(frame).values, model.predict(array))
    assert fit_formula("2*sqrt(x0) + x1", frame, y).text == "3*sqrt(x0) + x1"
    (compared,) = compare_formulas({"mine": "3*sqrt(x0) + x1"}, frame, y)
    assert compared.as_given == pytest.approx(0.0, abs=1e-12)
    drawn = bootstrap_law(model.law_, frame, y, generator=np.random.default_rng(0), repeats=20)
    assert len(drawn.draws) == 20
    assert fit_groups(model.law_, frame, y, ["a", "b"] * 12).predict(frame, ["a"] * 24).size == 24
    several = LawRegressor(QUICK, enough=0.99).fit(frame, pd.DataFrame({0: y, 1: 2 * y}))
    assert several.targets_ == ("y0", "y1")
    assert several.predict(frame).shape == (24, 2)


def test_a_column_that_is_not_there_is_told_whatever_the_table_is() -> None:
    import pandas as pd
    import pyarrow as pa

    columns = {"n": np.arange(1.0, 25.0), "f1": np.arange(1.0, 25.0) ** 2}
    for table in (columns, pd.DataFrame(columns), pa.table(columns)):
        with pytest.raises(InputError, match=r"a column `T`. Found n, f1"):
            learn_laws(table, target="f1", inputs=["n", "T"])
        with pytest.raises(InputError, match=r"a column `T`. Found n, f1"):
            fit_formula("2*T", {"T": columns["n"]}, columns["f1"]).predict(table)
    with pytest.raises(InputError, match=r"names of columns should be text. Found 0"):
        LawRegressor().fit(pd.DataFrame({0: columns["n"], "m": columns["f1"]}), columns["f1"])


GOOD = {"n": np.linspace(1, 20, 60), "T": np.tile([1.0, 2.0, 3.0], 20)}


@pytest.mark.parametrize(
    ("X", "y", "words"),
    [
        ({**GOOD, "T": np.full(60, 3.0)}, GOOD["n"], "`T` should vary. Found 3 in every row"),
        ({**GOOD, "T": ["many"] * 60}, GOOD["n"], "`T` should be numbers. Found 'many' in row 1"),
        ({**GOOD, "n": [np.nan, *GOOD["n"][1:]]}, GOOD["n"], "finite number in every row"),
        ({**GOOD, "n": [None, *GOOD["n"][1:]]}, GOOD["n"], "finite number in every row"),
        ({**GOOD, "n": [np.inf, *GOOD["n"][1:]]}, GOOD["n"], "Found inf in row 1. Leave"),
        ({**GOOD, "n": [np.nan] * 3 + [1.0] * 57}, GOOD["n"], "no value in row 1 and 2 more rows"),
        (GOOD, GOOD["n"], "Found the values of `y` in `n`"),
        ({**GOOD, "m": GOOD["n"]}, GOOD["n"] ** 2, "Found in `m` the values of `n`"),
        ({**GOOD, "m": -5 * GOOD["n"]}, GOOD["n"] ** 2, "Found in `m` -5 times the values of `n`"),
        ({"n": GOOD["n"][:9]}, GOOD["n"][:9], "at least 16 rows"),
        (GOOD, np.full(60, 2.0), "`y` should vary"),
        ({"n": GOOD["n"][:50]}, GOOD["n"], "one value for each of the 60"),
        ({}, GOOD["n"], "at least one input"),
        ({"learning rate": GOOD["n"]}, GOOD["n"], "should be a word"),
        ({"log": GOOD["n"]}, GOOD["n"], "should be a word"),
    ],
)
def test_a_table_no_law_can_be_found_in_is_told(
    X: dict[str, np.ndarray], y: np.ndarray, words: str
) -> None:
    with pytest.raises(InputError, match=words):
        LawRegressor().fit(X, y)


@pytest.mark.parametrize(
    "options",
    [
        {"engine": "operon"},
        {"test_size": 0.0},
        {"folds": 1},
        {"noise": "loud"},
        {"range_input": "other"},
    ],
)
def test_bad_options_are_told(options: dict[str, object]) -> None:
    with pytest.raises(OptionError):
        LawRegressor(**options).fit(GOOD, GOOD["n"])  # type: ignore[arg-type]


def test_an_array_of_the_wrong_shape_is_told() -> None:
    with pytest.raises(ShapeError, match="two dimensions"):
        LawRegressor().fit(np.zeros((2, 2, 2)), np.zeros(2))


def test_the_bootstrap_under_hubers_loss_is_not_moved_by_a_row_far_off() -> None:
    generator = np.random.default_rng(3)
    n = np.linspace(1.0, 10.0, 40)
    y = 2 * n + 0.05 * generator.normal(size=40)
    y[-1] += 40.0
    law = fit_formula("2*n", {"n": n[:-1]}, y[:-1], noise="absolute")  # as without that row
    ends = {
        loss: bootstrap_law(
            law, {"n": n}, y, generator=np.random.default_rng(0), repeats=60, loss=loss
        ).constants()[0]
        for loss in ("squares", "huber")
    }
    assert ends["huber"].high < 2.05 < ends["squares"].high

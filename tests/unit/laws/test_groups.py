"""Groups of rows under one form: what they share, what is their own, and what is said of a new one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from taskmix.errors import InputError, OptionError, ShapeError
from taskmix.laws import GroupedLaw, LawRegressor, fit_formula, fit_groups, learn_laws

Array = NDArray[np.float64]
FORM = "2 + 30*n^-0.35"  # the exponent is fixed; see `decay` for one that is fitted


def rows_of(
    seed: int, *, groups: int = 6, each: int = 20, floor: float = 0.5, slope: float = 0.0
) -> tuple[Array, NDArray[np.str_], Array, Array]:
    """n, group, target and the target without noise: own floors, and own coefficients where asked."""
    generator = np.random.default_rng(seed)
    n = np.exp(generator.uniform(np.log(1e3), np.log(1e6), groups * each))
    place = np.repeat(np.arange(groups), each)
    floors = 2 + floor * generator.normal(size=groups)
    slopes = 30 * np.exp(slope * generator.normal(size=groups))
    clean = floors[place] + slopes[place] * n**-0.35
    y = clean + 0.02 * generator.normal(size=len(n))
    return n, np.array([f"g{each}" for each in place]), y, clean


def grouped(n: Array, kind: NDArray[np.str_], y: Array, form: str = FORM) -> GroupedLaw:
    return fit_groups(fit_formula(form, {"n": n}, y), {"n": n}, y, kind)


def shared(found: GroupedLaw) -> list[bool]:
    return [row.shared for row in found.shared_rows()]


def test_two_groups_with_one_slope_and_own_floors_by_hand() -> None:
    n = np.tile([1.0, 2, 3, 4, 5, 6], 2)
    kind = np.repeat(["a", "b"], 6)
    y = 2 * n + np.where(kind == "a", 1.0, 5.0) + np.tile([0.01, -0.01], 6)
    found = grouped(n, kind, y, "2*n + 3")
    assert shared(found) == [True, False]
    # The alternating deviation has the slope -0.03 / 17.5 within each group, and the mean 0.
    slope = 2 - 0.03 / 17.5
    for name, floor in (("a", 1.0), ("b", 5.0)):
        by_hand = (slope, floor + 2 * 3.5 - slope * 3.5)
        np.testing.assert_allclose(found.groups[name].expression.constants, by_hand, atol=1e-4)
    assert found.own == ((), ("group",))


def test_what_is_shared_in_truth_is_reported_so_and_what_is_own_too() -> None:
    floors = [shared(grouped(*rows_of(seed)[:3])) for seed in range(12)]
    both = [shared(grouped(*rows_of(seed, slope=0.3)[:3])) for seed in range(12)]
    none = [shared(grouped(*rows_of(seed, floor=0.0)[:3])) for seed in range(12)]
    assert sum(each == [True, False] for each in floors) >= 11
    assert sum(each == [False, False] for each in both) >= 11
    assert sum(each == [True, True] for each in none) >= 11


def test_intervals_of_a_new_group_hold_the_spread_and_a_few_rows_make_them_narrow() -> None:
    covered, after, errors = [], [], []
    for seed in range(40):
        n, kind, y, clean = rows_of(seed, groups=7)
        known = kind != "g6"
        found = grouped(n[known], kind[known], y[known])
        far = {"n": n[~known][3:]}
        truth = clean[~known][3:]
        before = found.predict_group(far, "g6", level=0.9)
        covered.append(np.mean((before.low <= truth) & (truth <= before.high)))
        few = np.flatnonzero(~known)[:3]
        then = found.adapt({"n": n[few]}, y[few]).predict(far, level=0.9)
        after.append(np.mean((then.low <= truth) & (truth <= then.high)))
        errors.append([np.sqrt(np.mean((each.values - truth) ** 2)) for each in (before, then)])
    assert 0.8 <= np.mean(covered) <= 1.0
    assert 0.8 <= np.mean(after) <= 1.0
    before_error, after_error = np.mean(errors, axis=0)
    assert before_error > 0.3
    assert after_error < 0.02  # noise 0.02 over three rows, and a floor is all that is open


@settings(max_examples=12, deadline=None)
@given(st.randoms(use_true_random=False))
def test_names_of_groups_and_the_order_of_rows_change_nothing(random: object) -> None:
    n, kind, y, _ = rows_of(3, groups=4, each=8)
    generator = np.random.default_rng(random.randrange(2**32))  # type: ignore[attr-defined]
    order = generator.permutation(len(n))
    names = dict(zip(np.unique(kind), generator.permutation(["x", "b b", "9", "é"]), strict=True))
    one = grouped(n, kind, y)
    other = grouped(n[order], np.array([names[each] for each in kind[order]]), y[order])
    assert one.own == other.own
    for name, law in one.groups.items():
        again = other.groups[str(names[name])].expression.constants
        np.testing.assert_allclose(law.expression.constants, again, rtol=1e-4)


def test_noise_of_each_group_is_found() -> None:
    generator = np.random.default_rng(0)
    n = generator.uniform(1, 50, 240)
    kind = np.tile(["quiet", "loud"], 120)
    y = 3 * n + 20 + np.where(kind == "loud", 2.0, 0.1) * generator.normal(size=240)
    found = fit_groups(fit_formula("2*n + 1", {"n": n}, y, noise="absolute"), {"n": n}, y, kind)
    assert found.groups["loud"].deviation == pytest.approx(2.0, rel=0.2)
    assert found.groups["quiet"].deviation == pytest.approx(0.1, rel=0.2)


def test_columns_of_groups_may_cross() -> None:
    generator = np.random.default_rng(0)
    n = generator.uniform(1, 50, 240)
    model, data = generator.integers(0, 4, 240), generator.integers(0, 5, 240)
    floors, slopes = 30 * generator.normal(size=4), 3 + generator.normal(size=5)
    y = slopes[data] * n + floors[model] + 0.5 * generator.normal(size=240)
    law = fit_formula("2*n + 1", {"n": n}, y, noise="absolute")
    found = fit_groups(law, {"n": n}, y, {"model": model, "data": data})
    assert found.own == (("data",), ("model",))
    # A model that was not there has the slope of its data set, and an interval for its floor.
    new = found.law({"model": "new", "data": "2"})
    assert new.expression.constants[0] == pytest.approx(slopes[2], rel=0.01)
    low, high = new.predict({"n": [10.0]}).low[0], new.predict({"n": [10.0]}).high[0]
    assert high - low > 60


def test_a_form_is_found_that_levels_of_groups_hide() -> None:
    n, kind, y, _ = rows_of(0, each=25)
    model = LawRegressor().fit({"n": n}, y, groups=kind)
    assert model.groups_ is not None
    assert model.law_.same_form("1 + 30*n^-0.123")
    exponent = [each for each in model.law_.expression.constants if -1 < each < 0]
    assert exponent == [pytest.approx(-0.35, abs=0.02)]
    assert sorted(shared(model.groups_)) == [False, True, True]
    values = model.predict({"n": n}, groups=kind)
    assert np.sqrt(np.mean((values - y) ** 2)) < 0.025


def test_several_targets_are_explained_by_one_form_each_in_its_unit() -> None:
    generator = np.random.default_rng(0)
    n = np.exp(generator.uniform(0, 5, 60))
    noise = 1 + 0.01 * generator.normal(size=(60, 3))
    clean = np.stack([2 * np.sqrt(n), 5 * np.sqrt(n), 40_000 * np.sqrt(n)], axis=1)
    model = LawRegressor(enough=0.999).fit({"n": n}, clean * noise)
    assert model.targets_ == ("y0", "y1", "y2")
    assert model.groups_ is not None
    np.testing.assert_allclose(model.predict({"n": n}), clean, rtol=0.02)
    constants = [law.expression.constants[0] for law in model.groups_.groups.values()]
    np.testing.assert_allclose(constants, [2, 5, 40_000], rtol=0.02)


def test_what_groups_cannot_be_is_told() -> None:
    n = np.arange(1.0, 21.0)
    law = fit_formula("n", {"n": n}, 3 * n)
    with pytest.raises(ShapeError, match="a group for each of the 20 rows"):
        fit_groups(law, {"n": n}, 3 * n, ["a", "b", "c"])
    with pytest.raises(InputError, match="at least two groups"):
        fit_groups(law, {"n": n}, 3 * n, ["a"] * 20)
    table = {"n": n, "y": 3 * n, "z": 4 * n}
    with pytest.raises(OptionError, match="Found kind=a"):
        learn_laws(table, target="y", inputs=["n"], at={"n": 1, "kind": "a"})
    with pytest.raises(OptionError, match="none of them the target"):
        learn_laws(table, target=["y", "n"], inputs=["n"])
    with pytest.raises(OptionError, match="on one target"):
        learn_laws(table, target=["y", "z"], inputs=["n"], compare=["3*n"])

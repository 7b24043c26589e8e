"""How far a law can be trusted: where it holds, beyond left-out ranges, what its form leaves open."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations_with_replacement

import numpy as np
import pytest

from taskmix.errors import OptionError
from taskmix.laws import (
    Front,
    LawRegressor,
    SearchOptions,
    Stack,
    fit_formula,
    parse_formula,
)
from taskmix.laws._choose import weigh_tied_laws
from taskmix.laws._discrepancy import UNTESTED_RATE, discrepancy_rate, distance_beyond
from taskmix.laws._evaluate import Program
from taskmix.laws._evidence import PRICE, Alike, SmoothDeviations, evidence_of
from taskmix.laws._fit import Fit, Observations, fit_constants
from taskmix.laws._front import make_front
from taskmix.laws._holding import Demands, Holding, TargetFacts, why_demands_break, why_disqualified
from taskmix.laws._mixed import MixedMoments, fit_mixed
from taskmix.laws._next_runs import next_law_runs
from taskmix.laws._parse import free_numbers
from taskmix.laws._pool import Describer
from taskmix.laws._ranges import Box, fits_without, left_out_ranges, range_deviations
from taskmix.numerics import student_quantile

SQUARE = Box({"n": (1.0, 100.0), "T": (1.0, 100.0)}, "within the range asked for")
MIDDLE = {"n": 10.0, "T": 10.0}
POSITIVE = TargetFacts(1, 1.0)


def front_of(
    formulas: list[str], columns: dict[str, np.ndarray], y: np.ndarray, holding: Holding
) -> Front:
    """The front of given formulas, without a search."""
    data = Observations(columns, y, np.ones(len(y)))
    fits = [fit_constants(free_numbers(parse_formula(text)), data) for text in formulas]
    order = np.random.default_rng(0).permutation(len(y))
    return make_front(
        fits,
        data,
        train=np.sort(order[len(y) // 10 :]),
        held_out=np.sort(order[: len(y) // 10]),
        describer=Describer.of(data),
        target="y",
        noise="absolute",
        range_input=next(iter(columns)),
        holding=holding,
    )


def pole_just_past_the_data() -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Rows up to n = 40 of a law with a pole at n = 46.5, and noise that hides it a little."""
    n = np.repeat(np.linspace(1.0, 40.0, 40), 3)
    y = 100 / (46.5 - n) + 0.2 * np.random.default_rng(0).normal(size=len(n))
    return {"n": n}, y


@pytest.mark.parametrize(
    ("formula", "words"),
    [
        ("1/(50 - n)", "has a pole at n = 50"),
        ("1/(n - 3)^2", "has a pole at n = 3"),
        ("(50 - n)^(2/3)", "undefined where n > 50"),
        ("log(n - 5)", "undefined where n < 5"),
        ("3 - log(n)", "negative where n > 20.09"),  # e^3
        ("exp(n^2)", "too large to compute"),
        ("n*T - 5", "negative near"),  # no input alone leads there from the middle
    ],
)
def test_the_reason_names_the_input_and_the_place(formula: str, words: str) -> None:
    found = why_disqualified(parse_formula(formula), SQUARE, MIDDLE, POSITIVE)
    assert words in found
    assert found.endswith("within the range asked for")


@pytest.mark.parametrize(
    "formula",
    ["sqrt(n*T)", "n/(n + 5)", "1/(60 - n)", "log(n - T + 30)", "(3*n - T)^0.5", "1/(n - T - 40)"],
)
def test_points_of_the_box_find_what_very_many_random_points_find(formula: str) -> None:
    expression = parse_formula(formula)
    generator = np.random.default_rng(0)
    columns = {name: generator.uniform(1, 100, 200_000) for name in ("n", "T")}
    values = Program(expression).values(columns)
    is_bad = bool(np.any(~np.isfinite(values) | (values < 0)))
    assert bool(why_disqualified(expression, SQUARE, MIDDLE, POSITIVE)) == is_bad


def test_unasked_the_box_reaches_past_the_data_and_inputs_stay_what_they_are() -> None:
    box = Box.around(
        {
            "n": np.array([1000.0, 20000.5]),  # more than a decade: ten times further
            "T": np.array([1.0, 15.0]),  # a count is never below 1
            "ami": np.array([0.2, 0.9]),  # a share stays below 1, and positive
            "x": np.array([-2.0, 2.0]),  # half the range to each side
        }
    )
    assert box.ranges["n"] == (100.0, 200005.0)
    assert box.ranges["T"] == (1.0, 150.0)
    assert box.ranges["ami"] == pytest.approx((0.02, 1.0))
    assert box.ranges["x"] == (-4.0, 4.0)


def test_a_rival_with_a_pole_just_past_the_data_is_not_chosen_where_it_was_asked_to_hold() -> None:
    columns, y = pole_just_past_the_data()
    formulas = ["100/(46.5 - n)", "2*exp(0.05*n) + 1", "0.3*n"]
    free = front_of(formulas, columns, y, Holding())
    assert "46" in free.chosen.text  # it made the rows
    asked = Box.asked(columns, {"n": (1.0, 80.0)})
    front = front_of(formulas, columns, y, Holding(asked=asked))
    assert "exp" in front.chosen.text
    assert not front.warning
    (row,) = [row for row in front.rows() if "/(" in row.formula]
    assert row.disqualified is not None
    assert row.disqualified.startswith("has a pole at n = 46.")
    assert row.disqualified.endswith("within the range asked for")


def test_if_all_laws_are_disqualified_the_best_is_chosen_with_a_warning() -> None:
    columns, y = pole_just_past_the_data()
    asked = Box.asked(columns, {"n": (1.0, 80.0)})
    front = front_of(["100/(46.5 - n)", "3/(1.1 - 0.02*n)"], columns, y, Holding(asked=asked))
    assert front.chosen.disqualified
    assert front.warning.startswith("Every law that was found is disqualified.")


@pytest.mark.parametrize("box", [{"m": (1, 2)}, {"n": (2, 1)}, {"n": (1, float("inf"))}])
def test_a_box_that_cannot_be_is_told(box: dict[str, tuple[float, float]]) -> None:
    n = np.arange(1.0, 31.0)
    with pytest.raises(OptionError, match="box should"):
        LawRegressor(box=box).fit({"n": n}, 3 * n)


@pytest.mark.parametrize("formula", ["n*T", "n - 0.01*n^2", "n/T", "T/n", "n*(20 - T)", "log(n*T)"])
@pytest.mark.parametrize("sign", [1, -1])
def test_slopes_are_those_of_very_many_random_lines(formula: str, sign: int) -> None:
    expression = parse_formula(formula)
    generator = np.random.default_rng(0)
    tasks, first = generator.uniform(1, 100, 50_000), generator.uniform(1, 99, 50_000)
    before, after = (Program(expression).values({"n": n, "T": tasks}) for n in (first, first + 0.5))
    is_broken = bool(np.any(sign * (after - before) < -1e-9))
    demands = Demands(increasing=("n",)) if sign > 0 else Demands(decreasing=("n",))
    found = why_demands_break(expression, demands, SQUARE, MIDDLE)
    assert bool(found) == is_broken
    assert not found or found.startswith("falls with n" if sign > 0 else "rises with n")


@pytest.mark.parametrize(
    ("formula", "words"),
    [
        ("3 - 2/n", ""),
        ("n/(n + T)", ""),
        ("log(n)", "grows without bound with n"),
        ("sqrt(T)/n", "grows without bound with T"),
        ("1 - exp(-n)", ""),
    ],
)
def test_a_bounded_law_has_a_finite_limit_in_each_input(formula: str, words: str) -> None:
    found = why_demands_break(parse_formula(formula), Demands(bounded=True), SQUARE, MIDDLE)
    assert found == words


def test_the_regressor_takes_demands() -> None:
    n = np.repeat(np.geomspace(1.0, 100.0, 25), 2)
    y = 3 - 2 / np.sqrt(n) + 0.05 * np.random.default_rng(0).normal(size=50)
    search = SearchOptions(rounds=1, beam=1, branches=2)
    law = LawRegressor(search, bounded=True, increasing=("n",)).fit({"n": n}, y).law_
    far = law.predict({"n": [1e6, 1e9]}).values
    assert far[0] == pytest.approx(far[1], rel=0.05)
    assert far[0] <= far[1]


def test_demands_that_cannot_be_are_reported() -> None:
    n = np.arange(1.0, 31.0)
    with pytest.raises(OptionError, match="`increasing` should name inputs"):
        LawRegressor(increasing=("m",)).fit({"n": n}, 3 * n)
    with pytest.raises(OptionError, match="Found both for 'n'"):
        LawRegressor(increasing=("n",), decreasing=("n",)).fit({"n": n}, 3 * n)


def test_the_largest_and_the_smallest_of_each_input_and_their_corner_are_left_out() -> None:
    n, tasks = (each.ravel() for each in np.meshgrid(np.geomspace(10, 1e4, 20), np.arange(1.0, 11)))
    ranges = {each.name: each.rows for each in left_out_ranges({"n": n, "T": tasks})}
    assert list(ranges) == ["largest n", "smallest n", "largest T", "smallest T", "large n and T"]
    assert n[ranges["largest n"]].min() > n[~ranges["largest n"]].max()
    assert tasks[ranges["smallest T"]].max() < tasks[~ranges["smallest T"]].min()
    assert ranges["largest n"].mean() == pytest.approx(0.15)
    assert n[ranges["large n and T"]].min() > 100
    assert n[~ranges["large n and T"]].max() == 1e4  # with few tasks, large n stay


def test_the_deviations_beyond_a_range_are_those_of_a_fit_to_the_other_rows() -> None:
    n = np.linspace(1, 20, 40)
    y = n**2
    data = Observations({"n": n}, y, np.ones(40))
    fit = fit_constants(free_numbers(parse_formula("2*n + 1")), data)
    (largest, *_) = left_out_ranges(data.columns)
    without = fits_without(fit, data, [largest])
    (found, *_) = range_deviations(without, data, [largest])
    inside = ~largest.rows
    slope, level = np.polyfit(n[inside], y[inside], 1)
    np.testing.assert_allclose(found, slope * n[~inside] + level - y[~inside], rtol=1e-4)


def test_a_law_that_holds_beyond_ranges_is_chosen() -> None:
    # A cubic fits these rows as well, and is far off beyond them.
    generator = np.random.default_rng(0)
    n = np.repeat(np.linspace(1.0, 30.0, 30), 4)
    y = 10 * np.log(n) + 5 + 0.5 * generator.normal(size=len(n))
    front = front_of(["3*n - 0.05*n^2 + 0.0005*n^3 + 4", "9*log(n) + 4"], {"n": n}, y, Holding())
    assert "log" in front.chosen.text
    by_form = {"log" in law.text: law.errors.ranges for law in front}
    assert by_form[True] == min(by_form.values())


def test_weights_of_a_stack_are_those_of_a_search_over_the_simplex() -> None:
    generator = np.random.default_rng(3)
    deviations = [[generator.normal(size=6) + shift for _ in range(4)] for shift in (0.5, -0.5)]
    (first, second) = weigh_tied_laws(deviations)
    assert first + second == pytest.approx(1.0)
    scale = [np.sqrt(np.median([np.mean(law[r] ** 2) for law in deviations])) for r in range(4)]
    costs = [
        sum(
            float(np.sum(((w * deviations[0][r] + (1 - w) * deviations[1][r]) / scale[r]) ** 2))
            for r in range(4)
        )
        for w in np.linspace(0, 1, 2001)
    ]
    best = np.linspace(0, 1, 2001)[int(np.argmin(costs))]
    # Two laws and four ranges: a third of the way to equal weights.
    assert first == pytest.approx(2 / 3 * best + 1 / 3 * 0.5, abs=1e-3)


def test_the_interval_of_a_stack_widens_where_its_laws_part_ways() -> None:
    n = np.repeat(np.arange(2.0, 12.0), 3)
    y = 3 * np.sqrt(n) + 0.01 * np.random.default_rng(0).normal(size=len(n))
    laws = [fit_formula(form, {"n": n}, y) for form in ("sqrt(n)", "log(n)*4 + 1")]
    found = Stack(tuple(laws), (0.6, 0.4)).predict({"n": [5.0, 1000.0]})
    values = np.array([law.predict({"n": [1000.0]}).values[0] for law in laws])
    mean = 0.6 * values[0] + 0.4 * values[1]
    between = np.sqrt(0.6 * (values[0] - mean) ** 2 + 0.4 * (values[1] - mean) ** 2)
    assert found.values[1] == pytest.approx(mean)
    assert found.high[1] - found.values[1] > 1.9 * between
    assert found.high[1] > values.max()
    assert found.high[0] - found.low[0] < 0.1 * (found.high[1] - found.low[1])


def test_tied_laws_are_stacked_and_a_law_that_is_clear_stands_alone() -> None:
    generator = np.random.default_rng(0)
    n = np.geomspace(10.0, 1000.0, 100)
    y = 2 + 0.5 * np.log(n) + 0.4 * generator.normal(size=100)
    tied = front_of(["2 + 0.5*log(n)", "1.5*n^0.15 + 1"], {"n": n}, y, Holding())
    assert tied.stack is not None
    assert tied.stack.laws[0].expression is tied.chosen.expression
    assert sum(tied.stack.weights) == pytest.approx(1.0)
    clear = front_of(["2 + 0.5*log(n)", "0.01*n + 3"], {"n": n}, y, Holding())
    assert clear.stack is None


def test_a_disqualified_law_is_never_in_the_stack() -> None:
    generator = np.random.default_rng(0)
    n = np.geomspace(10.0, 1000.0, 100)
    y = 2 + 0.5 * np.log(n) + 0.1 * generator.normal(size=100)
    asked = Box.asked({"n": n}, {"n": (0.001, 1000.0)})
    front = front_of(["2 + 0.5*log(n)", "1.5*n^0.15 + 1"], {"n": n}, y, Holding(asked=asked))
    assert "log" not in front.chosen.text  # it is negative for small n
    assert front.stack is None


def grid(rows=9):
    n, m = (each.ravel() for each in np.meshgrid(np.geomspace(1, 100, rows), np.geomspace(2, 8, 5)))
    return {"n": n, "m": m}


def observations(columns, target):
    return Observations(columns, target, np.ones(len(target)))


def evidence(form, columns, target):
    data = observations(columns, target)
    law = fit_formula(form, columns, target)
    fit = Fit(law.expression, data.mean_square(law.predict(columns).values))
    return evidence_of([fit], data, Describer.of(data)), fit


def test_nats_are_those_of_a_dense_gaussian_whose_trends_are_only_noise():
    columns = grid()
    rows = len(columns["n"])
    off = np.random.default_rng(0).normal(size=rows)
    (smooth,) = SmoothDeviations.of(observations(columns, off), Alike(length=0.4), [2.0])
    # By the definition: places in [0, 1], a Gaussian kernel with trends taken out of it.
    x = np.log(columns["n"]) / np.log(100)
    z = (np.log(columns["m"]) - np.log(2)) / np.log(4)
    kernel = np.exp(-((x[:, None] - x) ** 2 + (z[:, None] - z) ** 2) / (2 * 0.4**2))
    trends = [np.ones(rows), x, z, x * x, x * z, z * z]
    assert len(trends) == 3 + len(list(combinations_with_replacement("xz", 2)))
    design = np.column_stack(trends)
    keep = np.eye(rows) - design @ np.linalg.pinv(design)
    covariance = np.eye(rows) + 2.0 * keep @ kernel @ keep
    noise = off @ np.linalg.solve(covariance, off) / rows  # the likeliest
    wanted = 0.5 * np.linalg.slogdet(covariance)[1] + 0.5 * rows * np.log(noise)
    assert smooth.nats(off[None])[0] == pytest.approx(wanted + PRICE)


def test_noise_is_seldom_taken_for_a_wave():
    found = []
    for seed in range(100):
        columns = grid(12 if seed % 4 else 200)  # 60 rows, or 1,000, of which some are looked at
        noise = np.random.default_rng(seed).normal(size=len(columns["n"]))
        target = 3 + 5 / columns["n"] ** 0.5 + noise
        found.append(evidence("3 + 5/n^0.5", columns, target)[0].smooth is not None)
    assert np.mean(found) <= 0.03


def test_a_wave_makes_the_law_no_longer_than_it_has_to_be():
    columns = grid(40)
    n = columns["n"]
    wave = 0.01 * np.sin(7 * np.log(n)) * np.cos(3 * np.log(columns["m"]))
    noise = 0.002 * np.random.default_rng(0).normal(size=200)
    model = LawRegressor().fit(columns, 1 + 2 / np.sqrt(n) + wave + noise)
    assert len(model.law_.expression.constants) <= 4
    assert model.law_.predict({"n": [1000.0], "m": [4.0]}).values[0] == pytest.approx(
        1.06, abs=0.03
    )
    assert any("go together" in note for note in model.notes_)


def test_variances_of_a_balanced_layout_are_those_of_the_analysis_of_variance() -> None:
    generator = np.random.default_rng(1)
    levels, each = 8, 5
    y = np.repeat(generator.normal(size=levels), each) + 0.5 * generator.normal(size=levels * each)
    ones, blocks = np.ones((len(y), 1)), np.repeat(np.eye(levels), each, axis=0)
    whole = np.hstack([ones, blocks])
    moments = MixedMoments(whole.T @ whole, whole.T @ y, float(y @ y), len(y), 1)
    found = fit_mixed(moments, [np.arange(1, levels + 1)], least=1e-12)
    table = y.reshape(levels, each)
    within = table.var(axis=1, ddof=1).mean()
    between = each * table.mean(axis=1).var(ddof=1)
    assert found.variance == pytest.approx(within, rel=1e-2)
    assert found.ratios[0] * found.variance == pytest.approx((between - within) / each, rel=1e-2)
    shrink = 1 - within / between  # of the means, towards the mean of all
    wanted = shrink * (table.mean(axis=1) - y.mean())
    np.testing.assert_allclose(found.effects[0], wanted, rtol=1e-2)
    # And the length is that of the rows under a normal law with this covariance.
    ratio = found.ratios[0]
    whole_covariance = np.eye(len(y)) + ratio * blocks @ blocks.T
    assert found.volume == pytest.approx(0.5 * np.linalg.slogdet(whole_covariance)[1], rel=1e-9)


N = np.geomspace(10, 1000, 60)


def observed(values, noise, seed=0):
    target = values + noise * np.random.default_rng(seed).normal(size=len(values))
    return Observations({"n": N}, target, np.full(len(values), 1.0))


def test_distance_is_0_inside_and_counts_widths_of_the_logarithm_outside():
    columns = {"n": np.array([10.0, 500.0, 1000.0, 100_000.0, 1.0])}
    assert distance_beyond(columns, {"n": (10.0, 1000.0)}) == pytest.approx([0, 0, 0, 1, 0.5])


def test_a_wrong_form_is_given_a_larger_discrepancy_than_the_right_one():
    data = observed(np.sqrt(N), 0.2)
    ranges = left_out_ranges(data.columns)
    right = fit_formula("sqrt(n)", {"n": N}, data.target).expression
    wrong = fit_formula("2 + 0.1*n", {"n": N}, data.target).expression
    rates = [discrepancy_rate(e, data, ranges, [e] * len(ranges)) for e in (wrong, right)]
    assert rates[0] > 10 * rates[1]


def test_intervals_beyond_an_input_of_few_values_are_wide_and_within_it_are_not():
    generator = np.random.default_rng(0)
    n, size = np.tile(np.geomspace(10, 1000, 20), 3), np.repeat([1.0, 2.0, 4.0], 20)
    target = 3 + 20 / n + 2 / size + 0.02 * generator.normal(size=60)
    law = LawRegressor().fit({"n": n, "size": size}, target).law_
    assert law.untested == ("size",)
    far, near = ({"n": [100.0], "size": [each]} for each in (8.0, 4.0))
    sure = replace(law, untested=(), discrepancy=0.0)
    quantile = student_quantile(0.95, law.degrees)
    wide, narrow = (
        (each.predict(far).high - each.predict(far).low) / 2 / quantile for each in (law, sure)
    )
    # Twice the largest size, of a range of two doublings: half a width beyond.
    beyond = 0.5 * UNTESTED_RATE * law.measurement_deviation(law.predict(far).values, far)
    assert wide**2 - narrow**2 == pytest.approx(beyond**2)
    assert law.predict(near).high == pytest.approx(sure.predict(near).high)


def test_the_discrepancy_widens_intervals_only_outside():
    law = fit_formula("sqrt(n)", {"n": N}, observed(np.sqrt(N), 0.2).target)
    wide = replace(law, discrepancy=2.0)
    before, after = (each.predict({"n": [100.0, 100_000.0]}) for each in (law, wide))
    widths, wider = before.high - before.low, after.high - after.low
    assert wider[0] == pytest.approx(widths[0])
    # One width beyond, twice the deviation of a measurement: variances add.
    ratio = widths[1] / (2 * np.sqrt(law.covariance[0, 0] * 100_000))
    assert wider[1] == pytest.approx(
        2 * ratio * np.sqrt(law.covariance[0, 0] * 100_000 + (2 * law.deviation) ** 2)
    )


def test_a_rival_counts_by_its_description_and_by_how_far_it_is_off():
    target = observed(np.sqrt(N), 0.2).target
    law = fit_formula("sqrt(n)", {"n": N}, target)
    other = fit_formula("log(n)", {"n": N}, target)
    point = {"n": [10_000.0]}
    even = replace(law, rivals=((0.0, other),)).predict(point)
    own, apart = (
        law.predict(point),
        other.predict(point).values[0] - law.predict(point).values[0],
    )
    quantile = (own.high - own.low)[0] / (2 * np.sqrt(law.covariance[0, 0] * 10_000))
    variance = ((even.high - even.low)[0] / (2 * quantile)) ** 2
    jacobian = np.log(10_000.0)
    mean = 0.5 * (law.covariance[0, 0] * 10_000 + other.covariance[0, 0] * jacobian**2 + apart**2)
    assert variance == pytest.approx(mean)
    far_behind = replace(law, rivals=((100.0, other),)).predict(point)
    assert far_behind.high == pytest.approx(own.high)


def test_the_first_run_is_where_rivals_disagree_most_against_what_is_uncertain():
    target = observed(np.sqrt(N), 5.0).target
    laws = [fit_formula(form, {"n": N}, target) for form in ("sqrt(n)", "2 + 0.03*n")]
    box = Box({"n": (10.0, 10_000.0)}, "")
    found = next_law_runs(laws, box, most=1)
    assert found is not None
    (a,), (b, c) = laws[0].expression.constants, laws[1].expression.constants
    nats = {}
    for n in box.line("n", 9).tolist():
        first, second = np.array([np.sqrt(n)]), np.array([n, 1.0])
        variance = (
            laws[0].deviation ** 2
            + first @ laws[0].covariance @ first
            + second @ laws[1].covariance @ second
        )
        nats[n] = (a * np.sqrt(n) - b * n - c) ** 2 / (2 * variance)
    # Of runs that are enough each, the first, which has the smallest values.
    assert found.runs[0].at["n"] == pytest.approx(min(n for n in nats if nats[n] >= 3))


def test_next_runs_say_so_where_no_run_would_tell():
    target = observed(np.sqrt(N), 0.5).target
    law = fit_formula("sqrt(n)", {"n": N}, target)
    found = next_law_runs([law, law], Box({"n": (10.0, 1000.0)}, ""))
    assert found is not None
    assert not found.runs
    assert found.not_distinguished == (law.text,)
    assert "nearly the same" in found.words


def test_the_run_that_narrows_most_agrees_with_trying_every_one():
    target = observed(3 + np.sqrt(N), 0.2).target
    law = fit_formula("3 + 2*sqrt(n)", {"n": N}, target)
    box = Box({"n": (10.0, 1000.0)}, "")
    found = next_law_runs([law], box, at={"n": 1000.0}, most=1)
    assert found is not None
    best = None
    for n in box.line("n", 9):
        b, a = np.array([np.sqrt(n), 1.0]), np.array([np.sqrt(1000.0), 1.0])
        more = np.linalg.inv(np.linalg.inv(law.covariance) + np.outer(b, b) / law.deviation**2)
        share = np.sqrt((a @ more @ a) / (a @ law.covariance @ a))
        best = min(best or (share, n), (share, n))
    assert found.runs[0].at["n"] == pytest.approx(best[1])
    assert found.narrower == pytest.approx(best[0])

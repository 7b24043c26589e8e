"""Intervals that hold what the form leaves open, and the runs that would close it."""

from dataclasses import replace

import numpy as np
import pytest

from taskmix.laws import LawRegressor, fit_formula
from taskmix.laws._fitting import Observations
from taskmix.laws._forms import parse_formula
from taskmix.laws._judging import Box, next_law_runs
from taskmix.laws._judging._discrepancy import (
    UNTESTED_RATE,
    discrepancy_rate,
    distance_beyond,
)
from taskmix.laws._judging._ranges import left_out_ranges
from taskmix.numerics import student_quantile

N = np.geomspace(10, 1000, 60)


def observed(values, noise, seed=0):
    target = values + noise * np.random.default_rng(seed).normal(size=len(values))
    return Observations({"n": N}, target, np.full(len(values), 1.0))


def test_distance_is_0_inside_and_counts_widths_of_the_logarithm_outside():
    columns = {"n": np.array([10.0, 500.0, 1000.0, 100_000.0, 1.0])}
    assert distance_beyond(columns, {"n": (10.0, 1000.0)}) == pytest.approx([0, 0, 0, 1, 0.5])


def test_distances_along_two_inputs_add_like_sides_of_a_triangle():
    columns = {"x": np.array([4.0]), "y": np.array([-4.0])}
    assert distance_beyond(columns, {"x": (-1.0, 0.0), "y": (-1.0, 0.0)}) == pytest.approx([5.0])


def test_a_wrong_form_is_given_a_larger_discrepancy_than_the_right_one():
    data = observed(np.sqrt(N), 0.2)
    ranges = left_out_ranges(data.columns)
    right = fit_formula("sqrt(n)", {"n": N}, data.target).expression
    wrong = fit_formula("2 + 0.1*n", {"n": N}, data.target).expression
    rates = [discrepancy_rate(e, data, ranges, [e] * len(ranges)) for e in (wrong, right)]
    assert rates[0] > 10 * rates[1]


def test_rows_without_noise_have_no_discrepancy():
    data = observed(np.sqrt(N), 0.0)
    form, ranges = parse_formula("1*sqrt(n)"), left_out_ranges(data.columns)
    assert discrepancy_rate(form, data, ranges, [form] * len(ranges)) == 0


def test_a_law_chosen_with_a_range_in_view_is_as_suspect_as_the_one_chosen_without():
    data = observed(np.sqrt(N), 0.2)
    ranges = left_out_ranges(data.columns)
    right = fit_formula("sqrt(n)", {"n": N}, data.target).expression
    wrong = fit_formula("2 + 0.1*n", {"n": N}, data.target).expression
    found = [discrepancy_rate(right, data, ranges, [e] * len(ranges)) for e in (wrong, right)]
    assert found[0] > 10 * found[1]


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


def test_a_step_within_the_data_is_surer_than_one_beyond_them():
    law = replace(
        fit_formula("sqrt(n)", {"n": N}, observed(np.sqrt(N), 0.2).target), discrepancy=1.0
    )
    inside, outside = (law.gain({"n": 100.0}, n=to).interval for to in (1000.0, 100_000.0))
    assert outside.high - outside.low > inside.high - inside.low


def test_rivals_with_another_input_are_asked_at_its_median_where_it_is_not_given():
    n, m = np.tile(N, 2), np.repeat([1.0, 3.0], len(N))
    target = np.sqrt(n) * m
    columns = {"n": n, "m": m}
    law, rival = fit_formula("n", columns, target), fit_formula("sqrt(n)*m", columns, target)
    found = replace(law, rivals=((0.0, rival),)).predict({"n": [100.0]})
    same = replace(law, rivals=((0.0, rival),)).predict({"n": [100.0], "m": [2.0]})
    assert found.high == pytest.approx(same.high)


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


def test_few_runs_far_away_distinguish_a_root_from_a_line():
    target = observed(np.sqrt(N), 2.0).target
    laws = [fit_formula(form, {"n": N}, target) for form in ("sqrt(n)", "2 + 0.03*n")]
    found = next_law_runs(laws, Box({"n": (500.0, 10_000.0)}, ""), whole=["n"])
    assert found is not None
    assert found.distinguished == (laws[1].text,)
    assert all(run.at["n"] > 1000 and run.at["n"] == round(run.at["n"]) for run in found.runs)
    assert found.words.startswith(
        "Cannot distinguish 2 forms on these rows. To distinguish them, add"
    )


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


@pytest.mark.parametrize("seed", range(3))
def test_the_interval_of_a_wrong_law_outside_is_wider_than_its_constants_say(seed):
    random = np.random.default_rng(seed)
    n = random.choice(np.geomspace(1000, 20_000, 30), 80)
    y = (0.9 - 3 * n**-0.4) * (1 + 0.05 * random.normal(size=80))
    law = LawRegressor(enough=0.5).fit({"n": n}, y).law_
    plain = replace(law, rivals=(), discrepancy=0.0)
    wide, narrow = (each.predict({"n": [100.0, 100_000.0]}) for each in (law, plain))
    assert ((wide.high - wide.low) > (narrow.high - narrow.low)).all()

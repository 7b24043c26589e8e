from __future__ import annotations

import numpy as np
import pytest
from test_disqualified import front_of

from taskmix.laws import fit_formula, parse_formula
from taskmix.laws._fitting import Observations, fit_constants
from taskmix.laws._forms import free_numbers
from taskmix.laws._judging import Box, Holding, Stack
from taskmix.laws._judging._ranges import fits_without, left_out_ranges, range_deviations
from taskmix.laws._judging._stack import weigh_tied_laws


def test_the_largest_and_the_smallest_of_each_input_and_their_corner_are_left_out() -> None:
    n, tasks = (each.ravel() for each in np.meshgrid(np.geomspace(10, 1e4, 20), np.arange(1.0, 11)))
    ranges = {each.name: each.rows for each in left_out_ranges({"n": n, "T": tasks})}
    assert list(ranges) == ["largest n", "smallest n", "largest T", "smallest T", "large n and T"]
    assert n[ranges["largest n"]].min() > n[~ranges["largest n"]].max()
    assert tasks[ranges["smallest T"]].max() < tasks[~ranges["smallest T"]].min()
    assert ranges["largest n"].mean() == pytest.approx(0.15)
    assert n[ranges["large n and T"]].min() > 100
    assert n[~ranges["large n and T"]].max() == 1e4  # with few tasks, large n stay


def test_no_range_is_left_out_where_too_little_would_be_left() -> None:
    two = np.repeat([1.0, 2.0], 30)  # through two values any curve goes
    crowded = np.repeat([1.0, 2.0, 3.0, 4.0], [2, 2, 2, 54])  # nearly all rows have the largest
    assert left_out_ranges({"n": two}) == []
    assert left_out_ranges({"n": crowded}) == []


def test_the_deviations_beyond_a_range_are_those_of_a_fit_to_the_other_rows() -> None:
    n = np.linspace(1, 20, 40)
    y = n**2
    data = Observations({"n": n}, y, np.ones(40))
    fit = fit_constants(free_numbers(parse_formula("2*n + 1")), data)
    (largest, *_) = left_out_ranges(data.columns)
    without = fits_without(fit, data, [largest], refit=True)
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

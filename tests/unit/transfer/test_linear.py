from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from simulated_subsets import NAMES, simulated, table

from taskmix.errors import InputError, OptionError, ShapeError
from taskmix.transfer import (
    SubsetOutcomes,
    fit_linear_surrogate,
    fixed_size_subsets,
    gather_outcomes,
    judge_sources,
)

TRUTH = np.array([-0.3, -0.1, 0.0, 0.0, 0.2, 0.4])
PAIRS = np.array([[1, 1, 0], [1, 0, 1], [0, 1, 1]], dtype=bool)


def test_three_pairs_by_hand() -> None:
    # a + b = -0.3, a + c = 0.1, b + c = 0.0: so a = -0.1, b = -0.2, c = 0.2.
    found = fit_linear_surrogate(table(PAIRS, np.array([0.7, 1.1, 1.0]), alone=[1.0]))
    assert found.effects == pytest.approx([-0.1, -0.2, 0.2])
    assert found.gains == pytest.approx([0.1, 0.2, -0.2])
    assert found.predict([[0, 0, 0], [1, 1, 1]]) == pytest.approx([1.0, 0.9])
    # Three effects from three rows leave nothing to judge them by.
    assert np.isnan(found.intervals()[0]).all()
    assert np.isnan(found.p_values()).all()


def test_the_effects_are_the_papers_coefficients_minus_their_share_of_the_anchor() -> None:
    given_ = simulated(np.random.default_rng(0), effects=TRUTH)
    paper, *_ = np.linalg.lstsq(given_.subsets.astype(float), given_.losses, rcond=None)
    found = fit_linear_surrogate(given_)
    np.testing.assert_allclose(found.effects, paper - given_.anchor / 3)


def test_a_metric_and_its_negative_have_the_same_gains() -> None:
    generator = np.random.default_rng(1)
    subsets = fixed_size_subsets(6, 3, 20, generator=generator)
    losses = generator.normal(size=20)
    low = fit_linear_surrogate(table(subsets, losses, alone=[0.2, 0.3]))
    high = fit_linear_surrogate(table(subsets, -losses, alone=[-0.2, -0.3], higher_is_better=True))
    np.testing.assert_allclose(low.gains, high.gains)


@pytest.mark.parametrize("ridge", [0.0, 2.0])
def test_robust_errors_are_those_of_leaving_each_row_out(ridge: float) -> None:
    given_ = simulated(np.random.default_rng(2), effects=TRUTH, count=20, spread=3.0)
    found = fit_linear_surrogate(given_, ridge=ridge)
    design, wanted = given_.subsets.astype(float), given_.losses - given_.anchor
    inverse = np.linalg.inv(design.T @ design + ridge * np.eye(6))
    middle = np.zeros((6, 6))
    for row in range(len(design)):
        rest = np.arange(len(design)) != row
        gram = design[rest].T @ design[rest] + ridge * np.eye(6)
        without = np.linalg.solve(gram, design[rest].T @ wanted[rest])
        missed = wanted[row] - design[row] @ without
        middle += missed**2 * np.outer(design[row], design[row])
    shared = inverse @ design.sum(axis=0)
    expected = inverse @ middle @ inverse
    expected += np.outer(shared, shared) * given_.anchor_variance / 6
    np.testing.assert_allclose(found.covariance, expected)


def test_equal_errors_are_the_textbook_ones() -> None:
    given_ = simulated(np.random.default_rng(3), effects=TRUTH, count=20, alone=1)
    found = fit_linear_surrogate(given_, errors="equal")
    design, wanted = given_.subsets.astype(float), given_.losses - given_.anchor
    effects, squares, *_ = np.linalg.lstsq(design, wanted, rcond=None)
    variance = squares[0] / 14
    inverse = np.linalg.inv(design.T @ design)
    shared = inverse @ design.sum(axis=0)
    # One run alone has no spread of its own: it is taken to be as noisy as the rows.
    np.testing.assert_allclose(found.effects, effects)
    np.testing.assert_allclose(found.covariance, variance * (inverse + np.outer(shared, shared)))
    assert found.deviation == pytest.approx(np.sqrt(variance))
    low, high = found.intervals(0.9)
    np.testing.assert_allclose(found.degrees.min(), found.degrees.max())
    half = stats.t.ppf(0.95, found.degrees) * np.sqrt(np.diag(found.covariance))
    np.testing.assert_allclose(high - low, 2 * half)
    expected = 2 * stats.t.sf(np.abs(effects) / found.standard_errors, found.degrees)
    np.testing.assert_allclose(found.p_values(), expected)


@settings(deadline=None, max_examples=30)
@given(st.permutations(range(6)), st.floats(-100, 100), st.integers(0, 1000))
def test_the_order_of_tasks_and_the_level_of_losses_change_nothing(
    order: list[int], shift: float, seed: int
) -> None:
    generator = np.random.default_rng(seed)
    subsets = fixed_size_subsets(6, 3, 20, generator=generator)
    losses, alone = generator.normal(size=20), generator.normal(size=5)
    plain = fit_linear_surrogate(table(subsets, losses, alone=list(alone)))
    shifted = fit_linear_surrogate(table(subsets, losses + shift, alone=list(alone + shift)))
    np.testing.assert_allclose(shifted.effects, plain.effects, atol=1e-9)
    np.testing.assert_allclose(shifted.covariance, plain.covariance, atol=1e-9)
    turned = fit_linear_surrogate(
        gather_outcomes(
            np.concatenate([subsets[:, order], np.zeros((5, 6), bool)]),
            np.concatenate([losses, alone]),
            target="target",
            sources=[NAMES[place] for place in order],
        )
    )
    np.testing.assert_allclose(turned.effects, plain.effects[order], atol=1e-9)
    np.testing.assert_allclose(turned.standard_errors, plain.standard_errors[order], atol=1e-9)
    # A shift of the anchor alone moves every effect by the same, and no contrast.
    moved = fit_linear_surrogate(table(subsets, losses, alone=list(alone + shift)))
    np.testing.assert_allclose(moved.effects, plain.effects - shift / 3, atol=1e-9)
    one, other = plain.centred(), moved.centred()
    np.testing.assert_allclose(other.effects, one.effects, atol=1e-9)
    np.testing.assert_allclose(other.standard_errors, one.standard_errors, atol=1e-9)
    # In a design of one size the predictions for it do not rest on the anchor at all.
    np.testing.assert_allclose(one.predict(subsets), plain.predict(subsets), atol=1e-9)
    np.testing.assert_allclose(moved.predict(subsets), plain.predict(subsets), atol=1e-7)


@pytest.mark.parametrize("spread", [0.0, 4.0])
@pytest.mark.parametrize("alone", [1, 8])
def test_intervals_cover_the_truth_as_often_as_they_say(spread: float, alone: int) -> None:
    covered = np.zeros(6)
    for seed in range(300):
        given_ = simulated(
            np.random.default_rng(seed), effects=TRUTH, count=18, spread=spread, alone=alone
        )
        low, high = fit_linear_surrogate(given_).intervals()
        covered += (low <= TRUTH) & (high >= TRUTH)
    # 300 tables at 0.95 have a standard deviation of 3.8.
    assert (covered >= 270).all()
    # One run alone is taken to be as noisy as the average row, and HC3 is cautious on few rows.
    assert (covered <= 300).all()
    assert covered.mean() >= 280


def with_dev_rows(generator: np.random.Generator, rows: int = 50) -> SubsetOutcomes:
    """Nothing helps or harms, but rows differ in what each source does to them."""
    subsets = fixed_size_subsets(6, 3, 40, generator=generator)
    members = np.concatenate([np.zeros((8, 6), dtype=bool), subsets])
    of_rows = 1 + members @ generator.normal(size=(6, rows))
    of_rows += 0.05 * generator.normal(size=(len(members), 1))  # seeds
    sources = NAMES[:6]
    return gather_outcomes(
        members, of_rows.mean(axis=1), target="target", sources=sources, dev_rows=of_rows
    )


def test_verdicts_are_about_fresh_rows_and_not_about_these_dev_rows() -> None:
    answers = {"rows": 0, "these rows": 0}
    for seed in range(200):
        known = with_dev_rows(np.random.default_rng(seed))
        unknown = replace(known, dev_parts=known.dev_parts[:, :0])
        for name, each in (("rows", known), ("these rows", unknown)):
            found = judge_sources(fit_linear_surrogate(each))
            answers[name] += sum(verdict.answer in ("helps", "harms") for verdict in found)
    # Every one of 1,200 verdicts is wrong: 5 % may be.
    assert answers["rows"] < 60 < 400 < answers["these rows"]


def test_the_error_of_dev_rows_is_that_of_the_mean_of_their_own_effects() -> None:
    generator = np.random.default_rng(0)
    members = np.concatenate(
        [np.zeros((4, 6), dtype=bool), fixed_size_subsets(6, 2, 30, generator=generator)]
    )
    of_rows = generator.normal(size=(len(members), 9))
    fits = [
        fit_linear_surrogate(gather_outcomes(members, each, target="t", sources=NAMES[:6]))
        for each in (of_rows.mean(axis=1), *of_rows.T)
    ]
    with_gap = np.insert(of_rows, 3, np.nan, axis=1)  # a row without a target
    table = gather_outcomes(
        members, of_rows.mean(axis=1), target="t", sources=NAMES[:6], dev_rows=with_gap
    )
    found = fit_linear_surrogate(table)
    wanted = np.cov([fit.effects for fit in fits[1:]], rowvar=False) / 9
    np.testing.assert_allclose(found.dev_covariance, wanted, atol=1e-12)
    np.testing.assert_allclose(found.covariance, fits[0].covariance + wanted, atol=1e-12)
    centre = np.eye(6) - 1 / 6
    np.testing.assert_allclose(found.centred().dev_covariance, centre @ wanted @ centre, atol=1e-12)


def test_ridge_draws_effects_to_zero_and_manages_with_few_subsets() -> None:
    given_ = simulated(np.random.default_rng(6), effects=np.linspace(-1, 1, 20), size=8, count=15)
    with pytest.raises(
        InputError, match=r"15 subsets of rank 15\. Train more subsets, or pass `ridge`"
    ):
        fit_linear_surrogate(given_)
    some, more = (fit_linear_surrogate(given_, ridge=value) for value in (0.1, 1000.0))
    assert np.abs(more.effects).max() < 0.05 * np.abs(some.effects).max()
    design = given_.subsets.astype(float)
    stacked = np.concatenate([design, np.sqrt(0.1) * np.eye(20)])
    wanted = np.concatenate([given_.losses - given_.anchor, np.zeros(20)])
    expected, *_ = np.linalg.lstsq(stacked, wanted, rcond=None)
    np.testing.assert_allclose(some.effects, expected, atol=1e-9)


def test_options_and_subsets_that_do_not_fit_are_refused() -> None:
    given_ = simulated(np.random.default_rng(7), effects=TRUTH)
    with pytest.raises(OptionError, match="`ridge`"):
        fit_linear_surrogate(given_, ridge=-1.0)
    with pytest.raises(OptionError, match="`errors`"):
        fit_linear_surrogate(given_, errors="none")  # type: ignore[arg-type]
    with pytest.raises(ShapeError, match="each of the 6 sources"):
        fit_linear_surrogate(given_).predict([[1, 0]])
    with pytest.raises(OptionError, match="level"):
        fit_linear_surrogate(given_).intervals(95)


def test_where_every_row_is_fitted_the_noise_is_that_over_seeds() -> None:
    """Three sources one at a time: three rows for three effects, each the mean of many runs."""
    generator = np.random.default_rng(5)
    subsets = np.repeat(np.eye(3, dtype=bool), 40, axis=0)
    losses = 1 + subsets @ np.array([0.3, 0.0, -0.3]) + 0.1 * generator.normal(size=120)
    surrogate = fit_linear_surrogate(
        table(subsets, losses, alone=list(1 + 0.1 * generator.normal(size=40)))
    )
    assert surrogate.deviation == pytest.approx(0.1, rel=0.15)
    # The mean of 40 minus the mean of 40 others.
    np.testing.assert_allclose(surrogate.standard_errors, 0.1 * np.sqrt(2 / 40), rtol=0.15)

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from simulated_subsets import NAMES, simulated, table
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF

from taskmix.errors import InputError, OptionError
from taskmix.transfer import (
    SubsetOutcomes,
    all_size_subsets,
    fit_kernel_surrogate,
    fit_linear_surrogate,
    fit_pair_surrogate,
    gather_outcomes,
)

EFFECTS = np.array([-0.3, -0.1, 0.0, 0.1, 0.2, 0.4])


def with_pair(seed: int, *, strength: float, noise: float, count: int = 60) -> SubsetOutcomes:
    """Effects of single sources, and one of sources b and e together."""
    generator = np.random.default_rng(seed)
    subsets = all_size_subsets(6, count, generator=generator)
    losses = 1 + subsets @ EFFECTS + strength * (subsets[:, 1] & subsets[:, 4])
    return table(subsets, losses + noise * generator.normal(size=count), alone=[1.0] * 3)


def test_the_one_pair_that_matters_is_found() -> None:
    given_ = with_pair(0, strength=-1.0, noise=0.02)
    found = fit_pair_surrogate(given_, generator=np.random.default_rng(0))
    first, second, strength = found.pairs[0]
    assert (first, second) == ("b", "e")
    assert strength == pytest.approx(-1.0, abs=0.1)
    assert all(abs(other) < 0.1 for *_, other in found.pairs[1:])
    assert found.effects == pytest.approx(EFFECTS, abs=0.1)
    # {b, e}: 1 - 0.1 + 0.2 - 1 = 0.1, which no sum of single effects can say together with the rest.
    assert found.predict([0, 1, 0, 0, 1, 0]) == pytest.approx(0.1, abs=0.1)
    assert found.predict(np.zeros(6)) == 1.0


def test_without_pairs_the_surrogate_is_the_linear_one() -> None:
    taken = 0
    for seed in range(20):
        given_ = with_pair(seed, strength=0.0, noise=0.1)
        found = fit_pair_surrogate(given_, generator=np.random.default_rng(seed))
        taken += len(found.pairs)
        if not found.pairs:
            linear = fit_linear_surrogate(given_)
            np.testing.assert_allclose(found.effects, linear.effects, atol=1e-6)
    assert taken <= 20  # of 300


def test_the_fit_meets_the_conditions_of_the_lasso_with_free_single_effects() -> None:
    given_ = with_pair(1, strength=0.8, noise=0.2)
    found = fit_pair_surrogate(given_, generator=np.random.default_rng(1))
    members = given_.subsets.astype(float)
    rest = given_.losses - found.predict(members)
    np.testing.assert_allclose(members.T @ rest, 0.0, atol=1e-4)
    for i, j in combinations(range(6), 2):
        pair = members[:, i] * members[:, j]
        own = pair - members @ np.linalg.lstsq(members, pair, rcond=None)[0]
        slope = own @ rest / len(rest) / np.sqrt((own * own).mean())
        if found.interactions[i, j] == 0:
            assert abs(slope) <= found.penalty * (1 + 1e-3)
        else:
            assert slope == pytest.approx(
                found.penalty * np.sign(found.interactions[i, j]), rel=1e-2
            )


def test_pairs_ask_for_more_subsets_than_sources() -> None:
    generator = np.random.default_rng(0)
    given_ = simulated(generator, effects=EFFECTS, size=2, count=9)
    with pytest.raises(InputError, match=r"at least 10 subsets\. Found 9"):
        fit_pair_surrogate(given_, generator=generator)
    with pytest.raises(OptionError, match="`folds`"):
        fit_pair_surrogate(given_, generator=generator, folds=1)


def test_pairs_that_never_occur_together_are_not_taken() -> None:
    # All pairs of sources but the first: of a and b together nothing is known.
    every = np.array([[i in pair for i in range(6)] for pair in combinations(range(6), 2)])
    generator = np.random.default_rng(0)
    given_ = table(every[1:], generator.normal(size=14), alone=[0.0])
    found = fit_pair_surrogate(given_, generator=generator)
    assert found.interactions[0, 1] == 0.0


def test_one_subset_by_hand() -> None:
    # Rate 1 and {a}: k0 = 1 - exp(-2), so a ridge of k0 itself predicts half of the change.
    given_ = gather_outcomes(
        [[1, 0, 0], [0, 1, 1], [0, 0, 0]], [3.0, 1.0, 1.0], target="t", sources=["a", "b", "c"]
    ).take(np.array([True, False]))
    found = fit_kernel_surrogate(given_, rates=[1.0], ridges=[1.0])
    assert found.ridge == pytest.approx(1 - np.exp(-2))
    assert found.predict([1, 0, 0]) == pytest.approx(2.0)
    assert found.predict([0, 0, 0]) == 1.0
    # {a, b} lies 1 from {a} and 2 from none: k0 = exp(-1) - exp(-3), and c = 1 / k0({a}, {a}).
    expected = 1 + (np.exp(-1) - np.exp(-3)) / (1 - np.exp(-2))
    assert found.predict([1, 1, 0]) == pytest.approx(expected)


def test_the_kernel_surrogate_is_a_gaussian_process_that_knows_the_target_alone() -> None:
    generator = np.random.default_rng(2)
    subsets = all_size_subsets(6, 40, generator=generator)
    losses = generator.normal(size=40)
    given_ = table(subsets, losses, alone=[0.3])
    found = fit_kernel_surrogate(given_, rates=[0.5], ridges=[0.1])
    # On zeros and ones the squared distance is the number of differences: rate = 1 / (2 width²).
    process = GaussianProcessRegressor(
        RBF(np.sqrt(1 / (2 * found.rate))),
        alpha=np.array([*np.full(40, found.ridge), 1e-10]),
        optimizer=None,
    ).fit(np.concatenate([subsets, np.zeros((1, 6))]).astype(float), [*(losses - 0.3), 0.0])
    others = all_size_subsets(6, 63, generator=generator).astype(float)
    np.testing.assert_allclose(found.predict(others), 0.3 + process.predict(others), atol=1e-6)


def test_the_leave_one_out_error_is_that_of_refits() -> None:
    generator = np.random.default_rng(3)
    subsets = all_size_subsets(5, 20, generator=generator)
    subsets = subsets[np.concatenate([np.arange(20), generator.integers(20, size=15)])]
    given_ = table(subsets, generator.normal(size=35), alone=[0.0])
    found = fit_kernel_surrogate(given_)
    total, mass = 0.0, 0.0
    for row in range(20):
        rest = np.arange(20) != row
        part = given_.take(rest)
        # The same rate and ridge, in the units of the smaller table.
        loose = part.weights.mean() / given_.weights.mean()
        members = part.subsets.astype(float)
        near = np.exp(-found.rate * (members[:, None] != members[None]).sum(axis=2))
        empty = np.exp(-found.rate * members.sum(axis=1))
        kernel = near - np.outer(empty, empty)
        ridge = found.ridge / loose * part.weights.mean() / part.weights
        strengths = np.linalg.solve(kernel + np.diag(ridge), part.losses)
        gone = given_.subsets[row].astype(float)
        at = np.exp(-found.rate * (members != gone).sum(axis=1))
        at -= np.exp(-found.rate * gone.sum()) * empty
        total += given_.weights[row] * (given_.losses[row] - at @ strengths) ** 2
        mass += given_.weights[row]
    assert found.left_out_error == pytest.approx(np.sqrt(total / mass), rel=1e-6)


def test_the_kernel_surrogate_learns_a_curve_that_no_line_has() -> None:
    generator = np.random.default_rng(4)
    subsets = all_size_subsets(8, 150, generator=generator)
    truth = 1 - 0.5 * np.tanh(subsets @ np.array([2.0, 1, 1, 0, 0, 0, 0, -1]))
    given_ = table(subsets, truth + 0.01 * generator.normal(size=150), alone=[1.0])
    left = np.arange(150) % 5 == 0
    errors = {}
    for name, fit in (("kernel", fit_kernel_surrogate), ("linear", fit_linear_surrogate)):
        guess = fit(given_.take(~left)).predict(given_.subsets[left])
        errors[name] = np.sqrt(((guess - truth[left]) ** 2).mean())
    assert errors["kernel"] < 0.6 * errors["linear"]


@settings(deadline=None, max_examples=15)
@given(st.permutations(range(6)), st.floats(-50, 50), st.integers(0, 100))
def test_the_order_of_tasks_and_the_level_of_losses_change_no_prediction_but_by_the_level(
    order: list[int], shift: float, seed: int
) -> None:
    given_ = with_pair(seed, strength=0.5, noise=0.1, count=40)
    turned = gather_outcomes(
        np.concatenate([given_.subsets[:, order], np.zeros((1, 6), bool)]),
        np.concatenate([given_.losses, [given_.anchor]]) + shift,
        target="target",
        sources=[NAMES[place] for place in order],
    )
    others = all_size_subsets(6, 30, generator=np.random.default_rng(0))
    one = fit_kernel_surrogate(given_, rates=[0.5], ridges=[0.1]).predict(others)
    other = fit_kernel_surrogate(turned, rates=[0.5], ridges=[0.1]).predict(others[:, order])
    np.testing.assert_allclose(other, one + shift, atol=1e-6)
    one = fit_pair_surrogate(given_, generator=np.random.default_rng(0)).predict(others)
    other = fit_pair_surrogate(turned, generator=np.random.default_rng(0)).predict(others[:, order])
    np.testing.assert_allclose(other, one + shift, atol=1e-4)


def test_grids_without_numbers_are_refused() -> None:
    given_ = with_pair(0, strength=0.0, noise=0.1)
    with pytest.raises(OptionError, match="`rates`"):
        fit_kernel_surrogate(given_, rates=[])
    with pytest.raises(OptionError, match="`ridges`"):
        fit_kernel_surrogate(given_, ridges=[0.0])

"""A company term, KernelSM, and the choice between surrogates by subsets left out."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge

from taskmix.transfer import (
    SubsetOutcomes,
    all_size_subsets,
    balanced_subsets,
    choose_surrogate,
    fit_company_surrogate,
    fit_constant_surrogate,
    fit_kernel_sm_surrogate,
    fit_linear_surrogate,
    fixed_size_subsets,
    gather_outcomes,
)

EFFECTS = np.linspace(-0.02, 0.06, 12)  # nine of twelve harm a target that is in company already
COMPANY = -0.5


def company_table(subsets: np.ndarray, noise: float = 0.005) -> SubsetOutcomes:
    generator = np.random.default_rng(1)
    whole = np.concatenate([subsets, np.zeros((8, 12), dtype=bool)])
    losses = 1 + COMPANY * whole.any(axis=1) + whole @ EFFECTS
    return gather_outcomes(
        whole,
        losses + noise * generator.normal(size=len(whole)),
        target="a",
        sources=[f"s{number}" for number in range(12)],
    )


def several_sizes() -> SubsetOutcomes:
    return company_table(all_size_subsets(12, 80, generator=np.random.default_rng(0), largest=6))


def test_with_company_the_harmful_sources_are_found_and_without_it_they_seem_to_help() -> None:
    table = several_sizes()
    harmful = EFFECTS > 0.02
    assert (fit_linear_surrogate(table).effects[harmful] < 0).all()
    found = fit_company_surrogate(table)
    assert (found.effects[harmful] > 0).all()
    assert found.company == pytest.approx(COMPANY, abs=0.02)
    assert found.identified


def test_subsets_of_one_size_give_effects_relative_to_the_average_source() -> None:
    table = company_table(fixed_size_subsets(12, 3, 60, generator=np.random.default_rng(0)), 0.0)
    found = fit_company_surrogate(table)
    assert not found.identified
    np.testing.assert_allclose(found.effects, EFFECTS - EFFECTS.mean(), atol=1e-9)
    assert found.company == pytest.approx(COMPANY + 3 * EFFECTS.mean())


def test_the_target_alone_is_predicted_as_measured() -> None:
    table = several_sizes()
    for fit in (fit_company_surrogate, fit_constant_surrogate):
        assert float(fit(table).predict(np.zeros(12))) == pytest.approx(table.anchor)


def test_kernel_sm_is_kernel_ridge_of_scikit_learn_without_intercept() -> None:
    table = several_sizes()
    rows = np.concatenate([np.zeros((1, 12)), table.subsets.astype(float)])
    peer = KernelRidge(alpha=0.1, kernel="rbf", gamma=1 / 12).fit(
        rows,
        np.append(table.anchor, table.losses),
        sample_weight=np.append(table.anchor_runs, table.weights),
    )
    others = all_size_subsets(12, 20, generator=np.random.default_rng(5))
    np.testing.assert_allclose(
        fit_kernel_sm_surrogate(table).predict(others), peer.predict(others.astype(float))
    )


def test_company_is_chosen_where_there_is_company() -> None:
    fits = {
        "constant": fit_constant_surrogate,
        "linear": fit_linear_surrogate,
        "company": fit_company_surrogate,
        "kernelsm": fit_kernel_sm_surrogate,
    }
    choice = choose_surrogate(several_sizes(), fits, generator=np.random.default_rng(0))
    assert choice.name == "company"
    assert choice.errors["company"] < choice.errors["linear"]


def test_the_simpler_surrogate_is_chosen_where_sources_do_not_matter() -> None:
    generator = np.random.default_rng(3)
    subsets = all_size_subsets(12, 80, generator=generator, largest=6)
    whole = np.concatenate([subsets, np.zeros((8, 12), dtype=bool)])
    table = gather_outcomes(
        whole,
        1 - 0.3 * whole.any(axis=1) + 0.1 * generator.normal(size=len(whole)),
        target="a",
        sources=[f"s{number}" for number in range(12)],
    )
    fits = {"constant": fit_constant_surrogate, "company": fit_company_surrogate}
    assert choose_surrogate(table, fits, generator=generator).name == "constant"


def test_a_surrogate_that_cannot_be_fitted_is_no_candidate() -> None:
    few = balanced_subsets(12, 3, 8, generator=np.random.default_rng(0))
    table = company_table(few)
    fits = {"constant": fit_constant_surrogate, "company": fit_company_surrogate}
    assert set(choose_surrogate(table, fits, generator=np.random.default_rng(0)).errors) == {
        "constant"
    }

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from taskmix.errors import InputError, ShapeError
from taskmix.transfer import (
    fit_linear_surrogate,
    fit_transfer_matrix,
    fixed_size_subsets,
    gather_outcomes,
    outcomes_of_target,
)

TASKS = ["a", "b", "c", "d", "e"]


def runs(
    seed: int, *, noise: float, count: int = 60, alone: int = 3
) -> tuple[NDArray[np.bool_], NDArray[np.float64], NDArray[np.float64]]:
    """Runs of three of five tasks and of each alone, with the effects they were made of."""
    generator = np.random.default_rng(seed)
    effects = generator.normal(size=(5, 5)) * (1 - np.eye(5))
    trained = np.concatenate(
        [fixed_size_subsets(5, 3, count, generator=generator), *[np.eye(5, dtype=bool)] * alone]
    )
    losses = 10.0 + trained @ effects.T + noise * generator.normal(size=trained.shape)
    return trained, np.where(trained, losses, np.nan), effects


def test_every_effect_is_found_where_there_is_no_noise() -> None:
    trained, outcomes, effects = runs(0, noise=0.0)
    found = fit_transfer_matrix(trained, outcomes, tasks=TASKS)
    off = ~np.eye(5, dtype=bool)
    np.testing.assert_allclose(found.effects[off], effects[off], atol=1e-9)
    assert np.isnan(np.diag(found.effects)).all()
    np.testing.assert_allclose(found.relative_gains[off], -effects[off] / 10, atol=1e-9)
    assert found.failed == (0, 0, 0, 0, 0)
    np.testing.assert_allclose(np.nanmean(found.centred().effects, axis=1), 0.0, atol=1e-9)


def test_each_row_is_the_surrogate_of_its_target_alone() -> None:
    trained, outcomes, _ = runs(1, noise=0.5)
    outcomes[4, np.flatnonzero(trained[4])] = np.nan  # a run that failed as a whole
    found = fit_transfer_matrix(trained, outcomes, tasks=TASKS)
    rows = trained[:, 2]
    alone = fit_linear_surrogate(
        gather_outcomes(
            trained[rows][:, [0, 1, 3, 4]],
            outcomes[rows, 2],
            target="c",
            sources=["a", "b", "d", "e"],
        )
    )
    np.testing.assert_allclose(found.effects[2, [0, 1, 3, 4]], alone.effects)
    np.testing.assert_allclose(found.standard_errors[2, [0, 1, 3, 4]], alone.standard_errors)
    low, high = found.intervals()
    np.testing.assert_allclose(low[2, [0, 1, 3, 4]], alone.intervals()[0])
    np.testing.assert_allclose(high[2, [0, 1, 3, 4]], alone.intervals()[1])
    assert found.failed == tuple(trained[4].astype(int))
    plain = found.p_values(adjusted=False)
    np.testing.assert_allclose(plain[2, [0, 1, 3, 4]], alone.p_values())
    off = ~np.eye(5, dtype=bool)  # adjusted over all pairs at once, and a task on itself is none
    wanted = stats.false_discovery_control(plain[off])
    np.testing.assert_allclose(found.p_values()[off], wanted)
    assert np.isnan(np.diag(found.p_values())).all()


def test_matrices_that_cannot_be_are_refused() -> None:
    trained, outcomes, _ = runs(4, noise=0.5)
    with pytest.raises(InputError, match=r"one of the tasks a, b, c, d, e\. Found `z`"):
        outcomes_of_target(trained, outcomes, tasks=TASKS, target="z")
    with pytest.raises(InputError, match=r"at least 3 source tasks\. Found 2"):
        fit_transfer_matrix(trained[:, :3], outcomes[:, :3], tasks=TASKS[:3])
    with pytest.raises(ShapeError, match="Found shapes"):
        fit_transfer_matrix(trained, outcomes[:, :2], tasks=TASKS)
    with pytest.raises(ShapeError, match="one for each of the 5 tasks"):
        fit_transfer_matrix(trained, outcomes, tasks=TASKS, higher_is_better=[True])
    subsets = trained.sum(axis=1) > 1
    with pytest.raises(InputError, match="Target `a` should have at least one finished run alone"):
        fit_transfer_matrix(trained[subsets], outcomes[subsets], tasks=TASKS)

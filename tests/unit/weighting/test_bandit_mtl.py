from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from taskmix.weighting import BanditMTL, BanditMTLState

Array = NDArray[np.float64]

losses_of_tasks = arrays(np.float64, st.integers(2, 12), elements=st.floats(0, 3))
radii = st.floats(0.01, 3.0)


def divergence(p: Array) -> float:
    """KL(p‖uniform)."""
    return float(np.sum(p * np.log(np.maximum(len(p) * p, 1e-300))))


def probabilities(state: BanditMTLState) -> Array:
    return np.asarray(state.probabilities.numpy())


def after(method: BanditMTL, rounds: list[list[float]]) -> Array:
    state = method.init(torch.ones(len(rounds[0])))
    for losses in rounds:
        state = method.update(state, torch.tensor(losses, dtype=torch.float64))
    return probabilities(state)


def test_one_step_inside_the_ball_is_the_exponential_of_the_losses() -> None:
    # Eq. 6 with λ = 0 by hand: q = (1/3) exp(0.5 * (0, 1, 2)) = (0.3333, 0.5496, 0.9061).
    found = after(BanditMTL(radius=1.0), [[0.0, 1.0, 2.0]])
    np.testing.assert_allclose(found, [0.18632, 0.30720, 0.50648], atol=1e-5)


def test_one_step_out_of_the_ball_ends_on_its_surface() -> None:
    # Two tasks: KL(p) = log 2 - H(p). With ρ = 0.1, p solves p log p + (1-p) log(1-p) = ρ - log 2,
    # which is p = 0.71980 by bisection on paper; the step alone would go to 1 / (1 + exp(-2.5)).
    found = after(BanditMTL(radius=0.1), [[0.0, 5.0]])
    np.testing.assert_allclose(found, [0.28020, 0.71980], atol=1e-4)
    assert divergence(found) == pytest.approx(0.1, abs=1e-10)


def test_weights_are_those_before_the_step_and_sum_to_the_tasks() -> None:
    method = BanditMTL()
    state = method.init(torch.ones(4))
    losses = torch.tensor([0.1, 0.2, 0.3, 0.4])
    assert torch.equal(method.weigh(state, losses), torch.ones(4))  # Eq. 8 has p^k, not p^(k+1)
    weights = method.weigh(method.update(state, losses), losses)
    assert float(weights.sum()) == pytest.approx(4)
    assert (weights.diff() > 0).all()


@given(losses_of_tasks, radii, st.floats(0.01, 5.0))
def test_p_is_a_distribution_in_the_ball_and_on_its_surface_where_that_binds(
    losses: Array, radius: float, step_size: float
) -> None:
    method = BanditMTL(radius=radius, step_size=step_size)
    state = method.init(torch.ones(len(losses)))
    for _ in range(4):
        free = np.log(probabilities(state)) + step_size * losses
        free = np.exp(free - free.max())
        binds = divergence(free / free.sum()) > radius + 1e-9
        state = method.update(state, torch.from_numpy(losses))
        p = probabilities(state)
        assert p.min() >= 0
        assert p.sum() == pytest.approx(1, abs=1e-9)
        assert divergence(p) <= radius + 1e-9
        if binds:
            assert divergence(p) == pytest.approx(radius, abs=1e-9)


def test_large_losses_are_taken_as_they_are_clipped_or_scaled() -> None:
    rounds = [[0.5, 2.0, 4.0]]
    as_is = after(BanditMTL(radius=9.0), rounds)
    np.testing.assert_allclose(as_is[2] / as_is[1], np.exp(0.5 * 2.0))
    clipped = after(BanditMTL(radius=9.0, large_losses="clip"), rounds)
    np.testing.assert_allclose(clipped[2], clipped[1])
    scaled = after(BanditMTL(radius=9.0, large_losses="scale"), rounds)
    np.testing.assert_allclose(scaled[2] / scaled[1], np.exp(0.5 * 0.5))


def test_smoothing_follows_the_running_mean_and_starts_at_the_first_loss() -> None:
    method = BanditMTL(radius=9.0, smoothing=0.9)
    state = method.update(method.init(torch.ones(2)), torch.tensor([1.0, 0.0]))
    np.testing.assert_allclose(state.mean_losses.numpy(), [1.0, 0.0])
    state = method.update(state, torch.tensor([0.0, 1.0]))
    np.testing.assert_allclose(state.mean_losses.numpy(), [0.9, 0.1])


def test_a_task_without_a_loss_moves_as_the_others_do_on_average() -> None:
    method = BanditMTL(radius=9.0)
    present = torch.tensor([True, False, True])
    state = method.update(method.init(torch.ones(3)), torch.tensor([0.0, 99.0, 2.0]), present)
    p = probabilities(state)
    assert p[0] < p[1] < p[2]
    np.testing.assert_allclose(p[1] / p[0], np.exp(0.5 * 1.0))
    weights = method.weigh(state, torch.zeros(3), present)
    assert float(weights[1]) == 0
    assert float(weights.sum()) == pytest.approx(2)

"""Values of the loss weightings, worked out by hand from their papers."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from taskmix.weighting import (
    FAMO,
    IMTLL,
    DynamicWeightAverage,
    FixedWeights,
    GeometricMean,
    GroupDRO,
    RandomWeights,
    SmoothTchebycheff,
    Tchebycheff,
    Uncertainty,
)


def close(found: Tensor, expected: list[float], tolerance: float = 1e-4) -> None:
    wanted = torch.tensor(expected, dtype=found.dtype)
    torch.testing.assert_close(found, wanted, atol=tolerance, rtol=0.0)


def test_fixed_weights_keep_their_ratios_among_the_tasks_present() -> None:
    method = FixedWeights(weights=(1.0, 3.0, 4.0))
    close(method.weigh(None, torch.ones(3)), [0.375, 1.125, 1.5])
    close(method.weigh(None, torch.ones(3), torch.tensor([True, True, False])), [0.5, 1.5, 0.0])


def test_the_task_whose_loss_falls_slowest_gets_the_largest_weight() -> None:
    method = DynamicWeightAverage(steps_per_epoch=1)
    state = method.init(torch.ones(2))
    for losses in ([1.0, 1.0], [0.5, 0.9]):
        close(method.weigh(state, torch.tensor(losses)), [1.0, 1.0])
        state = method.update(state, torch.tensor(losses))
    # Eq. 7 by hand: rates 0.5 and 0.9, so 2 * softmax([0.25, 0.45]).
    close(method.weigh(state, torch.tensor([0.4, 0.8])), [0.9003, 1.0997])


def test_dynamic_weight_average_compares_means_of_epochs() -> None:
    method = DynamicWeightAverage()
    state = method.init(torch.ones(2))
    for epoch in ([[2.0, 1.0], [0.0, 1.0]], [[0.5, 0.9], [0.5, 0.9]]):
        for losses in epoch:
            state = method.update(state, torch.tensor(losses))
        state = method.end_epoch(state)
    close(method.weigh(state, torch.ones(2)), [0.9003, 1.0997])


def test_uncertainty_has_both_forms() -> None:
    method = Uncertainty(forms=("classification", "regression"))
    state = method.init(torch.ones(2))
    close(method.unscaled(state, torch.ones(2)), [1.0, 0.5])  # σ = 1: 1/σ² and 1/(2σ²)
    close(method.weigh(state, torch.ones(2)), [4 / 3, 2 / 3])


@pytest.mark.parametrize("form", ["classification", "regression"])
def test_uncertainty_settles_at_half_the_inverse_loss(form: str) -> None:
    method = Uncertainty(forms=form)  # type: ignore[arg-type]
    losses = torch.tensor([0.25, 1.0, 4.0], dtype=torch.float64)
    state = method.init(losses)
    for _ in range(3000):
        state = method.update(state, losses)
    close(method.unscaled(state, losses), [2.0, 0.5, 0.125], tolerance=1e-3)


def test_impartial_scales_settle_at_the_inverse_loss() -> None:
    method = IMTLL()
    losses = torch.tensor([0.25, 1.0, 4.0], dtype=torch.float64)
    state = method.init(losses)
    close(method.weigh(state, losses), [1.0, 1.0, 1.0])
    for _ in range(3000):
        state = method.update(state, losses)
    close(method.unscaled(state, losses), [4.0, 1.0, 0.25], tolerance=1e-3)


def test_the_first_step_of_the_learned_weights_is_one_step_size() -> None:
    # Adam's first step is the sign of the gradient times the step size.
    losses = torch.tensor([3.0, 0.2], dtype=torch.float64)
    uncertain = Uncertainty(step_size=0.1)
    close(uncertain.update(uncertain.init(losses), losses).log_variance, [0.1, -0.1])
    impartial = IMTLL(step_size=0.1)
    close(impartial.update(impartial.init(losses), losses).log_scale, [-0.1, 0.1])


def test_the_geometric_mean_weighs_by_the_inverse_loss() -> None:
    losses = torch.tensor([1.0, 2.0, 4.0])
    close(GeometricMean().weigh(None, losses), [12 / 7, 6 / 7, 3 / 7])
    # The mean is 2; its gradient 2 / (3 L).
    close(GeometricMean().unscaled(None, losses), [2 / 3, 1 / 3, 1 / 6])


def test_tchebycheff_takes_the_task_furthest_from_its_ideal() -> None:
    losses = torch.tensor([1.0, 3.0, 2.0])
    close(Tchebycheff().weigh(None, losses), [0.0, 3.0, 0.0])
    close(Tchebycheff(ideal=(0.0, 2.5, 0.0)).weigh(None, losses), [0.0, 0.0, 3.0])
    method = Tchebycheff(weights=(4.0, 1.0, 1.0))
    close(method.weigh(None, losses), [3.0, 0.0, 0.0])
    close(method.unscaled(None, losses), [4.0, 0.0, 0.0])


def test_smooth_tchebycheff_is_a_softmax_of_the_losses() -> None:
    # λ = 1/2, μ = 0.1: softmax((0.1, 0.2) / 0.1 / 2 * 1) = softmax(0.5, 1.0) = (0.3775, 0.6225).
    losses = torch.tensor([0.1, 0.2])
    close(SmoothTchebycheff().weigh(None, losses), [0.7551, 1.2449])
    close(SmoothTchebycheff().unscaled(None, losses), [0.1888, 0.3112])


def test_smooth_tchebycheff_of_logarithms_divides_by_the_losses() -> None:
    # Equal losses: equal shares, 1 / L each; a common factor cancels.
    method = SmoothTchebycheff(logarithm=True, smoothness=1.0)
    one = method.weigh(None, torch.tensor([0.5, 2.0], dtype=torch.float64))
    two = method.weigh(None, torch.tensor([5.0, 20.0], dtype=torch.float64))
    torch.testing.assert_close(one, two)
    # λ = 1/2: softmax(log(L) / 2) = (√0.5, √2) / sum = (1/3, 2/3); divided by L: (2/3, 1/3).
    close(one, [4 / 3, 2 / 3])


def test_group_dro_climbs_before_the_step() -> None:
    method = GroupDRO(step_size=1.0)
    losses = torch.tensor([0.0, math.log(3.0)])
    state = method.init(losses)
    close(method.weigh(state, losses), [0.5, 1.5])  # q = (1, 3) / 4
    state = method.update(state, losses)
    close(method.weigh(state, losses), [0.2, 1.8])  # q = (1, 9) / 10


def test_group_dro_leaves_a_task_without_a_loss() -> None:
    method = GroupDRO(step_size=1.0)
    present = torch.tensor([True, False])
    state = method.update(method.init(torch.ones(2)), torch.tensor([math.log(3.0), 50.0]), present)
    close(state.log_weights.exp(), [0.75, 0.25])


def test_famo_gives_weight_to_the_task_that_gained_least() -> None:
    method = FAMO(step_size=0.1, decay=0.0)
    before = torch.tensor([1.0, 1.0], dtype=torch.float64)
    state = method.update(method.init(before), before)
    state = method.after_step(state, torch.tensor([0.5, 0.9], dtype=torch.float64))
    # δ = (log 2, -log 0.9), gradient (δ1 - δ2) / 4 * (1, -1): Adam's first step is ∓ 0.1.
    close(state.logits, [-0.1, 0.1])
    close(method.weigh(state, before), [0.9003, 1.0997])


def test_random_weights_follow_seed_and_step() -> None:
    method = RandomWeights(seed=3)
    state = method.init(torch.ones(3))
    first = method.weigh(state, torch.ones(3))
    assert torch.equal(first, method.weigh(state, torch.zeros(3)))
    second = method.weigh(method.update(state, torch.ones(3)), torch.ones(3))
    assert not torch.equal(first, second)
    assert not torch.equal(first, RandomWeights(seed=4).weigh(state, torch.ones(3)))
    assert float(first.sum()) == pytest.approx(3)

"""Values of the gradient weightings, worked out by hand from their papers."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from taskmix.weighting import (
    DBMTL,
    IMTLG,
    MGDA,
    AlignedMTL,
    AnyGradientWeighting,
    CAGrad,
    ConFIG,
    ExcessMTL,
    FairGrad,
    GradNorm,
    GradVac,
    NashMTL,
    Needs,
    PCGrad,
    UPGrad,
)


def rows_of(*gradients: list[float]) -> Tensor:
    return torch.tensor(gradients, dtype=torch.float64)


def weights_of(
    method: AnyGradientWeighting, gradients: Tensor, losses: list[float] | None = None
) -> Tensor:
    values = torch.tensor(losses or [1.0] * len(gradients), dtype=torch.float64)
    given = gradients if Needs.GRADIENTS in method.needs else gradients @ gradients.T
    return method.balance(method.init(values), values, given).weights


def close(found: Tensor, expected: list[float], tolerance: float = 1e-5) -> None:
    wanted = torch.tensor(expected, dtype=found.dtype)
    torch.testing.assert_close(found, wanted, atol=tolerance, rtol=0.0)


ORTHOGONAL = rows_of([2.0, 0.0], [0.0, 1.0])
CONFLICT = rows_of([1.0, 0.0], [-1.0, 1.0])


def test_mgda_of_two_is_the_foot_of_the_perpendicular() -> None:
    # |w (2, 0) + (1-w) (0, 1)|² = 4w² + (1-w)² is smallest at w = 1/5.
    close(weights_of(MGDA(), ORTHOGONAL), [0.2, 0.8])
    # |w (1, 0) + (1-w) (-1, 1)|² = (2w-1)² + (1-w)² is smallest at w = 3/5.
    close(weights_of(MGDA(), CONFLICT), [0.6, 0.4])


def test_mgda_stays_at_a_corner_where_one_gradient_is_the_shortest() -> None:
    close(weights_of(MGDA(), rows_of([1.0, 0.0], [3.0, 1.0])), [1.0, 0.0])


def test_mgda_gives_all_weight_to_a_gradient_of_zero() -> None:
    close(weights_of(MGDA(), rows_of([1.0, 0.0], [0.0, 0.0])), [0.0, 1.0])


def test_mgda_divides_the_gradients_only_to_find_the_weights() -> None:
    close(weights_of(MGDA(normalization="l2"), ORTHOGONAL), [0.5, 0.5])
    close(weights_of(MGDA(normalization="loss"), ORTHOGONAL, losses=[2.0, 1.0]), [0.5, 0.5])
    # Divided by norm and loss the rows are 1/2 and 1 long: weights 4/5 and 1/5.
    close(weights_of(MGDA(normalization="loss+"), ORTHOGONAL, losses=[2.0, 1.0]), [0.8, 0.2])


def test_imtl_g_of_two_weighs_by_the_other_ones_norm() -> None:
    # For two tasks the equal projections are |g2| / (|g1| + |g2|), whatever the angle.
    close(weights_of(IMTLG(), ORTHOGONAL), [1 / 3, 2 / 3])
    root = math.sqrt(2)
    close(weights_of(IMTLG(), CONFLICT), [root / (1 + root), 1 / (1 + root)])


def test_imtl_g_never_climbs_where_the_papers_sum_is_negative() -> None:
    # Weights v / |g| that sum below 0: dividing by that sum would turn the step around.
    rows = rows_of([1.0, 0.0], [0.98, 0.2], [0.0097, 0.0])
    rows[2] = rows_of([0.96, -0.29])[0] * 0.01
    for seed in range(200):
        generator = torch.Generator().manual_seed(seed)
        drawn = torch.randn(3, 3, generator=generator, dtype=torch.float64)
        drawn[2] *= 0.01
        step = weights_of(IMTLG(), drawn) @ drawn
        assert (drawn @ step > 0).all()


def test_config_has_the_direction_of_imtl_g_and_a_length_of_its_own() -> None:
    # Orthogonal: direction (1, 1) / √2, length (2 + 1) / √2, so the step is (1.5, 1.5).
    step = weights_of(ConFIG(), ORTHOGONAL) @ ORTHOGONAL
    close(step, [1.5, 1.5])


def test_pcgrad_projects_each_of_two_conflicting_gradients() -> None:
    # g1·g2 = -1. g1' = (1, 0) + (-1, 1)/2 = (1/2, 1/2); g2' = (-1, 1) + (1, 0) = (0, 1).
    weights = weights_of(PCGrad(), CONFLICT)
    close(weights, [2.0, 1.5])
    close(weights @ CONFLICT, [0.5, 1.5])


def test_pcgrad_leaves_what_agrees() -> None:
    close(weights_of(PCGrad(), rows_of([1.0, 0.0], [1.0, 1.0])), [1.0, 1.0])


def test_gradvac_starts_as_pcgrad_and_then_turns_towards_the_usual_cosine() -> None:
    method = GradVac(rate=0.5)
    losses = torch.ones(2, dtype=torch.float64)
    agree = rows_of([1.0, 0.0], [1.0, 1.0])
    first = method.balance(method.init(losses), losses, agree @ agree.T)
    close(first.weights, [1.0, 1.0])
    # The cosine is 1/√2, so the target is half of it.
    close(first.state.targets, [[0.0, 0.35355], [0.35355, 0.0]])
    # Orthogonal gradients are below the target now: |g1| (φ̂ √(1-0) - 0) / (|g2| √(1-φ̂²)) = 0.37796.
    square = rows_of([1.0, 0.0], [0.0, 1.0])
    second = method.balance(first.state, losses, square @ square.T)
    close(second.weights, [1.37796, 1.37796], tolerance=1e-4)


def test_gradvac_keeps_the_targets_of_tasks_that_are_absent() -> None:
    method = GradVac(rate=0.5)
    losses = torch.ones(3, dtype=torch.float64)
    rows = rows_of([1.0, 0.0], [1.0, 1.0])
    state = method.init(losses)
    state = method.balance(state, losses[:2], rows @ rows.T, torch.tensor([0, 2])).state
    close(state.targets[0], [0.0, 0.0, 0.35355])
    close(state.targets[1], [0.0, 0.0, 0.0])


def test_cagrad_of_two_equal_and_orthogonal_tasks_lengthens_the_mean() -> None:
    # g0 = (1/2, 1/2) is also g_w; d = g0 (1 + c).
    rows = rows_of([1.0, 0.0], [0.0, 1.0])
    close(weights_of(CAGrad(closeness=0.4), rows) @ rows, [0.7, 0.7])


def test_nash_of_orthogonal_tasks_weighs_by_the_inverse_norm() -> None:
    close(weights_of(NashMTL(), ORTHOGONAL), [0.5, 1.0])


def test_nash_of_equal_tasks_shares_the_step() -> None:
    rows = rows_of([1.0, 0.0], [1.0, 0.0])
    close(weights_of(NashMTL(), rows), [1 / math.sqrt(2)] * 2, tolerance=1e-4)


def test_fairgrad_of_orthogonal_tasks_follows_its_power() -> None:
    # |g|² w = w^(-1/α), so w = |g|^(-2α / (1 + α)); for α = 2 and |g| = 2 that is 2^(-4/3).
    close(weights_of(FairGrad(alpha=2.0), ORTHOGONAL), [2 ** (-4 / 3), 1.0])


def test_aligned_gradients_are_orthogonal_and_as_long_as_the_least_singular_value() -> None:
    # Already orthogonal, 2 and 1 long: aligned they are (1, 0) and (0, 1), averaged (1/2, 1/2).
    close(weights_of(AlignedMTL(), ORTHOGONAL) @ ORTHOGONAL, [0.5, 0.5])
    close(weights_of(AlignedMTL(scale="rmse"), ORTHOGONAL) @ ORTHOGONAL, [0.7906, 0.7906], 1e-4)


def test_upgrad_projects_each_gradient_to_where_no_task_loses() -> None:
    # As PCGrad for two tasks, but averaged: ((1/2, 1/2) + (0, 1)) / 2.
    close(weights_of(UPGrad(), CONFLICT) @ CONFLICT, [0.25, 0.75], tolerance=1e-4)


def test_gradnorm_raises_the_task_that_came_less_far() -> None:
    # Both gradients are 1 long; the first loss halved and the second doubled, so the rates are
    # 0.4 and 1.6, the targets 0.4^α and 1.6^α: the first weight falls and the second rises.
    method = GradNorm(step_size=0.1)
    state = method.balance(
        method.init(torch.ones(2)), torch.tensor([1.0, 1.0]), torch.eye(2).double()
    ).state
    close(state.weights, [1.0, 1.0])
    state = method.balance(state, torch.tensor([0.5, 2.0]), torch.eye(2).double()).state
    assert float(state.weights[0]) < 1 < float(state.weights[1])
    assert float(state.weights.sum()) == pytest.approx(2)


def test_gradnorm_takes_signed_steps_of_the_norms() -> None:
    # Norms 3 and 1, equal rates: mean 2, so task 1 is above its target and task 2 below it.
    # Adam's first step is 0.025 against the sign: (0.975, 1.025), whose sum is 2 already.
    method = GradNorm()
    balance = method.balance(
        method.init(torch.ones(2)), torch.ones(2), torch.diag(torch.tensor([9.0, 1.0]))
    )
    close(balance.weights, [1.0, 1.0])  # the step has the weights from before
    close(balance.state.weights, [0.975, 1.025])


def test_gradnorm_takes_given_initial_losses() -> None:
    method = GradNorm(initial_losses=(2.0, 1.0))
    balance = method.balance(method.init(torch.ones(2)), torch.ones(2), torch.eye(2).double())
    close(balance.state.initial_losses, [2.0, 1.0])
    assert float(balance.state.weights[0]) < 1 < float(balance.state.weights[1])


def test_excess_mtl_moves_by_the_estimate_relative_to_the_first() -> None:
    method = ExcessMTL(step_size=1.0)
    losses = torch.ones(2, dtype=torch.float64)
    first = method.balance(method.init(losses), losses, rows_of([1.0, 1.0], [2.0, 0.0]))
    close(first.weights, [1.0, 1.0])  # E(0) = (2, 2), no move
    second = method.balance(first.state, losses, rows_of([1.0, 1.0], [0.0, 0.0]))
    # E = (2/√2, 0): relative (0.7071, 0), so weights 2 softmax(0.7071, 0).
    close(second.weights, [1.33952, 0.66048], tolerance=1e-4)


def test_db_mtl_brings_logarithmic_gradients_to_the_longest() -> None:
    # Norms 2 and 1, losses 2 and 0.5: of the logarithms 1 and 2, so the factors are 2 and 1, and
    # divided by the losses 1 and 2.
    close(weights_of(DBMTL(memory=0.0), ORTHOGONAL, losses=[2.0, 0.5]), [1.0, 2.0])


def test_db_mtl_steps_along_running_means() -> None:
    method = DBMTL(memory=0.5, memory_power=0.0)
    losses = torch.ones(2, dtype=torch.float64)
    first = method.balance(method.init(losses), losses, ORTHOGONAL)
    close(first.state.means[0], [1.0, 0.0])
    second = method.balance(first.state, losses, rows_of([0.0, 0.0], [0.0, 1.0]))
    close(second.state.means[0], [0.5, 0.0])
    close(second.state.means[1], [0.0, 0.75])
    assert second.combination is not None
    close(second.combination, [0.75, 0.75])  # both as long as the longest


@pytest.mark.parametrize(
    "method", [NashMTL(), IMTLG(), CAGrad(), UPGrad(), FairGrad(), ConFIG(), PCGrad()], ids=str
)
def test_a_task_without_a_gradient_does_not_disturb_the_others(
    method: AnyGradientWeighting,
) -> None:
    with_it = weights_of(method, torch.cat([CONFLICT, rows_of([0.0, 0.0])]))
    without = weights_of(method, CONFLICT)
    if not isinstance(method, CAGrad | UPGrad):  # whose means are over all tasks
        torch.testing.assert_close(with_it[:2], without)
    assert float(with_it[2]) == pytest.approx(float(with_it[:2].abs().mean()))

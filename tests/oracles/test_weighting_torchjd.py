"""Agreement with TorchJD, the strongest peer, where its definition is the paper's.

It is one of the packages for development. Its CAGrad solves with CVXPY, which is not, as it brings five
solvers along: that row runs where it is installed. Where the two differ by definition the test says so,
and by how much.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

import pytest
import torch
from torch import Tensor

from taskmix.weighting import (
    FAMO,
    IMTLG,
    IMTLL,
    MGDA,
    AlignedMTL,
    AnyGradientWeighting,
    CAGrad,
    ConFIG,
    DynamicWeightAverage,
    FairGrad,
    GeometricMean,
    GradVac,
    PCGrad,
    SmoothTchebycheff,
    Uncertainty,
    UPGrad,
)

aggregation = pytest.importorskip("torchjd.aggregation", reason="torchjd is not installed")
scalarization = pytest.importorskip("torchjd.scalarization", reason="torchjd is not installed")

ROWS = [(2, 20), (3, 20), (8, 60), (20, 100)]


def jacobian(tasks: int, parameters: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    rows = torch.randn(tasks, parameters, generator=generator, dtype=torch.float64)
    return rows * torch.linspace(0.5, 2, tasks, dtype=torch.float64)[:, None]


def step(method: AnyGradientWeighting, rows: Tensor) -> Tensor:
    losses = torch.ones(len(rows), dtype=torch.float64)
    return method.balance(method.init(losses), losses, rows @ rows.T).weights @ rows


def exact_projector() -> Any:
    """TorchJD's own adds 1e-4 to the diagonal of the Gramian divided by its trace."""
    from torchjd.linalg import QuadprogProjector

    return QuadprogProjector(norm_eps=0.0, reg_eps=1e-10)


SAME: list[Any] = [  # name, ours, the peer, tolerance
    ("UPGrad", UPGrad(), lambda: aggregation.UPGrad(projector=exact_projector()), 1e-5),
    ("MGDA", MGDA(), lambda: aggregation.MGDA(epsilon=1e-9, max_iters=20_000), 2e-2),
    ("IMTLG", IMTLG(), aggregation.IMTLG, 1e-6),
    pytest.param(
        "CAGrad",
        CAGrad(closeness=0.4),
        lambda: aggregation.CAGrad(c=0.4),
        1e-3,
        marks=pytest.mark.skipif(find_spec("cvxpy") is None, reason="cvxpy is not installed"),
    ),
    ("AlignedMTL", AlignedMTL(), aggregation.AlignedMTL, 1e-9),
    ("ConFIG", ConFIG(), aggregation.ConFIG, 1e-6),
    ("FairGrad", FairGrad(alpha=2.0), lambda: aggregation.FairGrad(alpha=2.0), 1e-6),
]


@pytest.mark.parametrize(("tasks", "parameters"), ROWS)
@pytest.mark.parametrize(
    ("name", "ours", "peer", "tolerance"), SAME, ids=lambda value: str(value)[:9]
)
def test_the_step_is_the_peers(
    name: str,
    ours: AnyGradientWeighting,
    peer: Callable[[], Any],
    tolerance: float,
    tasks: int,
    parameters: int,
) -> None:
    rows = jacobian(tasks, parameters)
    expected = peer()(rows)
    found = step(ours, rows)
    assert float((found - expected).norm() / expected.norm()) < tolerance


def of_vector(peer: Callable[..., Any]) -> Callable[[Tensor], Any]:
    return lambda vector: peer(pref_vector=vector)


PREFERRED: list[Any] = [
    (
        "UPGrad",
        UPGrad(),
        lambda vector: aggregation.UPGrad(vector, projector=exact_projector()),
        1e-5,
    ),
    ("AlignedMTL", AlignedMTL(), of_vector(aggregation.AlignedMTL), 1e-9),
    ("ConFIG", ConFIG(), of_vector(aggregation.ConFIG), 1e-6),
]


@pytest.mark.parametrize(("tasks", "parameters"), ROWS)
@pytest.mark.parametrize(
    ("name", "ours", "peer", "tolerance"), PREFERRED, ids=lambda value: str(value)[:9]
)
def test_a_preference_is_the_peers_vector_where_it_has_one(
    name: str,
    ours: Any,
    peer: Callable[[Tensor], Any],
    tolerance: float,
    tasks: int,
    parameters: int,
) -> None:
    rows = jacobian(tasks, parameters)
    wanted = torch.linspace(1, 3, tasks, dtype=torch.float64)
    expected = peer(wanted / wanted.sum())(rows)
    found = step(replace(ours, preference=tuple(wanted.tolist())), rows)
    assert float((found - expected).norm() / expected.norm()) < tolerance


def test_mgda_is_never_longer_than_the_peers_frank_wolfe() -> None:
    for seed in range(5):
        rows = jacobian(16, 100, seed) * torch.logspace(-1, 1, 16, dtype=torch.float64)[:, None]
        assert float(step(MGDA(), rows).norm()) <= float(aggregation.MGDA()(rows).norm()) + 1e-9


def test_pcgrad_is_the_peers_for_two_tasks_where_no_order_is_drawn() -> None:
    rows = torch.tensor([[1.0, 0.0], [-1.0, 1.0]], dtype=torch.float64)
    torch.testing.assert_close(step(PCGrad(), rows), aggregation.PCGrad()(rows))


def test_gradvac_is_the_peers_for_two_tasks_where_no_order_is_drawn() -> None:
    rows = torch.tensor([[1.0, 0.0], [-1.0, 1.0]], dtype=torch.float64)
    method, peer = GradVac(rate=0.5), aggregation.GradVac(beta=0.5)
    losses = torch.ones(2, dtype=torch.float64)
    state = method.init(losses)
    for shift in (0.0, 0.3, 0.6):
        moved = rows + shift
        balance = method.balance(state, losses, moved @ moved.T)
        state = balance.state
        torch.testing.assert_close(balance.weights @ moved, peer(moved), atol=1e-6, rtol=1e-6)


def test_loss_weightings_have_the_peers_gradients() -> None:
    values = torch.tensor([0.7, 1.9, 0.2], dtype=torch.float64)

    def of_peer(scalarizer: Any) -> Tensor:
        losses = values.clone().requires_grad_()
        (gradient,) = torch.autograd.grad(scalarizer(losses), losses)
        return gradient

    geometric = GeometricMean()
    torch.testing.assert_close(
        geometric.unscaled(None, values), of_peer(scalarization.GeometricMean())
    )
    smooth = SmoothTchebycheff(smoothness=0.3)
    torch.testing.assert_close(smooth.unscaled(None, values), of_peer(scalarization.STCH(mu=0.3)))
    regression = Uncertainty(forms="regression")
    torch.testing.assert_close(
        regression.unscaled(regression.init(values), values), of_peer(scalarization.UW(3).double())
    )
    impartial = IMTLL()
    torch.testing.assert_close(
        impartial.unscaled(impartial.init(values), values), of_peer(scalarization.IMTLL(3).double())
    )


def test_famo_takes_the_peers_steps() -> None:
    generator = torch.Generator().manual_seed(0)
    ours, peer = FAMO(step_size=0.025, decay=1e-3), scalarization.FAMO(3).double()
    state = ours.init(torch.ones(3, dtype=torch.float64))
    for _ in range(20):
        before = torch.rand(3, generator=generator, dtype=torch.float64) + 0.1
        after = before * torch.rand(3, generator=generator, dtype=torch.float64)
        losses = before.clone().requires_grad_()
        (gradient,) = torch.autograd.grad(peer(losses), losses)
        torch.testing.assert_close(ours.weigh(state, before) / 3, gradient, atol=1e-6, rtol=1e-6)
        state = ours.after_step(ours.update(state, before), after)
        peer.update(after)


def test_dynamic_weight_average_is_the_peers_epoch_by_epoch() -> None:
    generator = torch.Generator().manual_seed(0)
    ours, peer = DynamicWeightAverage(), scalarization.DWA()
    state = ours.init(torch.ones(3, dtype=torch.float64))
    for _ in range(4):
        for _ in range(3):
            values = torch.rand(3, generator=generator, dtype=torch.float64) + 0.1
            losses = values.clone().requires_grad_()
            (gradient,) = torch.autograd.grad(peer(losses), losses)
            torch.testing.assert_close(ours.weigh(state, values), gradient)
            state = ours.update(state, values)
        state = ours.end_epoch(state)
        peer.step()

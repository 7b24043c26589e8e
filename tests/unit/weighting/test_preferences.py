"""How many times as much each task is wanted."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from taskmix.errors import OptionError, ShapeError
from taskmix.weighting import (
    FAMO,
    IMTLG,
    MGDA,
    AlignedMTL,
    AnyWeighting,
    Balancer,
    BanditMTL,
    CAGrad,
    ConFIG,
    Equal,
    ExcessMTL,
    FairGrad,
    FixedWeights,
    GradVac,
    NashMTL,
    PCGrad,
    Tchebycheff,
    UPGrad,
)

WITH_PREFERENCE: list[Any] = [
    AlignedMTL(),
    CAGrad(),
    ConFIG(),
    FairGrad(),
    GradVac(),
    IMTLG(),
    NashMTL(),
    PCGrad(),
    UPGrad(),
]
each_method = pytest.mark.parametrize("method", WITH_PREFERENCE, ids=lambda m: type(m).__name__)
ROWS = torch.tensor([[1.0, 0.0, 0.5], [-0.5, 2.0, 0.0], [0.0, -1.0, 1.5]], dtype=torch.float64)


def weigh(method: Any, products: Tensor, tasks: Tensor | None = None) -> Tensor:
    losses = torch.ones(len(products), dtype=torch.float64)
    weights: Tensor = method.balance(method.init(torch.ones(3)), losses, products, tasks).weights
    return weights


@each_method
def test_an_even_preference_changes_nothing_whatever_its_scale(method: Any) -> None:
    products = ROWS @ ROWS.T
    found = weigh(replace(method, preference=(5.0, 5.0, 5.0)), products)
    torch.testing.assert_close(found, weigh(method, products))


@each_method
def test_a_task_that_is_wanted_more_gains_more(method: Any) -> None:
    gains = [
        ROWS @ (weigh(replace(method, preference=wanted), ROWS @ ROWS.T) @ ROWS)
        for wanted in ((1.0, 1.0, 1.0), (1.0, 4.0, 1.0))
    ]
    shares = [gain / gain.abs().sum() for gain in gains]
    assert float(shares[1][1]) > float(shares[0][1]) + 0.01


@each_method
def test_a_preference_goes_by_the_task_where_one_is_missing(method: Any) -> None:
    here = torch.tensor([0, 2])
    products = ROWS[here] @ ROWS[here].T
    found = weigh(replace(method, preference=(2.0, 9.0, 1.0)), products, here)
    torch.testing.assert_close(found, weigh(replace(method, preference=(2.0, 1.0)), products))


@each_method
def test_preferences_that_cannot_be_are_refused(method: Any) -> None:
    with pytest.raises(OptionError, match="`preference` should be numbers above 0"):
        replace(method, preference=(1.0, 0.0, 2.0))
    with pytest.raises(ShapeError, match="one number for each task"):
        weigh(replace(method, preference=(1.0, 2.0)), ROWS @ ROWS.T)


def test_orthogonal_gradients_are_weighed_as_worked_out_by_hand() -> None:
    products = torch.diag(torch.tensor([4.0, 1.0, 1.0], dtype=torch.float64))
    wanted = (4.0, 1.0, 1.0)  # 2, 1/2 and 1/2 at a mean of one

    def of(method: Any) -> list[float]:
        return weigh(replace(method, preference=wanted), products).tolist()

    # No conflict: each gradient is its own projection, and the mean has the preference.
    assert of(UPGrad()) == pytest.approx([2 / 3, 1 / 6, 1 / 6], rel=1e-5)
    assert of(PCGrad()) == pytest.approx([2.0, 0.5, 0.5])
    # products @ w = p / w: w is the root of p / |g|².
    assert of(NashMTL()) == pytest.approx([0.5**0.5, 0.5**0.5, 0.5**0.5], rel=1e-5)
    # |g|² w = (w / p)^(-1/2): w³ = p / |g|⁴.
    assert of(FairGrad(alpha=2.0)) == pytest.approx(
        [(2 / 16) ** (1 / 3), 0.5 ** (1 / 3), 0.5 ** (1 / 3)], rel=1e-5
    )
    # Projections onto unit gradients as 4 to 1 to 1: w |g| is.
    found = of(IMTLG())
    assert [found[0] * 2 / found[1], found[2] / found[1]] == pytest.approx([4.0, 1.0])
    assert of(CAGrad(closeness=0.0)) == pytest.approx([2 / 3, 1 / 6, 1 / 6])


def parameters() -> list[nn.Parameter]:
    return [nn.Parameter(torch.tensor([1.0, 2.0, 3.0]))]


def losses(parameter: Tensor) -> dict[str, Tensor]:
    return {name: parameter.double() @ row for name, row in zip("abc", ROWS, strict=True)}


def test_by_name_it_reaches_the_method_of_gradients() -> None:
    (parameter,) = parameters()
    by_name = Balancer(UPGrad(), shared=[parameter], preference={"b": 3.0})
    in_order = Balancer(UPGrad(preference=(1.0, 3.0, 1.0)), shared=[parameter])
    found = [each.backward(losses(parameter)).weights for each in (by_name, in_order)]
    torch.testing.assert_close(*found)
    with pytest.raises(ShapeError, match="Found x"):
        Balancer(UPGrad(), shared=[parameter], preference={"x": 2.0}).backward(losses(parameter))


def test_it_multiplies_the_weights_of_a_method_of_losses_and_not_what_it_sees() -> None:
    (parameter,) = parameters()
    wanted = Balancer(BanditMTL(radius=0.3), preference=(1.0, 2.0, 1.0))
    plain = Balancer(BanditMTL(radius=0.3))
    for _ in range(3):
        found, expected = (each.backward(losses(parameter)).weights for each in (wanted, plain))
    moved = expected * torch.tensor([1.0, 2.0, 1.0])
    torch.testing.assert_close(found, moved * (3 / moved.sum()))
    torch.testing.assert_close(wanted.state.probabilities, plain.state.probabilities)
    info = Balancer(Equal(), preference={"c": 2.0}).backward({**losses(parameter), "b": None})
    assert info.weights.tolist() == pytest.approx([2 / 3, 0.0, 4 / 3])


@pytest.mark.parametrize(
    ("method", "words"),
    [
        (MGDA(), "UPGrad have one"),
        (ExcessMTL(), "UPGrad have one"),
        (FAMO(), "evens out what each task gains"),
        (FixedWeights(weights=(1.0, 2.0)), "its option `weights`"),
        (Tchebycheff(), "its option `weights`"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_methods_that_no_preference_suits_say_so(method: AnyWeighting, words: str) -> None:
    with pytest.raises(OptionError, match=words):
        Balancer(method, shared=parameters(), preference=(1.0, 2.0))

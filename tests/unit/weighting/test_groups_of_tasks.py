"""Tasks that share some parameters and not others, and tasks that come later."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from taskmix.errors import InputError, ShapeError
from taskmix.weighting import (
    DBMTL,
    IMTLG,
    MGDA,
    AnyWeighting,
    Balancer,
    BanditMTL,
    CAGrad,
    ExcessMTL,
    GradVac,
    GroupDRO,
    NashMTL,
    PCGrad,
    UPGrad,
)

COMPARING = [MGDA(), UPGrad(), CAGrad(), NashMTL(), IMTLG(), PCGrad(), GradVac(rate=0.5)]
each_comparing = pytest.mark.parametrize("method", COMPARING, ids=lambda m: type(m).__name__)


def leaf(*values: float) -> nn.Parameter:
    return nn.Parameter(torch.tensor(values, dtype=torch.float64))


def losses_with(parameter: Tensor, gradients: list[tuple[float, ...]]) -> list[Tensor]:
    """Losses of 1 whose gradients are as given."""
    rows = [torch.tensor(gradient, dtype=torch.float64) for gradient in gradients]
    return [1 + (parameter - parameter.detach()) @ row for row in rows]


FIRST = [(2.0, 0.0, 1.0), (-1.0, 1.0, 0.0)]
SECOND = [(0.5, -1.0), (0.0, 3.0)]


def alone(method: AnyWeighting, gradients: list[tuple[float, ...]]) -> tuple[Tensor, Tensor]:
    parameter = leaf(*[0.0] * len(gradients[0]))
    balancer = Balancer(method, shared=[parameter])
    for _ in range(2):
        parameter.grad = None
        weights = balancer.backward(losses_with(parameter, gradients)).weights
    assert parameter.grad is not None
    return weights, parameter.grad


@each_comparing
def test_two_pairs_with_an_encoder_each_are_weighed_as_each_pair_alone(
    method: AnyWeighting,
) -> None:
    one, other = leaf(0.0, 0.0, 0.0), leaf(0.0, 0.0)
    balancer = Balancer(method, shared=[one, other])
    for _ in range(2):
        one.grad = other.grad = None
        info = balancer.backward(losses_with(one, FIRST) + losses_with(other, SECOND))
    for parameter, gradients, here in ((one, FIRST, slice(0, 2)), (other, SECOND, slice(2, 4))):
        weights, gradient = alone(method, gradients)
        torch.testing.assert_close(info.weights[here], weights)
        torch.testing.assert_close(parameter.grad, gradient)
    assert info.gramian is not None
    assert not info.gramian[:2, 2:].any()


def test_a_task_that_trains_nothing_of_the_shared_has_weight_one_and_changes_no_other() -> None:
    shared, own = leaf(0.0, 0.0, 0.0), leaf(0.0)
    balancer = Balancer(MGDA(), shared=[shared])
    info = balancer.backward([*losses_with(shared, FIRST), *losses_with(own, [(5.0,)])])
    weights, gradient = alone(MGDA(), FIRST)
    torch.testing.assert_close(info.weights[:2], weights)
    torch.testing.assert_close(shared.grad, gradient)
    assert float(info.weights[2]) == 1
    assert own.grad is not None
    assert own.grad.tolist() == [5.0]


def test_a_part_that_fewer_tasks_share_is_weighed_among_them() -> None:
    base, upper = leaf(0.0, 0.0, 0.0), leaf(0.0, 0.0)
    third = (0.0, -1.0, 1.0)
    head = leaf(0.0)

    def losses() -> list[Tensor]:
        both = [
            below + above
            for below, above in zip(
                losses_with(base, FIRST), losses_with(upper, SECOND), strict=True
            )
        ]
        return [both[0] + head.sum(), both[1], *losses_with(base, [third])]

    info = Balancer(UPGrad(), shared=[base, upper]).backward(losses())
    weights, gradient = alone(UPGrad(), [*FIRST, third])
    torch.testing.assert_close(base.grad, gradient)
    torch.testing.assert_close(upper.grad, alone(UPGrad(), SECOND)[1])
    # What a head gets, and what is told, is the weight of the part that most tasks share.
    torch.testing.assert_close(info.weights, weights)
    assert head.grad is not None
    torch.testing.assert_close(head.grad, weights[:1])


def test_weights_that_differ_from_part_to_part_are_asked_for_in_every_step() -> None:
    one, other = leaf(0.0, 0.0, 0.0), leaf(0.0, 0.0)
    balancer = Balancer(NashMTL(), shared=[one, other], update_every=10)
    balancer.backward(losses_with(one, FIRST) + losses_with(other, SECOND))
    moved = [(1.0, 4.0), (0.0, 3.0)]
    one.grad = other.grad = None
    balancer.backward(losses_with(one, FIRST) + losses_with(other, moved))
    torch.testing.assert_close(other.grad, alone(NashMTL(), moved)[1])


def test_parameters_that_no_loss_was_computed_with_are_refused_in_words() -> None:
    used, copy = leaf(0.0, 0.0, 0.0), leaf(0.0, 0.0, 0.0)
    with pytest.raises(InputError, match="no loss reaches any of them"):
        Balancer(MGDA(), shared=[copy]).backward(losses_with(used, FIRST))


def values(*numbers: float) -> dict[str, Tensor]:
    parameter = leaf(*numbers)
    return {name: parameter[place] * 1 for place, name in enumerate("abcd"[: len(numbers)])}


def test_a_bandit_gives_a_later_task_the_mean_share_and_leaves_the_others_their_ratio() -> None:
    balancer = Balancer(BanditMTL(radius=5.0, step_size=1.0))
    balancer.backward(values(0.0, 1.0))
    before = balancer.state.probabilities.tolist()  # as 1 to e
    info = balancer.backward(values(1.0, 1.0, 1.0))
    assert info.names == ("a", "b", "c")
    # Shares p, 1 - p and their mean 1/2, scaled to sum to three.
    assert info.weights.tolist() == pytest.approx([2 * before[0], 2 * before[1], 1.0])
    assert balancer.state.probabilities.sum().item() == pytest.approx(1.0)


def test_what_a_method_keeps_of_each_parameter_grows_by_a_row_of_zeros() -> None:
    shared = leaf(0.0, 0.0, 0.0)
    for method, kept in ((DBMTL(), "means"), (ExcessMTL(), "squares")):
        balancer = Balancer(method, shared=[shared])
        two = dict(zip("ab", losses_with(shared, FIRST), strict=True))
        balancer.backward(two)
        before = getattr(balancer.state, kept).clone()
        with_third = [*FIRST, (0.0, 1.0, 1.0)]
        info = balancer.backward(dict(zip("abc", losses_with(shared, with_third), strict=True)))
        after = getattr(balancer.state, kept)
        assert before.shape == (2, 3)
        assert after.shape == (3, 3)
        assert info.weights.isfinite().all()
        assert balancer.state.count.tolist() == [2, 2, 1]


def test_a_longer_list_has_new_tasks_at_its_end_and_a_shorter_one_is_refused() -> None:
    balancer = Balancer(GroupDRO())
    balancer.backward(list(values(1.0, 2.0).values()))
    assert balancer.backward(list(values(1.0, 2.0, 3.0).values())).names == ("0", "1", "2")
    with pytest.raises(ShapeError, match="one entry for each of the 3 tasks"):
        balancer.backward(list(values(1.0, 2.0).values()))


def test_a_resumed_run_welcomes_a_task_too() -> None:
    first, second = Balancer(GroupDRO(step_size=0.5)), Balancer(GroupDRO(step_size=0.5))
    first.backward(values(1.0, 2.0))
    second.load_state_dict(first.state_dict())
    found = [balancer.backward(values(1.0, 2.0, 3.0)).weights for balancer in (first, second)]
    assert torch.equal(*found)


def test_parameters_that_zero_has_taken_apart_are_refused_in_words() -> None:
    shared = leaf(0.0, 0.0, 0.0)
    shared.ds_id = 0  # the mark that DeepSpeed's ZeRO-3 leaves
    with pytest.raises(InputError, match="Found those of DeepSpeed's ZeRO-3"):
        Balancer(MGDA(), shared=[shared]).backward(losses_with(shared, FIRST))
    Balancer(BanditMTL()).backward(losses_with(shared, FIRST))
    assert shared.grad is not None

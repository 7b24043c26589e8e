"""What other code hangs on the backward pass: hooks, checkpointed modules, the model's checkpoint."""

from __future__ import annotations

import copy
import io
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from taskmix.errors import InputError, RecordError
from taskmix.weighting import (
    MGDAUB,
    AnyWeighting,
    Balancer,
    BanditMTL,
    GradNorm,
    GroupDRO,
    PCGrad,
    UPGrad,
)

FAMILIES = [BanditMTL(), UPGrad(), GradNorm(), MGDAUB()]
each_family = pytest.mark.parametrize("method", FAMILIES, ids=lambda method: type(method).__name__)


class Model(nn.Module):
    """Two tasks on one encoder, whose embedding the second head uses too."""

    def __init__(self, method: AnyWeighting) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.encoder = nn.Sequential(nn.Linear(5, 5), nn.Tanh())
        self.between = nn.Linear(5, 4)  # of both heads, and not named as shared
        self.heads = nn.ModuleList(nn.Linear(4, 2) for _ in range(2))
        representation = self.encoder if isinstance(method, MGDAUB) else None
        self.balancer = Balancer(method, shared=self.encoder, representation=representation)

    def losses(self, inputs: Tensor) -> dict[str, Tensor]:
        code = self.between(self.encoder(inputs))
        first, second = (head(code) for head in self.heads)
        tied = (inputs @ self.encoder[0].weight).mean()  # the encoder's weight, past its output
        return {"a": first.square().mean(), "b": (second - 1).square().mean() + tied}


def rows() -> Tensor:
    return torch.randn(8, 5, generator=torch.Generator().manual_seed(1))


@each_family
def test_a_hook_gets_the_whole_gradient_of_a_parameter_once_a_step(method: AnyWeighting) -> None:
    plain, hooked = Model(method), Model(method)
    plain.balancer.backward(plain.losses(rows()))
    found: dict[str, list[Tensor]] = {}
    for name, parameter in hooked.named_parameters():

        def step(parameter: Tensor, name: str = name) -> None:  # an optimiser fused into `backward`
            assert parameter.grad is not None
            found.setdefault(name, []).append(parameter.grad)
            parameter.grad = None

        parameter.register_post_accumulate_grad_hook(step)
    hooked.balancer.backward(hooked.losses(rows()))
    for name, parameter in plain.named_parameters():
        assert len(found[name]) == 1, name
        torch.testing.assert_close(found[name][0], parameter.grad)


def test_a_plain_hook_is_called_for_each_task_and_may_mask_as_ever() -> None:
    masked, plain = Model(UPGrad()), Model(UPGrad())
    calls: list[Tensor] = []

    def mask(gradient: Tensor) -> Tensor:
        calls.append(gradient)
        return gradient * torch.tensor([1.0, 0.0, 1.0, 1.0])

    masked.between.bias.register_hook(mask)
    plain.balancer.backward(plain.losses(rows()))
    masked.balancer.backward(masked.losses(rows()))
    assert len(calls) == 2
    assert plain.between.bias.grad is not None
    expected = plain.between.bias.grad * torch.tensor([1.0, 0.0, 1.0, 1.0])
    torch.testing.assert_close(masked.between.bias.grad, expected)


@pytest.mark.parametrize("reentrant", [True, False])
def test_a_reentrant_checkpoint_is_told_in_words_and_the_other_kind_works(reentrant: bool) -> None:
    model = Model(UPGrad())

    def losses(inputs: Tensor) -> list[Tensor]:
        inputs = inputs.requires_grad_()
        code = model.between(checkpoint(model.encoder, inputs, use_reentrant=reentrant))
        return [head(code).square().mean() for head in model.heads]

    if reentrant:
        with pytest.raises(InputError, match="Checkpoint with `use_reentrant=False`"):
            model.balancer.backward(losses(rows()))
        return
    weights = model.balancer.backward(losses(rows())).weights
    expected = torch.autograd.grad(torch.stack(losses(rows())) @ weights, [model.encoder[0].weight])
    torch.testing.assert_close(model.encoder[0].weight.grad, expected[0])


def play(model: Model, steps: int) -> list[list[float]]:
    return [model.balancer.backward(model.losses(rows())).weights.tolist() for _ in range(steps)]


@pytest.mark.parametrize("form", ["torch", "safetensors", "half"])
@pytest.mark.parametrize("method", [BanditMTL(), PCGrad(seed=3)], ids=["BanditMTL", "PCGrad"])
def test_a_balancer_is_in_the_state_of_the_module_that_has_it(
    method: AnyWeighting, form: str, tmp_path: Path
) -> None:
    model, whole = Model(method), Model(method)
    expected = play(whole, 4)
    play(model, 2)
    state: dict[str, Any] = model.state_dict()
    assert all(isinstance(value, Tensor) for value in state.values())
    if form == "safetensors":
        save_file(state, tmp_path / "model.safetensors")
        state = load_file(tmp_path / "model.safetensors")
    elif form == "torch":
        file = io.BytesIO()
        torch.save(state, file)
        file.seek(0)
        state = torch.load(file, weights_only=True)
    else:  # as who saves in few bits does, to every tensor
        half = {name: value.half() for name, value in state.items()}
        state |= {name: value for name, value in half.items() if name.startswith("balancer")}
    resumed = Model(method)
    resumed.load_state_dict(state)  # strict
    assert play(resumed, 2) == expected[2:]


def test_a_balancer_that_has_not_begun_is_saved_and_copied_as_well() -> None:
    model = Model(GroupDRO())
    resumed = Model(GroupDRO())
    resumed.load_state_dict(model.state_dict())
    assert play(resumed, 2) == play(model, 2)
    assert play(copy.deepcopy(model), 1) == play(model, 1)
    assert not list(model.balancer.parameters())


def test_bytes_that_are_no_balancers_are_told_in_words() -> None:
    model = Model(GroupDRO())
    state = model.state_dict()
    state["balancer._extra_state"] = torch.zeros(50, dtype=torch.uint8)
    with pytest.raises(RecordError, match="should be what `state_dict` gave"):
        model.load_state_dict(state)
    with pytest.raises(RecordError, match="should be that of GroupDRO"):
        model.load_state_dict(Model(BanditMTL()).state_dict())

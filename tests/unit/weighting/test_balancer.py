"""The user's one line, in the loops people have."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from taskmix.errors import InputError, OptionError, ShapeError
from taskmix.weighting import (
    DBMTL,
    FAMO,
    MGDA,
    MGDAUB,
    AnyWeighting,
    Balancer,
    BanditMTL,
    DynamicWeightAverage,
    Equal,
    GeometricMean,
    GradNorm,
    NashMTL,
    PCGrad,
    UPGrad,
)

TASKS = 3
SOME = [BanditMTL(), UPGrad(), GradNorm(), MGDAUB(), DBMTL(memory=0.0)]
some_methods = pytest.mark.parametrize("method", SOME, ids=lambda method: type(method).__name__)


class Model(nn.Module):
    """An encoder and a head for each task."""

    def __init__(self, tasks: int = TASKS, seed: int = 0) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.encoder = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 6), nn.Tanh())
        self.heads = nn.ModuleList(nn.Linear(6, 2) for _ in range(tasks))

    def losses(self, inputs: Tensor | Sequence[Tensor], targets: Tensor) -> list[Tensor]:
        """One batch for all tasks, or one for each."""
        if isinstance(inputs, Tensor):
            code = self.encoder(inputs)
            codes = [code] * len(self.heads)
        else:
            codes = [self.encoder(batch) for batch in inputs]
        return [
            nn.functional.mse_loss(head(code), target)
            for head, code, target in zip(self.heads, codes, targets, strict=True)
        ]

    def gradients(self) -> list[Tensor]:
        found = [parameter.grad for parameter in self.parameters()]
        assert all(gradient is not None for gradient in found)
        return [gradient.clone() for gradient in found if gradient is not None]


def balancer_of(method: AnyWeighting, model: Model, **options: Any) -> Balancer:
    representation = model.encoder if isinstance(method, MGDAUB) else None
    return Balancer(method, shared=model.encoder, representation=representation, **options)


def batch(seed: int = 1, rows: int = 10) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    inputs = torch.randn(rows, 5, generator=generator)
    return inputs, torch.randn(TASKS, rows, 2, generator=generator)


def assert_close(found: Sequence[Tensor], expected: Sequence[Tensor]) -> None:
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-4)


def test_the_line_of_the_docs_works_by_name_and_in_order() -> None:
    model, other = Model(), Model()
    inputs, targets = batch()
    named = Balancer(BanditMTL(radius=1.2, step_size=0.5), shared=model.encoder)
    losses = dict(zip(["sst", "cola", "rte"], model.losses(inputs, targets), strict=True))
    info = named.backward(losses)
    Balancer(BanditMTL(), shared=other.encoder).backward(other.losses(inputs, targets))
    assert_close(model.gradients(), other.gradients())
    assert info.names == ("sst", "cola", "rte")
    torch.testing.assert_close(info.losses, torch.stack(list(losses.values())).detach())
    torch.testing.assert_close(info.task_variance, info.losses.var(correction=0))


def test_names_keep_their_state_in_whatever_order_they_come() -> None:
    model = Model()
    inputs, targets = batch()
    first, second = Balancer(BanditMTL()), Balancer(BanditMTL())
    for _ in range(3):
        losses = dict(zip("abc", model.losses(inputs, targets), strict=True))
        first.backward(losses)
        losses = dict(zip("abc", model.losses(inputs, targets), strict=True))
        info = second.backward({name: losses[name] for name in ("c", "a", "b")})
    assert info.names == ("c", "a", "b")
    torch.testing.assert_close(first.state.probabilities[[2, 0, 1]], second.state.probabilities)


@pytest.mark.parametrize(
    ("losses", "message"),
    [
        (lambda losses: torch.stack(losses), "Leave them unstacked"),
        (lambda losses: losses[:2], "one entry for each of the 3 tasks"),
        (lambda losses: [None] * 3, "At least one task"),
        (lambda losses: [loss.expand(2) for loss in losses], "Take its mean"),
        (lambda losses: [loss.detach() for loss in losses], "no gradient"),
    ],
)
def test_what_cannot_be_used_is_refused_in_words(
    losses: Callable[[list[Tensor]], Any], message: str
) -> None:
    model = Model()
    inputs, targets = batch()
    balancer = Balancer(Equal())
    balancer.backward(model.losses(inputs, targets))
    with pytest.raises((ShapeError, InputError), match=message):
        balancer.backward(losses(model.losses(inputs, targets)))


def test_a_gradient_method_has_to_know_what_is_shared() -> None:
    with pytest.raises(OptionError, match="Give the encoder as `shared`"):
        Balancer(MGDA())
    with pytest.raises(OptionError, match="Give the encoder as `shared`"):
        Balancer(MGDA(), shared=Model().encoder.requires_grad_(False))
    with pytest.raises(OptionError, match="another one in each step"):
        Balancer(DBMTL(), shared=Model().encoder, representation=Model().encoder)


def test_a_method_of_the_representation_has_to_get_one() -> None:
    model = Model()
    inputs, targets = batch()
    with pytest.raises(InputError, match="module whose output the heads get"):
        Balancer(MGDAUB()).backward(model.losses(inputs, targets))


@some_methods
def test_each_task_may_bring_its_own_rows(method: AnyWeighting) -> None:
    model = Model()
    inputs, targets = batch()
    own = [inputs, inputs.flip(1), inputs * 2]
    balancer = balancer_of(method, model)
    weights = balancer.backward(model.losses(own, targets)).weights
    found = model.gradients()
    model.zero_grad()
    (torch.stack(model.losses(own, targets)) @ weights).backward()
    assert_close(found, model.gradients())


class Counted(torch.autograd.Function):
    """The identity, counting the times it is walked backwards."""

    walks = 0

    @staticmethod
    def forward(ctx: Any, inputs: Tensor) -> Tensor:
        return inputs.view_as(inputs)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        Counted.walks += 1
        return gradient


def test_parameters_that_some_or_no_task_touches_are_handled() -> None:
    model = Model()
    extra, idle = nn.Linear(6, 6), nn.Linear(6, 6)
    inputs, targets = batch()
    shared = [*model.encoder.parameters(), *extra.parameters(), *idle.parameters()]

    def losses() -> list[Tensor]:
        code = model.encoder(inputs)
        codes = [code, extra(code), code]  # `extra` serves the second task alone
        return [
            nn.functional.mse_loss(head(code), target)
            for head, code, target in zip(model.heads, codes, targets, strict=True)
        ]

    weights = Balancer(UPGrad(), shared=shared).backward(losses()).weights
    found = [None if p.grad is None else p.grad.clone() for p in shared]
    model.zero_grad()
    extra.zero_grad()
    (torch.stack(losses()) @ weights).backward()
    for one, parameter in zip(found, shared, strict=True):
        assert (one is None) == (parameter.grad is None)
        if one is not None:
            torch.testing.assert_close(one, parameter.grad)


def test_a_part_that_two_heads_share_gets_both_their_weights() -> None:
    model = Model()
    between = nn.Linear(6, 6)  # shared by two of three tasks, and not named as shared
    inputs, targets = batch()

    def losses() -> list[Tensor]:
        code = model.encoder(inputs)
        deep = between(code)
        codes = [deep, deep, code]
        return [
            nn.functional.mse_loss(head(code), target)
            for head, code, target in zip(model.heads, codes, targets, strict=True)
        ]

    weights = balancer_of(MGDA(), model).backward(losses()).weights
    found = between.weight.grad
    (expected,) = torch.autograd.grad(torch.stack(losses()) @ weights, [between.weight])
    assert found is not None
    torch.testing.assert_close(found, expected)


def test_the_representation_gives_the_gramian_of_the_whole_batch() -> None:
    model = Model()
    inputs, targets = batch()
    code = model.encoder(inputs)
    losses = [
        nn.functional.mse_loss(head(code), target)
        for head, target in zip(model.heads, targets, strict=True)
    ]
    rows = torch.stack(
        [torch.autograd.grad(loss, code, retain_graph=True)[0].flatten() for loss in losses]
    )
    info = Balancer(MGDAUB()).backward(losses, representation=code)
    assert info.gramian is not None
    torch.testing.assert_close(info.gramian, rows @ rows.T)
    assert info.cosines is not None
    torch.testing.assert_close(info.cosines.diagonal(), torch.ones(TASKS))


def test_with_own_rows_the_bound_weighs_by_inverse_squared_norms() -> None:
    model = Model()
    inputs, targets = batch()
    losses = model.losses([inputs, inputs * 2, inputs - 1], targets)
    balancer = balancer_of(MGDAUB(), model)
    info = balancer.backward(model.losses([inputs, inputs * 2, inputs - 1], targets))
    assert info.gramian is not None
    squares = info.gramian.diagonal()
    torch.testing.assert_close(info.gramian, torch.diag(squares))
    torch.testing.assert_close(info.weights, TASKS * (1 / squares) / (1 / squares).sum())
    del losses


def test_outputs_without_a_gradient_are_not_kept() -> None:
    model = Model()
    inputs, targets = batch()
    balancer = balancer_of(MGDAUB(), model)
    first = balancer.backward(model.losses(inputs, targets))
    with torch.no_grad():
        model.encoder(inputs * 2)
    # Nothing of that pass, nor of the first step, is in the products of the second.
    second = balancer.backward(model.losses(inputs, targets))
    assert first.gramian is not None
    assert second.gramian is not None
    torch.testing.assert_close(second.gramian, first.gramian)


def test_gradnorm_looks_at_the_last_shared_layer_and_leaks_nothing() -> None:
    model = Model()
    inputs, targets = batch()
    last = list(model.encoder[2].parameters())
    losses = model.losses(inputs, targets)
    rows = torch.stack(
        [
            torch.cat(
                [part.flatten() for part in torch.autograd.grad(loss, last, retain_graph=True)]
            )
            for loss in losses
        ]
    )
    info = balancer_of(GradNorm(), model).backward(losses)
    assert info.gramian is not None
    torch.testing.assert_close(info.gramian, rows @ rows.T)
    found = model.gradients()
    model.zero_grad()
    sum(model.losses(inputs, targets)).backward()  # type: ignore[union-attr]
    assert_close(found, model.gradients())  # the first weights are ones


@some_methods
def test_accumulated_halves_are_the_whole_batch_for_the_same_weights(method: AnyWeighting) -> None:
    model = Model()
    inputs, targets = batch()
    balancer = balancer_of(method, model)
    weights = [
        balancer.backward(model.losses(inputs[half], targets[:, half]), scale=0.5).weights
        for half in (slice(0, 5), slice(5, 10))
    ]
    found = model.gradients()
    model.zero_grad()
    for half, of_half in zip((slice(0, 5), slice(5, 10)), weights, strict=True):
        (torch.stack(model.losses(inputs[half], targets[:, half])) @ of_half / 2).backward()
    assert_close(found, model.gradients())


@some_methods
def test_mixed_precision_scales_the_gradients_and_not_the_weights(method: AnyWeighting) -> None:
    model, other = Model(), Model()
    inputs, targets = batch()
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    balancer, plain_balancer = balancer_of(method, model), balancer_of(method, other)
    with torch.autocast("cpu", torch.bfloat16):
        losses, plain_losses = model.losses(inputs, targets), other.losses(inputs, targets)
    info = balancer.backward(losses, scaler=scaler)
    expected = plain_balancer.backward(plain_losses)
    torch.testing.assert_close(info.weights, expected.weights, atol=2e-2, rtol=0.0)
    for scaled, plain in zip(model.gradients(), other.gradients(), strict=True):
        torch.testing.assert_close(scaled / 1024, plain, atol=2e-2, rtol=5e-2)


@some_methods
def test_an_overflow_is_skipped_by_the_scaler_and_forgotten_by_the_method(
    method: AnyWeighting,
) -> None:
    model = Model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10)
    balancer = balancer_of(method, model)
    inputs, targets = batch()
    before = [parameter.detach().clone() for parameter in model.parameters()]
    losses = model.losses(inputs, targets)
    balancer.backward([losses[0], losses[1] * float("inf"), losses[2]], scaler=scaler)
    scaler.step(optimizer)
    scaler.update()
    assert_close([parameter.detach() for parameter in model.parameters()], before)
    assert scaler.get_scale() < 2.0**10
    optimizer.zero_grad()
    balancer.backward(model.losses(inputs, targets), scaler=scaler)
    scaler.step(optimizer)
    assert all(parameter.isfinite().all() for parameter in model.parameters())
    assert not torch.equal(next(model.parameters()).detach(), before[0])


def compiled_losses(model: Model, inputs: Tensor, targets: Tensor) -> tuple[Tensor, list[Tensor]]:
    code = torch.compile(model.encoder, backend="aot_eager")(inputs)
    return code, [
        nn.functional.mse_loss(head(code), target)
        for head, target in zip(model.heads, targets, strict=True)
    ]


@some_methods
def test_compiled_models_give_the_same_gradients(method: AnyWeighting) -> None:
    model, other = Model(), Model()
    inputs, targets = batch()
    torch._dynamo.reset()
    code, losses = compiled_losses(model, inputs, targets)
    balancer = Balancer(method, shared=model.encoder)
    balancer.backward(losses, representation=code if isinstance(method, MGDAUB) else None)
    plain = balancer_of(method, other)
    plain.backward(other.losses(inputs, targets))
    assert_close(model.gradients(), other.gradients())


def test_a_model_compiled_for_one_walk_names_the_setting_that_allows_several() -> None:
    model = Model()
    inputs, targets = batch()
    torch._dynamo.reset()
    code, losses = compiled_losses(model, inputs, targets)
    Balancer(BanditMTL()).backward(losses)  # torch compiles a walk that frees as it goes
    code, losses = compiled_losses(model, inputs, targets)
    Balancer(MGDAUB()).backward(losses, representation=code)  # one walk: as before
    _, losses = compiled_losses(model, inputs, targets)
    with pytest.raises(InputError, match="donated_buffer = False"):
        Balancer(UPGrad(), shared=model.encoder).backward(losses)


def test_weights_stay_between_the_steps_in_which_a_method_is_asked() -> None:
    model = Model()
    balancer = balancer_of(NashMTL(), model, update_every=3)
    weights = []
    for step in range(6):
        model.zero_grad()
        inputs, targets = batch(seed=step)
        info = balancer.backward(model.losses(inputs, targets))
        weights.append(info.weights)
        found = model.gradients()
        model.zero_grad()
        (torch.stack(model.losses(inputs, targets)) @ info.weights).backward()
        assert_close(found, model.gradients())
    assert torch.equal(weights[0], weights[2])
    assert not torch.equal(weights[2], weights[3])
    assert torch.equal(weights[3], weights[5])


def test_weights_are_asked_anew_when_other_tasks_have_a_loss() -> None:
    model = Model()
    balancer = balancer_of(NashMTL(), model, update_every=100)
    inputs, targets = batch()
    balancer.backward(model.losses(inputs, targets))
    losses: list[Tensor | None] = list(model.losses(inputs, targets))
    losses[0] = None
    info = balancer.backward(losses)
    assert float(info.weights[0]) == 0
    assert float(info.weights.sum()) == pytest.approx(2)


def test_the_papers_own_scale_can_be_kept() -> None:
    model = Model()
    inputs, targets = batch()
    losses = model.losses(inputs, targets)
    values = torch.stack(losses).detach()
    info = Balancer(GeometricMean(), normalize=None).backward(losses)
    torch.testing.assert_close(info.weights, values.log().mean().exp() / (TASKS * values))
    info = balancer_of(PCGrad(), model, normalize=None).backward(model.losses(inputs, targets))
    assert (info.weights >= 1).all()
    info = Balancer(Equal(), normalize="one").backward(model.losses(inputs, targets))
    assert float(info.weights.sum()) == pytest.approx(1)
    with pytest.raises(OptionError, match="`normalize` should be"):
        Balancer(Equal(), normalize="two")  # type: ignore[arg-type]


def test_the_same_loop_tells_those_that_need_them_of_epochs_and_of_losses_after() -> None:
    model = Model()
    inputs, targets = batch()
    epochs, gains = Balancer(DynamicWeightAverage()), Balancer(FAMO())
    with pytest.raises(InputError, match="should come after"):
        gains.after_step(model.losses(inputs, targets))
    for balancer in (epochs, gains):
        for factor in (1.0, 0.5, 2.0):
            losses = model.losses(inputs, targets)
            losses[1] = losses[1] * factor
            balancer.backward(losses)
            balancer.after_step([losses[0] / 2, *losses[1:]])
            balancer.end_epoch()
    assert epochs.state.epochs.tolist() == [2.0] * TASKS
    torch.testing.assert_close(
        epochs.state.latest / epochs.state.previous, torch.tensor([1.0, 4.0, 1.0]).double()
    )
    logits = gains.state.logits
    assert logits[0] < logits[1:].min()  # it alone gained, so it counts less from now on


def test_sparse_gradients_are_refused_in_words() -> None:
    words = nn.Embedding(10, 6, sparse=True)
    model = Model()
    _, targets = batch()
    code = words(torch.arange(10))
    losses = [
        nn.functional.mse_loss(head(code), target)
        for head, target in zip(model.heads, targets, strict=True)
    ]
    with pytest.raises(InputError, match="should be dense"):
        Balancer(UPGrad(), shared=words).backward(losses)

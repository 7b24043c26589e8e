from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from papers.adversarial import AdversarialSharing, PrivateHead, orthogonality
from taskmix.errors import InputError
from taskmix.models import HardSharing, Perceptron
from taskmix.tasks import DenseInputs, EncodedSplit, EncodedTask, EncodedTasks


def tasks(count: int = 3, rows: int = 60) -> EncodedTasks:
    generator = torch.Generator().manual_seed(0)
    made = []
    for number in range(count):
        values = torch.randn(rows, 6, generator=generator) + number  # tasks that are easy to tell
        split = EncodedSplit(DenseInputs(values), (values[:, 0] > number).long())
        made.append(
            EncodedTask(
                name=f"task {number}",
                kind="classification",
                labels=("no", "yes"),
                metric="accuracy",
                source="memory",
                splits={"train": split},
            )
        )
    return EncodedTasks(tuple(made), features=6)


def build(**options: float) -> HardSharing:
    torch.manual_seed(0)
    architecture = Perceptron(hidden=(8,))
    return AdversarialSharing(architecture=architecture, head_dropout=0.0, **options).build(tasks())


def loss_of(model: HardSharing, task: int) -> Tensor:
    split = tasks()[task].splits["train"]
    outputs = model(split.inputs.batch(torch.arange(len(split))), task)
    return nn.functional.cross_entropy(outputs, split.targets)


def gradient(model: HardSharing, task: int, parameter: nn.Parameter) -> Tensor:
    model.zero_grad()
    loss_of(model, task).backward()
    return torch.zeros_like(parameter) if parameter.grad is None else parameter.grad.clone()


def test_orthogonal_codes_cost_nothing_and_equal_ones_most() -> None:
    first = torch.tensor([[1.0, 0.0], [-1.0, 0.0], [1.0, 0.0], [-1.0, 0.0]])
    second = torch.tensor([[0.0, 1.0], [0.0, 1.0], [0.0, -1.0], [0.0, -1.0]])
    assert float(orthogonality(first, second)) == 0
    assert float(orthogonality(first, first)) == 4.0  # one product of 4, squared, of four products


def test_the_gradient_is_that_of_the_loss_and_both_penalties() -> None:
    model = build(adversarial_weight=0.5, orthogonality_weight=0.3)
    head = model.heads[1]
    assert isinstance(head, PrivateHead)
    first = next(head.private.parameters())
    found = gradient(model, 1, first)
    split = tasks()[1].splits["train"]
    code = model.encoder(split.inputs.batch(torch.arange(60)))
    penalty = head.penalty(code, head.private(code.batch))
    outputs = head.output(torch.cat([code.shared, head.private(code.batch)], dim=-1))
    total = nn.functional.cross_entropy(outputs, split.targets) + penalty
    (expected,) = torch.autograd.grad(total, [first])
    torch.testing.assert_close(found, expected)


def test_the_shared_encoder_is_trained_against_the_discriminator() -> None:
    model, without = (
        build(adversarial_weight=1.0, orthogonality_weight=0.0),
        build(adversarial_weight=0.0, orthogonality_weight=0.0),
    )
    shared = model.encoder.encoder[0].weight  # type: ignore[index,union-attr]
    other = without.encoder.encoder[0].weight  # type: ignore[index,union-attr]
    difference = gradient(model, 0, shared) - gradient(without, 0, other)
    split = tasks()[0].splits["train"]
    code = without.encoder.encoder(split.inputs.batch(torch.arange(60)))  # type: ignore[operator]
    guess = without.encoder.discriminator(code)  # type: ignore[operator]
    guessing = nn.functional.cross_entropy(guess, torch.zeros(60, dtype=torch.long))
    (expected,) = torch.autograd.grad(guessing, [other])
    torch.testing.assert_close(difference, -expected, atol=1e-6, rtol=1e-4)


def test_nothing_is_added_outside_training() -> None:
    model = build()
    model.eval()
    before = loss_of(model, 0)
    model.train()
    torch.testing.assert_close(loss_of(model, 0), before)  # the penalties are gradients alone
    model.eval()
    discriminator = model.encoder.discriminator.weight  # type: ignore[union-attr]
    assert float(gradient(model, 0, discriminator).abs().sum()) == 0  # type: ignore[arg-type]
    code = model.encoder(torch.zeros(2, 6))
    head = model.heads[0]
    assert isinstance(head, PrivateHead)
    with pytest.raises(InputError, match="training mode"):
        head.penalty(code, code.shared)

"""The loss of a batch is a mean over the targets there are; without any it is 0 and has no gradient."""

from __future__ import annotations

from typing import Literal

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from taskmix.tasks import MISSING, DenseInputs, EncodedSplit, EncodedTask
from taskmix.training import task_loss

Kind = Literal["classification", "regression", "multilabel", "tagging"]


def task(kind: Kind, targets: Tensor, metric: str = "accuracy") -> EncodedTask:
    labels = () if kind == "regression" else ("a", "b", "c")
    split = EncodedSplit(DenseInputs(torch.zeros(len(targets), 2)), targets)
    return EncodedTask(
        name="t", kind=kind, labels=labels, metric=metric, source="t", splits={"train": split}
    )


def targets_without_any(kind: Kind) -> tuple[Tensor, Tensor]:
    """Outputs and targets of four rows of which nobody knows a target."""
    if kind == "regression":
        return torch.randn(4), torch.full((4,), torch.nan)
    if kind == "multilabel":
        return torch.randn(4, 3), torch.full((4, 3), MISSING, dtype=torch.int8)
    if kind == "tagging":
        return torch.randn(4, 5, 3), torch.full((4, 5), MISSING)
    return torch.randn(4, 3), torch.full((4,), MISSING)


@pytest.mark.parametrize("kind", ["classification", "regression", "multilabel", "tagging"])
def test_a_batch_without_targets_has_a_loss_of_0_and_a_gradient_of_0(kind: Kind) -> None:
    outputs, targets = targets_without_any(kind)
    outputs = (1e30 * outputs).requires_grad_()
    loss = task_loss(task(kind, targets), 2.0)(outputs, targets)
    loss.backward()  # type: ignore[no-untyped-call]
    assert loss.item() == 0.0
    assert outputs.grad is not None
    assert torch.count_nonzero(outputs.grad) == 0


def test_the_loss_of_label_sets_is_binary_cross_entropy_over_the_known_cells() -> None:
    outputs = torch.tensor([[0.0, 2.0, -1.0], [1.0, -3.0, 0.5]], requires_grad=True)
    marks = torch.tensor([[1, 0, MISSING], [0, MISSING, MISSING]], dtype=torch.int8)
    loss = task_loss(task("multilabel", marks))(outputs, marks)
    # By hand: log 2, log(1 + e²) and log(1 + e), and their mean.
    assert loss.item() == pytest.approx((0.693147 + 2.126928 + 1.313262) / 3, abs=1e-6)
    whole = torch.tensor([[1, 0, 1], [0, 0, 1]], dtype=torch.int8)
    found = task_loss(task("multilabel", whole))(outputs, whole)
    expected = functional.binary_cross_entropy_with_logits(outputs, whole.float())
    torch.testing.assert_close(found, expected)

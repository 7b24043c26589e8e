"""The loss of a batch: a mean over the targets there are.

Cross-entropy for classes and tags, binary cross-entropy for the labels of rows that may have several,
squared error in standard units for numbers. Targets that are missing count nowhere; a batch without any
has a loss of 0 and no gradient, and whoever weighs or records losses leaves it out.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

from taskmix.tasks import MISSING, EncodedTask

LossFunction = Callable[[Tensor, Tensor], Tensor]  # outputs and targets of a batch to a scalar


def known_targets(targets: Tensor) -> Tensor:
    """Which targets there are."""
    return ~targets.isnan() if targets.is_floating_point() else targets != MISSING


def task_loss(task: EncodedTask, deviation: float = 1.0) -> LossFunction:
    """The mean loss over the rows, words or labels that have a target.

    `deviation` is that of a regression task's targets: dividing by it makes a squared error of 1 as
    bad as always answering the mean, whatever the unit, so that tasks can be added up.

    >>> from taskmix.tasks import held_tasks
    >>> tasks, encoding = held_tasks({"height": {"train": (np.eye(2), [1.25, 1.75])}})
    >>> loss = task_loss(encoding.encode(tasks)["height"], deviation=0.5)
    >>> loss(torch.tensor([1.0, 2.0]), torch.tensor([1.5, 2.0])).item()  # the mean of 1 and 0
    0.5
    """
    if task.kind == "regression":

        def squared(outputs: Tensor, targets: Tensor) -> Tensor:
            known = known_targets(targets)
            residuals = torch.where(known, outputs - targets, 0.0) / deviation
            return residuals.square().sum() / known.sum().clamp(min=1)

        return squared

    if task.kind == "multilabel":

        def binary_cross_entropy(outputs: Tensor, targets: Tensor) -> Tensor:
            known = known_targets(targets)
            outputs = outputs.float()
            each = functional.binary_cross_entropy_with_logits(
                outputs, (targets == 1).to(outputs), reduction="none"
            )
            return torch.where(known, each, 0.0).sum() / known.sum().clamp(min=1)

        return binary_cross_entropy

    complete = all(split.is_complete for split in task.splits.values())

    def cross_entropy(outputs: Tensor, targets: Tensor) -> Tensor:
        if outputs.dim() == 3:  # a row is a sentence: [row, word, class], as wide as the batch
            outputs, targets = outputs.flatten(0, 1), targets[:, : outputs.shape[1]].flatten()
        if complete:
            return functional.cross_entropy(outputs, targets)
        total = functional.cross_entropy(outputs, targets, ignore_index=MISSING, reduction="sum")
        return total / (targets != MISSING).sum().clamp(min=1)  # no target at all: 0, not NaN

    return cross_entropy

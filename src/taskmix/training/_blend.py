"""What several models say to the rows of one task, as one answer.

Logits are divided by each model's temperature before they become probabilities (Guo et al., ICML 2017),
and the probabilities are averaged: a linear opinion pool, whose log loss is never above the weighted
mean of the members' own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from taskmix.errors import OptionError
from taskmix.tasks import TaskKind


@dataclass(frozen=True, kw_only=True)
class Blend:
    """The members of a task's answer, by their places among the parts of a trained model.

    >>> Blend(members=(0, 2), weights=(0.25, 0.75), temperatures=(1.0, 1.5)).members
    (0, 2)
    """

    members: tuple[int, ...]
    weights: tuple[float, ...]  # that sum to 1
    temperatures: tuple[float, ...]  # of the logits of classes and labels; 1 for values

    def __post_init__(self) -> None:
        if (
            not self.members
            or min(self.members) < 0
            or len(set(self.members)) < len(self.members)
            or not len(self.members) == len(self.weights) == len(self.temperatures)
        ):
            raise OptionError(
                "A blend should name different members, with a weight and a temperature for each. "
                f"Found {self}."
            )
        if not min(self.weights) >= 0 or not abs(sum(self.weights) - 1) < 1e-6:
            raise OptionError(f"`weights` should be 0 or more and sum to 1. Found {self.weights}.")
        if not all(0 < each < float("inf") for each in self.temperatures):
            raise OptionError(f"`temperatures` should be above 0. Found {self.temperatures}.")


def blended(kind: TaskKind, outputs: Sequence[Tensor], blend: Blend) -> Tensor:
    """One output of the members' [row, ...]: of classes the logarithm of the mean probability, of labels
    the logit of it, of values their mean.

    >>> sure, unsure = torch.tensor([[2.0, -2.0]]), torch.tensor([[0.0, 0.0]])
    >>> both = Blend(members=(0, 1), weights=(0.5, 0.5), temperatures=(1.0, 1.0))
    >>> blended("classification", [sure, unsure], both).exp().round(decimals=3)
    tensor([[0.7410, 0.2590]], dtype=torch.float64)
    """
    found = [each.double().cpu() for each in outputs]
    weights = torch.tensor(blend.weights, dtype=torch.float64)
    if kind == "regression":
        return torch.einsum("m,m...->...", weights, torch.stack(found))
    logits = torch.stack([z / t for z, t in zip(found, blend.temperatures, strict=True)])
    shares = weights.log().view(-1, *[1] * (logits.dim() - 1))  # -inf for a weight of 0
    if kind == "multilabel":
        with_label = torch.logsumexp(torch.nn.functional.logsigmoid(logits) + shares, dim=0)
        return with_label - torch.logsumexp(torch.nn.functional.logsigmoid(-logits) + shares, dim=0)
    return torch.logsumexp(torch.log_softmax(logits, dim=-1) + shares, dim=0)

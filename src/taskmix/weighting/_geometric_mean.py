r"""Geometric mean of the losses: each task counts by the inverse of its loss.

    Chennupati, Sistu, Yogamani and Rawashdeh, "MultiNet++: Multi-Stream Feature Aggregation and
    Geometric Loss Strategy for Multi-Task Learning", CVPR Workshops 2019, Eq. 2.

The gradient of $(\prod_i L_i)^{1/T}$ is $\sum_i \frac{M}{T L_i} \nabla L_i$ with $M$ the mean
itself, so this is a weighting, and $1/L_i$ are its true weights.

Cost: that of the plain step; no state.

Departures: weights are scaled to sum to T; `unscaled` gives $M / (T L_i)$, which shrinks as the
losses do. A loss of 0 counts as the smallest normal number; a negative one has no geometric mean
and makes the weights NaN.

Scale: twice the loss has half the weight. Shift: changes the weights.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from taskmix.weighting._scale import precise, softmax_of_present, times_tasks
from taskmix.weighting._weighting import HasOwnScale, Needs, registered


@registered("geometric", scale="inverse", shift="counts")
@dataclass(frozen=True, kw_only=True)
class GeometricMean(HasOwnScale[None]):
    """Weights proportional to 1 / loss; no state.

    >>> losses = torch.tensor([1.0, 4.0])
    >>> [round(each, 4) for each in GeometricMean().weigh(None, losses).tolist()]  # as 1 to 1/4
    [1.6, 0.4]
    >>> [round(each, 4) for each in GeometricMean().unscaled(None, losses).tolist()]  # 2 / (2 * loss)
    [1.0, 0.25]
    """

    needs: ClassVar[Needs] = Needs.LOSSES

    def init(self, losses: Tensor) -> None:
        return None

    def weigh(self, state: None, losses: Tensor, present: Tensor | None = None) -> Tensor:
        shares = softmax_of_present(-_logarithms(losses), present)
        return times_tasks(shares, present).to(losses.dtype)

    def unscaled(self, state: None, losses: Tensor, present: Tensor | None = None) -> Tensor:
        """The gradient of the geometric mean in the losses."""
        logarithms = _logarithms(losses)
        if present is None:
            return (torch.exp(logarithms.mean() - logarithms) / len(losses)).to(losses.dtype)
        here = present.to(losses.device)
        mean = logarithms[here].mean()
        weights = torch.exp(mean - logarithms) / here.sum()
        return torch.where(here, weights, 0.0).to(losses.dtype)

    def update(self, state: None, losses: Tensor, present: Tensor | None = None) -> None:
        return None


def _logarithms(losses: Tensor) -> Tensor:
    values = precise(losses)
    return values.log().clamp(min=math.log(torch.finfo(values.dtype).tiny))

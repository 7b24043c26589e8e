r"""Random loss weighting: new random weights in every step.

    Lin, Ye, Zhang and Tsang, "Reasonable Effectiveness of Random Weighting: A Litmus Test for
    Multi-Task Learning", TMLR 2022, Algorithm 1 with the normal distribution.

The weights are $K\,\mathrm{softmax}(\lambda)$, $\lambda \sim N(0, I)$: a baseline that any method
which claims to know better should beat.

Cost: that of the plain step. Step n of a seed always has the same weights, on every worker and
after every resumption: the state is the number of steps alone.

Scale and shift of the losses: none. Of two equal tasks neither is preferred, but only in the mean.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from taskmix.weighting._scale import softmax_shares, weights_of
from taskmix.weighting._weighting import Needs, registered


@dataclass(frozen=True)
class RandomWeightsState:
    steps: Tensor  # taken so far


@registered("random", scale="ignored", shift="ignored")
@dataclass(frozen=True, kw_only=True)
class RandomWeights:
    """Weights that sum to the number of tasks, drawn anew in every step.

    >>> method, losses = RandomWeights(seed=1), torch.ones(3)
    >>> state = method.init(losses)
    >>> first, again = method.weigh(state, losses), method.weigh(state, losses)
    >>> round(first.sum().item(), 4), torch.equal(first, again)
    (3.0, True)
    >>> torch.equal(first, method.weigh(method.update(state, losses), losses))
    False
    """

    needs: ClassVar[Needs] = Needs.LOSSES

    seed: int = 0

    def init(self, losses: Tensor) -> RandomWeightsState:
        return RandomWeightsState(torch.zeros((), dtype=torch.int64))

    def weigh(
        self, state: RandomWeightsState, losses: Tensor, present: Tensor | None = None
    ) -> Tensor:
        # A text as seed is hashed: steps that follow each other have nothing in common.
        generator = random.Random(f"{self.seed} {int(state.steps)}")
        shares = softmax_shares([generator.gauss(0.0, 1.0) for _ in range(len(losses))])
        return weights_of(shares, losses, present)

    def update(
        self, state: RandomWeightsState, losses: Tensor, present: Tensor | None = None
    ) -> RandomWeightsState:
        return RandomWeightsState(state.steps + 1)

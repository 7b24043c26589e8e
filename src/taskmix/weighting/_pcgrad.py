r"""PCGrad: each task's gradient gives up what conflicts with another's, then all are added.

    Yu, Kumar, Gupta, Levine, Hausman and Finn, "Gradient Surgery for Multi-Task Learning",
    NeurIPS 2020, Algorithm 1.

For every task $i$, $g_i^{PC}$ starts as $g_i$; for every other task $j$ in random order, if
$g_i^{PC} \cdot g_j < 0$, then $g_i^{PC} \mathrel{-}= \frac{g_i^{PC} \cdot g_j}{\|g_j\|^2} g_j$.
The step is $\sum_i g_i^{PC}$, or $\sum_i p_i g_i^{PC}$ with a `preference` (that of the losses $p_i
L_i$: what is projected away does not depend on their scale). All of it stays in the span of the
gradients, so it is done on coefficients (`parts`) with the Gramian, for all $i$ side by side.

Cost: as `MGDA`, with T - 1 rounds of small array operations.

Departures: weights are the sums of the coefficients, at least 1 each; the `Balancer` scales them
to sum to T, and heads have them too (in the paper a head's gradient is its own). The order of the
others is drawn from (`seed`, step), so it is the same on every worker and after every resumption.

Scale: a common factor cancels. Shift: none.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from taskmix.weighting._directional import Preferring
from taskmix.weighting._gramian import Matrix, Vector, weigh_directions
from taskmix.weighting._preference import preferred
from taskmix.weighting._weighting import Balance, registered


@dataclass(frozen=True)
class PCGradState:
    steps: Tensor  # taken so far


@registered("pcgrad", scale="common cancels", shift="ignored")
@dataclass(frozen=True, kw_only=True)
class PCGrad(Preferring):
    """Weights of the sum of the projected gradients.

    >>> products = torch.tensor([[1.0, -0.5], [-0.5, 1.0]])  # two gradients in conflict
    >>> method = PCGrad()
    >>> balance = method.balance(method.init(torch.ones(2)), torch.ones(2), products)
    >>> [round(weight, 4) for weight in balance.weights.tolist()]  # each adds half of the other
    [1.5, 1.5]
    """

    seed: int = 0

    def init(self, losses: Tensor) -> PCGradState:
        return PCGradState(torch.zeros((), dtype=torch.int64))

    def balance(
        self,
        state: PCGradState,
        losses: Tensor,
        gradients: Tensor,
        tasks: Tensor | None = None,
    ) -> Balance[PCGradState]:
        generator = np.random.default_rng((self.seed, int(state.steps)))

        def project(norms: Vector, cosines: Matrix, preference: Vector) -> Vector:
            count = len(norms)
            everyone = np.arange(count)
            # Row i has what is left of unit vector i, in units of the unit vectors.
            parts = np.eye(count)
            for others in visiting_order(count, generator):
                product = np.einsum("ij,ij->i", parts, cosines[others])
                parts[everyone, others] -= np.minimum(product, 0.0) / cosines[0, 0]
            return np.asarray(((norms * preference) @ parts) / norms)

        wanted = preferred(self.preference, len(gradients), tasks)
        weights = weigh_directions(gradients, project, wanted)
        return Balance(weights, PCGradState(state.steps + 1))


def visiting_order(count: int, generator: np.random.Generator) -> NDArray[np.int64]:
    """[round, task]: whom each task meets in each round; every other once, in random order."""
    order = np.argsort(generator.random((count, count - 1)), axis=1)
    # Task i skips itself: 0 .. count-2 become all but i.
    return np.asarray((order + (order >= np.arange(count)[:, None])).T)

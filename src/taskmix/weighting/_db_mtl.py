r"""DB-MTL: logarithms of the losses, and gradients brought to the length of the longest.

    Lin, Jiang, Ye, Zhang, Chen, Chen, Liu, Tsang and Kwok, "Dual-Balancing for Multi-Task
    Learning", arXiv:2308.12029, 2023, Algorithm 1.

Loss balancing: the model descends $\sum_k \log \ell_k$, so that units do not count. Gradient
balancing: with $\hat g_k \leftarrow \beta \hat g_k + (1-\beta) \nabla \log \ell_k$ the running
mean of task $k$'s gradient, the step is $\max_j \|\hat g_j\| \sum_k \hat g_k / \|\hat g_k\|$.

Symbols: $\beta$ is `memory`, divided by `step ** memory_power` as in the authors' code; $\hat g$
is `means`.

Cost: as `MGDA` for passes; memory for T gradients and, where `memory` is above 0, for T × P
running means that stay between steps.

Departures: the step is made of running means, so it is no weighting of the present gradients. The
weights $\max_j \|\hat g_j\| / (\|\hat g_k\| \ell_k)$ are what the step would give them without
memory, and what heads have (in the paper a head's is $1/\ell_k$); the `Balancer` scales step and
weights so that these sum to T. Losses have to be above 0; at 0 they count as 1e-8. One task alone
is trained plainly, without memory.

Scale: twice the loss has half the weight, the step does not change. Shift: changes the weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from taskmix.errors import OptionError
from taskmix.weighting._weighting import Balance, Needs, registered

SMALLEST_LOSS = 1e-8  # a loss of 0 has no logarithm


@dataclass(frozen=True)
class DBMTLState:
    means: Tensor  # [task, parameter], beside the gradients; of no size before the first step
    count: Tensor  # [task], of the steps with a loss


@registered("db-mtl", scale="inverse", shift="counts")
@dataclass(frozen=True, kw_only=True)
class DBMTL:
    """Weights that bring every task's running gradient to the length of the longest.

    >>> method, losses = DBMTL(memory=0.0), torch.tensor([1.0, 1.0])
    >>> gradients = torch.tensor([[3.0, 0.0], [0.0, 1.0]])
    >>> balance = method.balance(method.init(losses), losses, gradients)
    >>> [round(weight, 4) for weight in balance.weights.tolist()]  # all as long as the longest
    [1.0, 3.0]
    """

    needs: ClassVar[Needs] = Needs.LOSSES | Needs.GRADIENTS

    memory: float = 0.9  # how much of the running mean is kept; 0 keeps no state
    memory_power: float = 0.5  # `memory` falls with the steps to this power

    def __post_init__(self) -> None:
        if not 0 <= self.memory < 1 or self.memory_power < 0:
            raise OptionError(
                "`memory` should be at least 0 and below 1, and `memory_power` at least 0. Found "
                f"{self.memory} and {self.memory_power}."
            )

    def init(self, losses: Tensor) -> DBMTLState:
        count = len(losses)
        return DBMTLState(torch.zeros(count, 0), torch.zeros(count, dtype=torch.float64))

    def balance(
        self,
        state: DBMTLState,
        losses: Tensor,
        gradients: Tensor,
        tasks: Tensor | None = None,
    ) -> Balance[DBMTLState]:
        places = torch.arange(len(losses)) if tasks is None else tasks.cpu()
        count = state.count.clone()
        count[places] += 1
        values = losses.detach().double().clamp(min=SMALLEST_LOSS).cpu()
        if not self.memory or len(count) == 1:
            factors = _to_longest(_norms(gradients) / values)
            return Balance(factors / values, DBMTLState(state.means, count))

        means = torch.zeros(
            len(count), gradients.shape[1], dtype=gradients.dtype, device=gradients.device
        )
        if state.means.shape[1]:
            means.copy_(state.means)
        kept = self.memory / count[places] ** self.memory_power
        for row, place in enumerate(places.tolist()):  # one row at a time: P numbers, not T × P
            share = float((1 - kept[row]) / values[row])
            means[place].mul_(float(kept[row])).add_(gradients[row], alpha=share)
        factors = _to_longest(_norms(means)[places])
        spread = torch.zeros(len(means), dtype=means.dtype)
        spread[places] = factors.to(means.dtype)
        combination = spread.to(means.device) @ means
        return Balance(factors / values, DBMTLState(means, count), combination)


def _norms(rows: Tensor) -> Tensor:
    norms: Tensor = torch.linalg.vector_norm(rows, dim=1, dtype=torch.float64)
    return norms.cpu()


def _to_longest(sizes: Tensor) -> Tensor:
    """Factors [task] that bring all sizes to the largest; 1 for a task without a gradient."""
    return torch.where(sizes > 0, sizes.max() / sizes.clamp(min=1e-18 * sizes.max()), 1.0)

r"""GradVac: each task's gradient is turned towards another's until they are as close as
they usually are.

    Wang, Tsvetkov, Firat and Cao, "Gradient Vaccine: Investigating and Improving Multi-task
    Optimization in Massively Multilingual Models", ICLR 2021, Eqs. 3 and 4 and Algorithm 1.

As PCGrad, but with a target $\hat\phi_{ij}$ for the cosine between $g_i'$ and $g_j$ instead of 0.
Where the cosine $\phi_{ij}$ is below it,

    $g_i' \mathrel{+}= \frac{\|g_i'\| (\hat\phi \sqrt{1-\phi^2} - \phi \sqrt{1-\hat\phi^2})}
    {\|g_j\| \sqrt{1-\hat\phi^2}}\, g_j$,

and the target is a running mean: $\hat\phi \leftarrow (1-\beta) \hat\phi + \beta \phi$. A `preference`
is that of `PCGrad`.

Symbols: $\hat\phi$ is `targets`, $\beta$ is `rate`.

Cost: as `PCGrad`, and T² numbers of state.

Departures: as `PCGrad` for weights, heads and order. `rate` is 0.01; the common code has 0.5. One
group of parameters, all that is shared; the paper also does it layer by layer. Targets are kept
below 0.999: the turn has no end as they come to 1. Targets of tasks without a loss stay.

Scale: a common factor cancels. Shift: none.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from taskmix.errors import OptionError
from taskmix.weighting._directional import Preferring
from taskmix.weighting._gramian import Matrix, Vector, weigh_directions
from taskmix.weighting._pcgrad import visiting_order
from taskmix.weighting._preference import preferred
from taskmix.weighting._weighting import Balance, registered

LARGEST_TARGET = 0.999  # cosine: the turn has no end as it comes to 1


@dataclass(frozen=True)
class GradVacState:
    targets: Tensor  # [task, task], the cosines that are usual, float64 on the CPU
    steps: Tensor  # taken so far


@registered("gradvac", scale="common cancels", shift="ignored")
@dataclass(frozen=True, kw_only=True)
class GradVac(Preferring):
    """Weights of the sum of the turned gradients.

    >>> products = torch.tensor([[1.0, -0.5], [-0.5, 1.0]])  # two gradients in conflict
    >>> method = GradVac()
    >>> balance = method.balance(method.init(torch.ones(2)), torch.ones(2), products)
    >>> [round(weight, 4) for weight in balance.weights.tolist()]  # the first target is PCGrad's 0
    [1.5, 1.5]
    >>> [round(target, 4) for target in balance.state.targets.flatten().tolist()]
    [0.0, -0.005, -0.005, 0.0]
    """

    rate: float = 0.01
    seed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.rate <= 1:
            raise OptionError(f"`rate` should be from 0 to 1. Found {self.rate}.")

    def init(self, losses: Tensor) -> GradVacState:
        count = len(losses)
        return GradVacState(
            torch.zeros(count, count, dtype=torch.float64), torch.zeros((), dtype=torch.int64)
        )

    def balance(
        self,
        state: GradVacState,
        losses: Tensor,
        gradients: Tensor,
        tasks: Tensor | None = None,
    ) -> Balance[GradVacState]:
        generator = np.random.default_rng((self.seed, int(state.steps)))
        all_targets = state.targets.numpy().copy()
        here = np.arange(len(gradients)) if tasks is None else tasks.cpu().numpy()
        moving = here[(gradients.detach().diagonal().cpu() > 0).numpy()]

        def turn(norms: Vector, cosines: Matrix, preference: Vector) -> Vector:
            count = len(norms)
            everyone = np.arange(count)
            targets = all_targets[np.ix_(moving, moving)]
            parts = np.eye(count)  # row i has g_i' / |g_i| in units of the unit vectors
            products = cosines.copy()  # of g_i' / |g_i| with every unit vector
            for others in visiting_order(count, generator):
                length = np.sqrt(np.maximum(np.einsum("ij,ij->i", parts, products), 1e-300))
                cosine = np.clip(products[everyone, others] / length, -1.0, 1.0)
                wanted = np.minimum(targets[everyone, others], LARGEST_TARGET)
                sine, wanted_sine = np.sqrt(1 - cosine**2), np.sqrt(1 - wanted**2)
                push = length * (wanted * sine - cosine * wanted_sine) / wanted_sine
                push = np.where(cosine < wanted, push, 0.0)
                parts[everyone, others] += push
                products += push[:, None] * cosines[others]
                targets[everyone, others] += self.rate * (cosine - targets[everyone, others])
            all_targets[np.ix_(moving, moving)] = targets
            return np.asarray(((norms * preference) @ parts) / norms)

        wanted = preferred(self.preference, len(gradients), tasks)
        weights = weigh_directions(gradients, turn, wanted)
        return Balance(weights, GradVacState(torch.from_numpy(all_targets), state.steps + 1))

r"""GradNorm: weights are tuned until the tasks' gradients are of a size that suits their progress.

    Chen, Badrinarayanan, Lee and Rabinovich, "GradNorm: Gradient Normalization for Adaptive Loss
    Balancing in Deep Multitask Networks", ICML 2018, Eqs. 1 and 2 and Algorithm 1.

With $G_i = \|\nabla_W w_i L_i\|$ on the last shared layer $W$, $\bar G$ their mean, and $r_i =
\tilde L_i / \mathrm{mean}(\tilde L)$ the relative inverse training rate, $\tilde L_i = L_i /
L_i(0)$, the weights descend $L_{grad} = \sum_i |G_i - \bar G r_i^\alpha|$, the target held fixed,
and are then scaled to sum to $T$. A task that has come less far than the others has $r_i > 1$ and
a larger target.

Symbols: $\alpha$ is `alpha`, $L_i(0)$ is `initial_losses`, $w$ is `weights`.

Cost: T backward passes of heads and last shared layer, and one backward pass of everything; memory
for T gradients of that layer. No double backward: $G_i = w_i \|\nabla_W L_i\|$, so $\partial
L_{grad} / \partial w_i = \mathrm{sign}(G_i - \bar G r_i^\alpha) \|\nabla_W L_i\|$ with nothing
that could leak into the model's gradients.

Departures and decisions:
- $w$ takes its own Adam steps of 0.025, the paper's learning rate.
- Weights stay at or above 0.001; the paper's absolute value has no such wall, and a negative
  weight would climb its loss.
- $L_i(0)$ is the task's first loss, or what is given (the paper advises $\log C$ for classes).
- The last layer is `Balancer(last_layer=...)`, or the last module with parameters in what is
  shared.

Scale: any factor of a task's loss scales its gradient too, and its weight comes to be the inverse.
Shift: changes the training rates.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from taskmix.errors import OptionError
from taskmix.weighting._adam import AdamState, adam_init, adam_step
from taskmix.weighting._scale import per_task
from taskmix.weighting._weighting import Balance, Needs, registered

SMALLEST_WEIGHT = 1e-3  # Adam may step below 0, where a loss would be climbed


@dataclass(frozen=True)
class GradNormState:
    weights: Tensor  # [task], sum to the number of tasks, float64 on the CPU
    initial_losses: Tensor  # [task]
    seen: Tensor  # [task], whether the initial loss is known
    adam: AdamState


@registered("gradnorm", scale="common cancels", shift="counts")
@dataclass(frozen=True, kw_only=True)
class GradNorm:
    """Weights that sum to the number of tasks.

    >>> method, losses = GradNorm(), torch.tensor([1.0, 1.0])
    >>> state = method.init(losses)
    >>> state = method.balance(state, losses, torch.tensor([[9.0, 0.0], [0.0, 1.0]])).state
    >>> [round(weight, 4) for weight in state.weights.tolist()]  # the longer gradient gets less
    [0.975, 1.025]
    """

    needs: ClassVar[Needs] = Needs.LOSSES | Needs.GRAMIAN | Needs.LAST_LAYER

    alpha: float = 1.5  # the paper's value for NYUv2; the more alike the tasks, the smaller
    step_size: float = 0.025
    initial_losses: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        if self.step_size <= 0:
            raise OptionError(f"`step_size` should be above 0. Found {self.step_size}.")

    def init(self, losses: Tensor) -> GradNormState:
        ones = torch.ones(len(losses), dtype=torch.float64)
        given = self.initial_losses
        first = ones if given is None else per_task(given, ones, name="initial_losses")
        seen = torch.full((len(losses),), given is not None)
        return GradNormState(ones, first, seen, adam_init(len(losses)))

    def balance(
        self,
        state: GradNormState,
        losses: Tensor,
        gradients: Tensor,
        tasks: Tensor | None = None,
    ) -> Balance[GradNormState]:
        places = torch.arange(len(losses)) if tasks is None else tasks.cpu()
        norms = torch.zeros_like(state.weights)
        norms[places] = gradients.detach().cpu().double().diagonal().clamp(min=0).sqrt()
        values = torch.ones_like(state.weights)
        values[places] = losses.detach().cpu().double()
        present = torch.zeros_like(state.seen)
        present[places] = True
        count = len(places)

        weights = torch.where(present, state.weights, 0.0)
        used = weights[places] * (count / weights.sum())
        initial = torch.where(present & ~state.seen, values, state.initial_losses)
        # A loss that began at 0 has no rate: the floor keeps it finite.
        rates = torch.where(present, values / initial.clamp(min=1e-12), 0.0)
        rates = rates * (count / rates.sum().clamp(min=1e-300))
        sizes = weights * norms
        targets = (sizes.sum() / count) * rates.clamp(max=1e6) ** self.alpha
        slope = torch.sign(sizes - targets) * norms
        moved, adam = adam_step(
            state.weights, slope.tolist(), state.adam, step_size=self.step_size, present=present
        )
        moved = moved.clamp(min=SMALLEST_WEIGHT)
        moved = moved * (len(moved) / moved.sum())
        after = GradNormState(moved, initial, state.seen | present, adam)
        return Balance(used, after)

"""One step of the optimiser for all members, each with its own learning rate.

The arithmetic is that of `torch.optim`: PyTorch's fused kernels, called on the stacked parameters of
all members that share a rate. Members lie in the order of their rates, so those are slices. With a
policy, only the head of the task that was drawn has a gradient: as `torch.optim` does, the other
heads are left alone, their moments and their count of steps too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import torch
from torch import Tensor

from taskmix.engine._fleet._layout import StackedParameters
from taskmix.engine._optimization import Optimization

BETAS = (0.9, 0.999)  # those of torch.optim, which solo runs have
EPSILON = 1e-8
Factor = float | Tensor  # of the learning rates at a step


@dataclass(frozen=True)
class Slice:
    """Members in a row with the same options."""

    first: int
    end: int
    rate: float
    decay: float


def slices_of(options: Sequence[Optimization]) -> list[Slice]:
    """Members in a row that have a rate and a decay in common."""
    found, first = [], 0
    for (rate, decay), group in groupby(options, key=lambda o: (o.learning_rate, o.weight_decay)):
        end = first + len(list(group))
        found.append(Slice(first, end, rate, decay))
        first = end
    return found


class StackedOptimizer:
    """Adam, AdamW or SGD with momentum; `moments` and the counts of steps are its whole state."""

    def __init__(
        self,
        options: Sequence[Optimization],  # of each member: alike but for rate and decay
        parameters: StackedParameters,
        moments: Mapping[str, StackedParameters],
        step: int,
        head_steps: Tensor | None,  # [member, slot]; None where all heads take every step
        device: torch.device,
    ) -> None:
        self._kind = options[0].optimizer
        self._momentum = options[0].momentum
        self.slices = slices_of(options)
        self.parameters = parameters
        self.moments = dict(moments)
        self.step = torch.tensor(float(step), device=device)
        self.head_steps = None if head_steps is None else head_steps.float().to(device)
        column = torch.tensor([[o.learning_rate, o.weight_decay] for o in options], device=device)
        self._rates, self._decays = column[:, 0], column[:, 1]  # [member]
        self._device = device

    @staticmethod
    def names(options: Optimization) -> tuple[str, ...]:
        """What `torch.optim` calls the moments."""
        return ("momentum_buffer",) if options.optimizer == "sgd" else ("exp_avg", "exp_avg_sq")

    def step_all(self, gradients: Mapping[str, Tensor], factor: Factor) -> None:
        """One step of the parameters that have a gradient, [member, ...]."""
        self.step += 1
        stacks = [self.parameters, *self.moments.values()]
        parameters, *moments = ([stack.tensors[key] for key in gradients] for stack in stacks)
        lists = [parameters, list(gradients.values()), *moments]
        for part in self.slices:
            cut = lists
            if len(self.slices) > 1:
                cut = [[tensor[part.first : part.end] for tensor in each] for each in lists]
            rate = part.rate * factor  # a tensor on a device, whose graphs keep what is a number
            if self._kind == "sgd":
                self._descend(cut[0], cut[1], cut[2], rate, part.decay)
            else:
                fused: Any = torch._fused_adam_ if self._kind == "adam" else torch._fused_adamw_
                fused(
                    *cut,
                    [],
                    [self.step] * len(gradients),
                    lr=rate,
                    beta1=BETAS[0],
                    beta2=BETAS[1],
                    weight_decay=part.decay,
                    eps=EPSILON,
                    amsgrad=False,
                    maximize=False,
                )

    def _descend(
        self,
        parameters: list[Tensor],
        gradients: list[Tensor],
        buffers: list[Tensor],
        rate: Factor,
        decay: float,
    ) -> None:
        if decay:
            gradients = list(torch._foreach_add(gradients, parameters, alpha=decay))
        # The buffer of a first step is zero, which gives the gradient itself, as in `torch.optim`.
        torch._foreach_mul_(buffers, self._momentum)
        torch._foreach_add_(buffers, gradients)
        torch._foreach_sub_(parameters, torch._foreach_mul(buffers, rate))

    def step_drawn(
        self,
        drawn: Tensor,  # [member], the place of its drawn head among all heads
        heads: Mapping[str, Tensor],  # [member, ...], the parameters of those heads
        gradients: Mapping[str, Tensor],
        factor: Factor,
    ) -> None:
        """One step of the drawn heads alone."""
        assert self.head_steps is not None
        counts = self.head_steps.view(-1)
        steps = counts.index_select(0, drawn) + 1
        counts.index_copy_(0, drawn, steps)
        rates = self._rates * factor
        for key, gradient in gradients.items():
            shape = (-1, *[1] * (gradient.dim() - 1))
            rate, decay = rates.view(shape), self._decays.view(shape)
            parameter = heads[key].detach()
            stored = [stack.tensors[key].flatten(0, 1) for stack in self.moments.values()]
            moments = [tensor.index_select(0, drawn) for tensor in stored]
            if self._kind == "adamw":
                parameter = parameter * (1 - rate * decay)
            else:
                gradient = gradient + decay * parameter
            if self._kind == "sgd":
                moments = [moments[0] * self._momentum + gradient]
                move = moments[0]
            else:
                first = moments[0].lerp(gradient, 1 - BETAS[0])
                second = moments[1] * BETAS[1] + (1 - BETAS[1]) * gradient.square()
                moments = [first, second]
                counted = steps.double()
                unbias = (1 - BETAS[0] ** counted).float().view(shape)
                spread = (1 - BETAS[1] ** counted).sqrt().float().view(shape)
                move = first / unbias / (second.sqrt() / spread + EPSILON)
            whole = self.parameters.tensors[key].flatten(0, 1)
            whole.index_copy_(0, drawn, parameter - rate * move)
            for tensor, moment in zip(stored, moments, strict=True):
                tensor.index_copy_(0, drawn, moment)

    def keep(
        self, members: Tensor, options: Sequence[Optimization], parameters: StackedParameters
    ) -> StackedOptimizer:
        """The same for some of the members."""
        moments = {name: stack.keep(members) for name, stack in self.moments.items()}
        steps = None if self.head_steps is None else self.head_steps.index_select(0, members)
        count = int(self.step)
        return StackedOptimizer(options, parameters, moments, count, steps, self._device)


def clip(gradients: Mapping[str, Tensor], most: Tensor) -> dict[str, Tensor]:
    """Scales each member's gradients down to the norm `most` [member], as `clip_grad_norm_` does."""
    squares = [value.square().flatten(1).sum(dim=1) for value in gradients.values()]
    norms = torch.stack(squares).sum(dim=0).sqrt()
    factors = (most / (norms + 1e-6)).clamp(max=1.0)
    return {
        key: value * factors.view(-1, *[1] * (value.dim() - 1)) for key, value in gradients.items()
    }

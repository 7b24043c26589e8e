"""Gradients put into `.grad` as `backward` puts them: added, and told to who waits for them.

`register_post_accumulate_grad_hook` is how optimisers are fused into the backward pass. Such a hook is
called once a step for each parameter, when all of its gradient is there.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

from taskmix.errors import InputError


def add_gradient(tensor: Tensor, gradient: Tensor) -> None:
    """Adds all of a step's gradient to `.grad`, and calls the hooks that wait for it."""
    if tensor.grad is None:
        tensor.grad = gradient.detach()
    else:
        tensor.grad.add_(gradient)
    hooks = tensor._post_accumulate_grad_hooks
    if hooks:
        with torch.no_grad():
            for hook in list(hooks.values()):
                hook(tensor)


def refuse_hooks(tensors: Iterable[Tensor], why: str) -> None:
    """Raises where an optimiser fused into `backward` would be told of a gradient that is not final."""
    if any(tensor._post_accumulate_grad_hooks for tensor in tensors):
        raise InputError(
            "A parameter with a hook for its whole gradient (`register_post_accumulate_grad_hook`) "
            f"should get that in one walk. Found {why}, which takes several. Step the optimiser after "
            "`balancer.backward`, or take a weighting that needs losses alone, such as BanditMTL."
        )

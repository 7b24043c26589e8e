"""Smooth functions of a few tensors, minimised to the end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

import torch
from torch import Tensor


def minimise(function: Callable[[], Tensor], tensors: Sequence[Tensor], steps: int) -> None:
    """Changes the tensors in place. A step to where the function is no number is taken back."""
    for tensor in tensors:
        tensor.requires_grad_(True)
    search = torch.optim.LBFGS(
        tensors, max_iter=steps, line_search_fn="strong_wolfe", history_size=20
    )
    best = [tensor.detach().clone() for tensor in tensors]
    least = float("inf")

    def measure() -> Tensor:
        nonlocal least, best
        search.zero_grad()
        value = function()
        value.backward()  # type: ignore[no-untyped-call]
        found = float(value.detach())
        if found < least:
            least, best = found, [tensor.detach().clone() for tensor in tensors]
        return value

    # A covariance that cannot be inverted: too bold a step. (torch's types leave this error out.)
    with suppress(torch.linalg.LinAlgError):  # type: ignore[attr-defined]
        search.step(measure)  # type: ignore[no-untyped-call]
    for tensor, value in zip(tensors, best, strict=True):
        tensor.requires_grad_(False)
        tensor.copy_(value)

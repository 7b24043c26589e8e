"""A function that torch compiles where that works, and calls as it is where it does not."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from taskmix.errors import TaskmixWarning

# In the environment: 0 for nothing, "step" for all but own kernels, "always" also for short runs.
SWITCH = "TASKMIX_COMPILE"


class Compiled:
    """Fuses what lies between the matrix products, for tensors of the shapes of the first call.

    That call takes a minute or so, which pays in the thousands of steps that follow; tensors of other
    shapes are not worth another minute. No CUDA graph is made: the fleet captures whole steps itself.
    """

    def __init__(self, function: Callable[..., Tensor]) -> None:
        self._function = function
        self._compiled: Callable[..., Tensor] | None = None
        if os.environ.get(SWITCH, "1") != "0":
            self._compiled = torch.compile(function, dynamic=False, fullgraph=True)
        self._shapes: list[Any] | None = None

    @property
    def works(self) -> bool:
        """Whether calls are compiled, as far as is known."""
        return self._compiled is not None

    def __call__(self, weights: dict[str, Tensor], *others: Any) -> Tensor:
        if self._compiled is not None:
            shapes = [_shape(value) for value in (*weights.values(), *others)]
            if self._shapes is None:
                self._shapes = shapes
                self._try(weights, *others)
            if self._compiled is not None and shapes == self._shapes:
                return self._compiled(weights, *others)
        return self._function(weights, *others)

    def _try(self, weights: dict[str, Tensor], *others: Any) -> None:
        """There and back once: a compiler may fail on the way back alone."""
        assert self._compiled is not None
        try:
            outputs = self._compiled(weights, *others)
            torch.autograd.grad(outputs.sum(), list(weights.values()))
        except torch.OutOfMemoryError:
            raise
        except Exception as error:  # a compiler may fail in any way; the plain function is as right
            self._compiled = None
            words = f"Steps are not compiled, and slower: {type(error).__name__}: {error}"
            warnings.warn(words.splitlines()[0], TaskmixWarning, stacklevel=4)


def _shape(value: Any) -> Any:
    return tuple(value.shape) if isinstance(value, Tensor) else value

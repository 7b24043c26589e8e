"""A function that torch compiles where that works, and calls as it is where it does not."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from taskmix.errors import TaskmixWarning

SWITCH = "TASKMIX_COMPILE"  # "0" in the environment: nothing is compiled


class Compiled:
    """Fuses what lies between the matrix products; the first call with given shapes takes a while.

    Shapes are taken as they are, and no CUDA graph is made: the fleet captures whole steps itself.
    """

    def __init__(self, function: Callable[..., Tensor]) -> None:
        self._function = function
        self._compiled: Callable[..., Tensor] | None = None
        if os.environ.get(SWITCH, "1") != "0":
            self._compiled = torch.compile(function, dynamic=False, fullgraph=True)
        self._tried = False

    @property
    def works(self) -> bool:
        """Whether calls are compiled, as far as is known."""
        return self._compiled is not None

    def __call__(self, weights: dict[str, Tensor], *others: Any) -> Tensor:
        if self._compiled is None:
            return self._function(weights, *others)
        if not self._tried:
            self._try(weights, *others)
            self._tried = True
            return self(weights, *others)
        return self._compiled(weights, *others)

    def _try(self, weights: dict[str, Tensor], *others: Any) -> None:
        """There and back once: a compiler may fail on the way back alone."""
        assert self._compiled is not None
        try:
            outputs = self._compiled(weights, *others)
            torch.autograd.grad(outputs.sum(), list(weights.values()))
        except torch.OutOfMemoryError:
            raise
        except Exception as error:  # of a compiler anything may be wrong; the plain function is not
            self._compiled = None
            words = f"Steps are not compiled: {type(error).__name__}: {error}".splitlines()[0]
            warnings.warn(f"{words} They are slower and the same.", TaskmixWarning, stacklevel=4)

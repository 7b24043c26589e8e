"""Where numba comes in: loops it compiles, and whether there is numba at all.

A module `_compiled` holds the kernels of its room and imports numba; nothing but `compiled` imports it.
Without numba every caller has a way in plain NumPy that gives the same results more slowly.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import cache
from types import ModuleType
from typing import TypeVar, cast

Function = TypeVar("Function", bound=Callable[..., object])

# Sums may be taken in another order; NaN and infinity keep their meaning.
_RELAXED = {"reassoc", "contract", "nsz"}


def kernel(function: Function) -> Function:
    """Compiles a loop on its first call; other Python threads run on meanwhile."""
    import numba

    return cast("Function", numba.njit(nogil=True, cache=True, fastmath=_RELAXED)(function))


@cache
def compiled(room: str) -> ModuleType | None:
    """The kernels of a room; None without numba."""
    try:
        return importlib.import_module(f"taskmix.sequences._{room}._compiled")
    except ImportError:
        return None

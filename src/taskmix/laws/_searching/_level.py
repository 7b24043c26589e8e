"""Columns of any unit brought to a size that can be squared."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from taskmix.laws._forms import Array


def levelled(
    columns: Array,  # [row, column], finite
) -> tuple[Array, NDArray[np.intp]]:
    """Columns over powers of two that bring their largest value near 1, and those exponents.

    The cube of a large number can be a number and its square not. Powers of two cost no digit, so
    whatever does not depend on the unit comes out the same to the last bit.
    """
    _, exponents = np.frexp(np.abs(columns).max(axis=0, initial=0.0))
    return np.ldexp(columns, -exponents), exponents

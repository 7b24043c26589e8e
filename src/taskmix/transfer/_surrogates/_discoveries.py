"""Many tests at once: which of them to believe so that few of the believed are wrong.

Benjamini and Hochberg, "Controlling the False Discovery Rate", 1995, procedure (1).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from taskmix.errors import OptionError


def adjusted_p_values(p_values: ArrayLike) -> NDArray[np.float64]:
    """For each test the smallest false discovery rate at which it is still believed.

    Of all tests with an adjusted value of at most 0.05, an expected share of at most 0.05 is wrong
    (where tests are independent or positively dependent). A NaN is no test: it stays and is not
    counted.
    """
    given = np.asarray(p_values, dtype=np.float64)
    known = np.isfinite(given)
    values = given[known]
    if np.any((values < 0) | (values > 1)):
        raise OptionError(f"p-values should lie between 0 and 1. Found {values.tolist()}.")
    order = np.argsort(values)
    scaled = values[order] * len(values) / np.arange(1, len(values) + 1)
    # The rule takes the last test that passes and all before it, so smaller ones further on count.
    lowest = np.minimum.accumulate(scaled[::-1])[::-1]
    adjusted = np.full(given.shape, np.nan)
    found = np.empty(len(values))
    found[order] = np.minimum(lowest, 1.0)
    adjusted[known] = found
    return adjusted

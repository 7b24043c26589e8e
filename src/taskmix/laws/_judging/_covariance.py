"""The covariance of fitted constants.

    White, "A Heteroskedasticity-Consistent Covariance Matrix Estimator", Econometrica 48, 1980.

The sandwich holds for deviations of unequal size too. Where it cannot be computed it is infinite: of
such constants nothing is known, and zeros would say that everything is.
"""

from __future__ import annotations

import numpy as np

from taskmix.laws._forms import Array


def sandwich(
    weighted: Array,  # [row, constant], the Jacobian times the weights
    residual: Array,  # [row], weighted
    bound: float,  # where Huber's loss bends
) -> Array:
    """[constant, constant]; infinite where derivatives overflow, since then nothing is known."""
    rows, count = weighted.shape
    with np.errstate(over="ignore"):
        scale = np.linalg.norm(weighted, axis=0)
    scale[scale == 0] = 1.0
    if not (np.isfinite(weighted).all() and np.isfinite(scale).all()):
        return np.full((count, count), np.inf)
    even = weighted / scale
    # Under Huber's loss rows beyond the bound add no curvature, and pull no harder than the bound.
    inside = np.abs(residual) <= bound
    pulls = np.clip(residual, -bound, bound)
    inverse = np.linalg.pinv((even * inside[:, None]).T @ even, rcond=1e-12)
    meat = even.T @ (even * pulls[:, None] ** 2)
    with np.errstate(over="ignore", invalid="ignore"):
        found = inverse @ meat @ inverse / np.outer(scale, scale) * rows / max(rows - count, 1)
    return found if np.isfinite(found).all() else np.full((count, count), np.inf)

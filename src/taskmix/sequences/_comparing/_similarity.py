"""How alike tasks are, from their shares of the generators."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from taskmix.errors import ShapeError
from taskmix.sequences._generator import Floats


def task_similarity(theta: ArrayLike) -> Floats:
    r"""[task, task], the affinity $\sum_k \sqrt{\theta_{ik}\theta_{jk}}$ of Bhattacharyya (1943).

    One for equal shares, zero for tasks that have no generator in common; symmetric and positive
    semidefinite, so it serves as relatedness or as a kernel.

    >>> task_similarity([[1.0, 0.0], [0.36, 0.64]])
    array([[1. , 0.6],
           [0.6, 1. ]])
    """
    shares = np.asarray(theta, dtype=np.float64)
    if shares.ndim != 2 or (shares < 0).any() or not np.allclose(shares.sum(axis=1), 1.0):
        raise ShapeError(
            "`theta` should be [task, generator] with rows that sum to one. Found shape "
            f"{shares.shape}."
        )
    roots = np.sqrt(shares)
    return np.asarray(np.minimum(roots @ roots.T, 1.0))

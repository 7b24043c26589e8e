"""How much each law counts: weights by the errors of runs that were left out.

Breiman, "Stacked Regressions", 1996: weights at or above 0 that sum to 1. Every metric has weights of
its own, shrunk to those that are best for all metrics together.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import nnls

from taskmix.mixtures._table import Floats

SHRUNK_BY = 32.0  # runs whose worth of evidence the weights of all metrics have
CERTAIN = 1e4  # how firmly weights sum to 1


def stack_weights(left_out: Floats, losses: Floats) -> Floats:
    """[metric, law], from what each law says of runs it did not see, [law, run, metric].

    >>> truth = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> stack_weights(np.stack([truth, truth[::-1]]), truth).round(3).tolist()
    [[1.0, 0.0]]
    """
    laws, _, metrics = left_out.shape
    known = np.isfinite(losses)
    errors = np.where(known, left_out - np.where(known, losses, 0.0), 0.0)
    # In parts of the best law's error, so that no metric outweighs the others.
    counts = np.maximum(known.sum(axis=0), 1)
    best = np.sqrt((errors**2).sum(axis=1) / counts).min(axis=0) + 1e-12
    errors = errors / best
    pooled = _simplex(errors.reshape(laws, -1).T, np.full(laws, 1 / laws), 1.0)
    return np.stack(
        [_simplex(errors[:, :, metric].T, pooled, SHRUNK_BY) for metric in range(metrics)]
    )


def _simplex(errors: Floats, usual: Floats, strength: float) -> Floats:
    """Weights of laws whose weighted errors [case, law] are least, drawn to the usual ones."""
    laws = errors.shape[1]
    rows = [errors, np.sqrt(strength) * np.eye(laws), CERTAIN * np.ones((1, laws))]
    wanted = [np.zeros(len(errors)), np.sqrt(strength) * usual, np.array([CERTAIN])]
    found, _ = nnls(np.concatenate(rows), np.concatenate(wanted), maxiter=100 * laws)
    total = found.sum()
    return found / total if total > 0 else usual

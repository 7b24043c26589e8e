"""The logarithm of a loss as a line in the shares: the simplest law, and exact to solve.

Ridge regression, whose strength is chosen for all metrics together by leaving runs out one by one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from taskmix.mixtures._laws._law import exp_then_straight, scale_losses
from taskmix.mixtures._table import Floats

STRENGTHS = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)  # of the ridge, in runs


@dataclass(frozen=True, kw_only=True)
class LogLinearLaw:
    """Options of the log-linear law. Losses that are not all above 0 are taken as they are.

    >>> shares = np.random.default_rng(0).dirichlet(np.ones(3), 40)
    >>> losses = np.exp(1 - shares @ [[0.0], [0.5], [1.0]])
    >>> fitted = LogLinearLaw().fit(shares, losses)
    >>> bool(np.abs(fitted.predict(shares) - losses).max() < 0.01)
    True
    """

    @property
    def name(self) -> str:
        return "log-linear"

    def fit(self, shares: Floats, losses: Floats, *, seed: int = 0) -> FittedLogLinear:
        """In closed form."""
        positive = np.nanmin(losses, axis=0) > 0
        scaled = scale_losses(np.where(positive, np.log(np.where(positive, losses, 1.0)), losses))
        center = shares.mean(axis=0)
        apart = shares - center
        best, slopes = np.inf, np.zeros((len(positive), shares.shape[1]))
        for strength in STRENGTHS:
            found, error = _ridge(apart, scaled.values, scaled.known, strength)
            if error < best:
                best, slopes = error, found
        slopes = slopes * scaled.spread[:, None]
        highest = np.where(positive, (apart @ slopes.T + scaled.center).max(axis=0), 0.0)
        return FittedLogLinear(center, slopes, scaled.center.copy(), highest, positive)


@dataclass(frozen=True, eq=False)
class FittedLogLinear:
    """The law with its constants."""

    center: Floats  # [domain]
    slopes: Floats  # [metric, domain]
    levels: Floats  # [metric]
    highest: Floats  # [metric], logarithm of the runs
    logarithmic: np.ndarray[tuple[int], np.dtype[np.bool_]]  # [metric]

    def predict(self, shares: Floats) -> Floats:
        found = (shares - self.center) @ self.slopes.T + self.levels
        return np.where(self.logarithmic, exp_then_straight(found, self.highest), found)


def _ridge(apart: Floats, values: Floats, known: Floats, strength: float) -> tuple[Floats, float]:
    """Slopes [metric, domain], and the squared error of runs that are left out in turn."""
    slopes, error = np.zeros((len(values), apart.shape[1])), 0.0
    for place, (value, there) in enumerate(zip(values, known > 0, strict=True)):
        rows = apart[there]
        inverse = np.linalg.inv(rows.T @ rows + strength * np.eye(rows.shape[1]))
        slopes[place] = inverse @ rows.T @ value[there]
        leverage = np.einsum("ij,jk,ik->i", rows, inverse, rows) + 1 / max(len(rows), 1)
        left = (value[there] - rows @ slopes[place]) / np.maximum(1 - leverage, 1e-3)
        error += float((left**2).sum())
    return slopes, error

"""The exponential law of mixtures: L = c + k exp(sum_j t_j w_j).

Ye et al., "Data Mixing Laws: Optimizing Data Mixtures by Predicting Language Modeling Performance", 2024
(arXiv 2403.16952); what Olmix calls log-linear (arXiv 2602.12237) is the same with k in the exponent.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from taskmix.mixtures._laws._law import (
    ScaledLosses,
    best_line,
    exp_then_straight,
    minimise,
    scale_losses,
)
from taskmix.mixtures._table import Floats

FIRST_RATE = -2.0  # of each domain times how well its share goes with the loss


@dataclass(frozen=True, kw_only=True)
class ExponentialLaw:
    """Options of the exponential law.

    >>> shares = np.random.default_rng(0).dirichlet(np.ones(3), 40)
    >>> losses = 1 + 2 * np.exp(shares @ [[0.0], [-1.0], [-3.0]])
    >>> fitted = ExponentialLaw().fit(shares, losses)
    >>> bool(np.abs(fitted.predict(shares) - losses).max() < 0.01)
    True
    """

    ridge: float = 1e-6  # on rates, in parts of the squared error of the mean alone
    steps: int = 120

    @property
    def name(self) -> str:
        return "exponential"

    def fit(self, shares: Floats, losses: Floats, *, seed: int = 0) -> FittedExponential:
        """Least squares; the line from the exponential to the losses is exact in every step."""
        scaled = scale_losses(losses)
        rows, values, known = (
            torch.as_tensor(each) for each in (shares, scaled.values, scaled.known)
        )
        apart = shares - shares.mean(axis=0)
        lowered = np.nan_to_num(-scaled.values @ apart / (len(shares) * (apart.std(axis=0) + 1e-9)))
        rates = torch.as_tensor(np.ascontiguousarray(FIRST_RATE * lowered))

        def misfit() -> Tensor:
            shape = torch.exp(_exponents(rates, rows))
            center, slope = best_line(shape, values, known)
            left = known * (values - (shape - center) * slope)
            apart = rates - rates.mean(dim=1, keepdim=True)
            return left.square().sum() / len(rows) + self.ridge * apart.square().sum()

        minimise(misfit, [rates], self.steps)
        exponents = _exponents(rates, rows)
        center, slope = (each.numpy() for each in best_line(exponents.exp(), values, known))
        highest = exponents.numpy().max(axis=1, keepdims=True)
        return FittedExponential(rates.numpy().copy(), highest, center, slope, scaled)


def _exponents(rates: Tensor, shares: Tensor) -> Tensor:
    """[metric, mixture]"""
    return (rates @ shares.T).clamp(-30, 30)


@dataclass(frozen=True, eq=False)
class FittedExponential:
    """The law with its constants."""

    rates: Floats  # [metric, domain]
    highest: Floats  # [metric, 1], exponent of the runs
    center: Floats  # [metric, 1]
    slope: Floats  # [metric, 1]
    scaled: ScaledLosses

    def predict(self, shares: Floats) -> Floats:
        exponents = _exponents(torch.as_tensor(self.rates), torch.as_tensor(shares)).numpy()
        shape = exp_then_straight(exponents, self.highest)
        return self.scaled.back((shape - self.center) * self.slope)

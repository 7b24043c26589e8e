"""Effective data: every domain's tokens count for every metric, each at a worth of their own.

    L = c + b * (e + sum_j s_j w_j + (sum_j v_j sqrt(w_j))^2)^-a

A power law of data (Kaplan et al., 2020; Hoffmann et al., 2022) in which a token of domain j is worth
s_j tokens of what the metric asks for, as transfer is measured by Hernandez et al., "Scaling Laws for
Transfer", 2021. The square, which is left out unless `crossed`, lets domains be worth more in company.
Exponents, floors and worths are shrunk towards what is usual, the worths on a logarithmic scale and so
weakly that a domain may well be worth a thousand times another.
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

USUAL_EXPONENT, EXPONENT_SPREAD = -0.7, 0.5  # of its logarithm
USUAL_FLOOR, FLOOR_SPREAD = -2.0, 1.0  # of the logarithm of e
USUAL_NOISE, NOISE_SPREAD = -2.0, 1.0  # of its logarithm, in deviations of the metric
FIRST_RIDGE = 0.3


@dataclass(frozen=True, kw_only=True)
class EffectiveDataLaw:
    """Options of the law of effective data.

    >>> shares = np.random.default_rng(0).dirichlet(np.ones(3), 40)
    >>> losses = 1 + (0.1 + shares @ [[0.0], [0.5], [2.0]]) ** -0.5
    >>> fitted = EffectiveDataLaw().fit(shares, losses)
    >>> bool(np.abs(fitted.predict(shares) - losses).max() < 0.05)
    True
    """

    worth_spread: float = 3.0  # how far the logarithms of worths lie apart
    together: float = 0.0  # how far worths are shrunk to those of the other metrics, 0 to 1
    crossed: bool = False
    steps: int = 120

    @property
    def name(self) -> str:
        return "effective data with cross-terms" if self.crossed else "effective data"

    def fit(self, shares: Floats, losses: Floats, *, seed: int = 0) -> FittedEffectiveData:
        """The most likely constants."""
        scaled = scale_losses(losses)
        constants = _first(self, shares, scaled)
        rows, values, known = (
            torch.as_tensor(each) for each in (shares, scaled.values, scaled.known)
        )

        def misfit() -> Tensor:
            shape = torch.exp(_exponents(constants, rows))
            center, slope = best_line(shape, values, known)
            left = values - (shape - center) * slope
            noise = constants["noise"].unsqueeze(1)
            found = (known * (0.5 * left.square() * torch.exp(-2 * noise) + noise)).sum()
            return found + _prior(self, constants)

        minimise(misfit, list(constants.values()), self.steps)
        exponents = _exponents(constants, rows)
        center, slope = (each.numpy() for each in best_line(exponents.exp(), values, known))
        return FittedEffectiveData(
            {name: each.numpy().copy() for name, each in constants.items()},
            exponents.numpy().max(axis=1, keepdims=True),
            center,
            slope,
            scaled,
        )


@dataclass(frozen=True, eq=False)
class FittedEffectiveData:
    """The law with its constants."""

    constants: dict[str, Floats]
    highest: Floats  # [metric, 1], exponent of the runs
    center: Floats  # [metric, 1]
    slope: Floats  # [metric, 1]
    scaled: ScaledLosses

    def predict(self, shares: Floats) -> Floats:
        constants = {name: torch.as_tensor(each) for name, each in self.constants.items()}
        exponents = _exponents(constants, torch.as_tensor(shares)).numpy()
        # Less data in all is no other mixture: by how much that raises exponents is known.
        less = np.exp(self.constants["exponent"])[:, None] * np.log(shares.sum(axis=1) + 1e-12)
        shape = exp_then_straight(exponents, self.highest - less)
        return self.scaled.back((shape - self.center) * self.slope)


def _first(options: EffectiveDataLaw, shares: Floats, scaled: ScaledLosses) -> dict[str, Tensor]:
    """A start: domains whose roots of shares lower a loss are worth something to it."""
    roots = np.sqrt(shares)
    roots = roots - roots.mean(axis=0)
    gram = roots.T @ roots + FIRST_RIDGE * np.eye(shares.shape[1])
    slopes = np.linalg.solve(gram, roots.T @ scaled.values.T).T
    least = 0.05 * np.abs(slopes).max(axis=1, keepdims=True) + 1e-9
    worth = np.log(np.maximum(-slopes, least))
    worth -= worth.mean(axis=1, keepdims=True)
    metrics = len(worth)
    found = {
        "worth": torch.as_tensor(np.ascontiguousarray(worth)),
        "floor": torch.full((metrics,), USUAL_FLOOR, dtype=torch.float64),
        "exponent": torch.full((metrics,), USUAL_EXPONENT, dtype=torch.float64),
        "noise": torch.full((metrics,), USUAL_NOISE, dtype=torch.float64),
    }
    if options.crossed:
        found["company"] = torch.full(worth.shape, 0.1, dtype=torch.float64)
    return found


def _exponents(constants: dict[str, Tensor], shares: Tensor) -> Tensor:
    """[metric, mixture], logarithms of powers of effective data; the floor is a part of the budget."""
    data = torch.exp(constants["worth"]) @ shares.T
    data = data + torch.exp(constants["floor"]).unsqueeze(1) * shares.sum(dim=1)
    if "company" in constants:
        # Roots are taken a hair above 0, where they have a slope.
        data = data + (constants["company"] @ (shares + 1e-6).sqrt().T).square()
    return -torch.exp(constants["exponent"]).unsqueeze(1) * torch.log(data + 1e-12)


def _prior(options: EffectiveDataLaw, constants: dict[str, Tensor]) -> Tensor:
    worth = constants["worth"]
    level = worth.mean(dim=1, keepdim=True)
    usual = level + options.together * (worth - level).mean(dim=0, keepdim=True)
    found = ((worth - usual) / options.worth_spread).square().sum() + level.square().sum()
    found = found + ((constants["exponent"] - USUAL_EXPONENT) / EXPONENT_SPREAD).square().sum()
    found = found + ((constants["floor"] - USUAL_FLOOR) / FLOOR_SPREAD).square().sum()
    found = found + ((constants["noise"] - USUAL_NOISE) / NOISE_SPREAD).square().sum()
    if "company" in constants:
        found = found + (constants["company"] / 0.5).square().sum()
    return 0.5 * found

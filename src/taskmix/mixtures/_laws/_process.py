"""A Gaussian process over powers of shares: no formula, only that like mixtures give like losses.

The covariance of two mixtures is a constant, a term linear in powers of the shares (the first tokens of
a domain teach most) and a Matern term with a length for every domain; all have their own scale for every
domain and metric, shrunk so that few domains matter much to a metric. Rasmussen and Williams, "Gaussian
Processes for Machine Learning", 2006, with the most likely scales; functions are drawn by Matheron's
rule, Wilson et al., "Efficiently Sampling Functions from Gaussian Process Posteriors", ICML 2020.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from taskmix.mixtures._laws._law import ScaledLosses, minimise, scale_losses
from taskmix.mixtures._table import Floats

NEARLY_NONE = 1e-4  # a share; powers of smaller ones are alike
JITTER = 1e-5  # variance that is added to every run's, so that covariances can be inverted
UNKNOWN = 1e6  # the variance of a loss that was not measured
# Normal priors of logarithms: (mean, deviation).
LINEAR, LENGTH = (-1.5, 1.5), (0.3, 1.0)
AMPLITUDE, NOISE = (-0.5, 0.7), (-2.5, 0.7)
ROOT_5 = 5**0.5


@dataclass(frozen=True, kw_only=True)
class ProcessLaw:
    """Options of the Gaussian process.

    >>> shares = np.random.default_rng(0).dirichlet(np.ones(3), 40)
    >>> losses = np.log(0.1 + shares @ [[0.0], [0.5], [2.0]])
    >>> fitted = ProcessLaw().fit(shares[:30], losses[:30])
    >>> bool(np.abs(fitted.predict(shares[30:]) - losses[30:]).max() < 0.2)
    True
    """

    power: float = 0.25
    runs: int = 128  # that scales are fitted on, at most; all others count once these are known
    steps: int = 50

    @property
    def name(self) -> str:
        return "Gaussian process"

    def fit(
        self,
        shares: Floats,
        losses: Floats,
        *,
        seed: int = 0,
        noise: Floats | None = None,  # [run, metric], relative to a usual run's deviation
    ) -> FittedProcess:
        """The most likely scales, and what follows from the runs."""
        scaled = scale_losses(losses)
        relative = np.ones_like(scaled.values) if noise is None else noise.T
        scales = _first(len(scaled.values), shares.shape[1])
        order = np.random.default_rng(seed).permutation(len(shares))[: self.runs]
        inputs = torch.as_tensor(powers(shares[order], self.power))
        values = torch.as_tensor(scaled.values[:, order]).unsqueeze(2)
        known = torch.as_tensor(scaled.known[:, order])
        own = torch.as_tensor(relative[:, order] ** 2)

        def misfit() -> Tensor:
            root = torch.linalg.cholesky(_covariance(scales, inputs, known, own))
            half: Tensor = torch.linalg.solve_triangular(root, values, upper=False)
            fit = 0.5 * half.square().sum() + torch.diagonal(root, dim1=1, dim2=2).log().sum()
            return fit + _prior(scales)

        minimise(misfit, list(scales.values()), self.steps)
        found = {name: each.numpy().copy() for name, each in scales.items()}
        return FittedProcess(self.power, found, powers(shares, self.power), scaled, relative**2)


def powers(shares: Floats, power: float) -> Floats:
    """0 for no share, 1 for all, and steep at the beginning."""
    found: Floats = (shares + NEARLY_NONE) ** power - NEARLY_NONE**power
    return found


def _first(metrics: int, domains: int) -> dict[str, Tensor]:
    return {
        "linear": torch.full((metrics, domains), LINEAR[0], dtype=torch.float64),
        "length": torch.full((metrics, domains), LENGTH[0], dtype=torch.float64),
        "amplitude": torch.full((metrics,), AMPLITUDE[0], dtype=torch.float64),
        "noise": torch.full((metrics,), NOISE[0], dtype=torch.float64),
    }


def _prior(scales: dict[str, Tensor]) -> Tensor:
    priors = {"linear": LINEAR, "length": LENGTH, "amplitude": AMPLITUDE, "noise": NOISE}
    terms = [((scales[name] - mean) / wide).square().sum() for name, (mean, wide) in priors.items()]
    return 0.5 * torch.stack(terms).sum()


def _kernel(scales: dict[str, Tensor], first: Tensor, second: Tensor) -> Tensor:
    """[metric, first, second], without noise."""
    steep = torch.exp(scales["linear"]).unsqueeze(1)
    linear = (first * steep) @ (second * steep).transpose(1, 2)
    short = torch.exp(-scales["length"]).unsqueeze(1)
    one, other = first * short, second * short
    squares = one.square().sum(dim=2).unsqueeze(2) + other.square().sum(dim=2).unsqueeze(1)
    squares = (squares - 2 * one @ other.transpose(1, 2)).clamp_min(1e-12)
    far = ROOT_5 * squares.sqrt()
    smooth = (1 + far + far.square() / 3) * torch.exp(-far)
    return 1.0 + linear + torch.exp(2 * scales["amplitude"]).view(-1, 1, 1) * smooth


def _covariance(scales: dict[str, Tensor], inputs: Tensor, known: Tensor, own: Tensor) -> Tensor:
    noise = torch.exp(2 * scales["noise"]).unsqueeze(1) * own + JITTER + UNKNOWN * (1 - known)
    return _kernel(scales, inputs, inputs) + torch.diag_embed(noise)


@dataclass(eq=False)
class FittedProcess:
    """The process given the runs."""

    power: float
    scales: dict[str, Floats]
    inputs: Floats  # [run, domain], powers of shares
    scaled: ScaledLosses
    relative: Floats  # [metric, run], variances of the noise in those of a usual run
    _root: Tensor = field(init=False, repr=False)
    _weights: Tensor = field(init=False, repr=False)

    def __post_init__(self) -> None:
        covariance = _covariance(
            self._tensors(),
            torch.as_tensor(self.inputs),
            torch.as_tensor(self.scaled.known),
            torch.as_tensor(self.relative),
        )
        self._root = torch.linalg.cholesky(covariance)
        self._weights = self._solve(torch.as_tensor(self.scaled.values).unsqueeze(2))

    def _tensors(self) -> dict[str, Tensor]:
        return {name: torch.as_tensor(each) for name, each in self.scales.items()}

    def _solve(self, values: Tensor) -> Tensor:
        return torch.cholesky_solve(values, self._root)

    def _between(self, shares: Floats) -> Tensor:
        """[metric, mixture, run], covariances with the runs."""
        asked = torch.as_tensor(powers(shares, self.power))
        return _kernel(self._tensors(), asked, torch.as_tensor(self.inputs))

    def predict(self, shares: Floats) -> Floats:
        return self.scaled.back((self._between(shares) @ self._weights).squeeze(2).numpy())

    @property
    def noise(self) -> Floats:
        """[metric], the deviation of a usual run around its law."""
        found: Floats = np.exp(self.scales["noise"]) * self.scaled.spread
        return found

    def left_out(self) -> tuple[Floats, Floats]:
        """Each run as the others predict it, and how sure they are of its law, [run, metric] each."""
        inverse = torch.cholesky_inverse(self._root)
        variance = 1 / torch.diagonal(inverse, dim1=1, dim2=2)
        values = torch.as_tensor(self.scaled.values)
        predicted = values - self._weights.squeeze(2) * variance
        noise = torch.exp(2 * self._tensors()["noise"]).unsqueeze(1) * torch.as_tensor(
            self.relative
        )
        sure = (variance - noise).clamp_min(1e-12).sqrt()
        return self.scaled.back(predicted.numpy()), sure.numpy().T * self.scaled.spread

    def deviation(self, shares: Floats) -> Floats:
        """[mixture, metric], how far the law may lie from what is predicted, one deviation."""
        between = self._between(shares)
        half: Tensor = torch.linalg.solve_triangular(
            self._root, between.transpose(1, 2), upper=False
        )
        asked = torch.as_tensor(powers(shares, self.power))
        steep = torch.exp(2 * self._tensors()["linear"])
        own = 1 + steep @ asked.square().T + torch.exp(2 * self._tensors()["amplitude"])[:, None]
        variance = (own - half.square().sum(dim=1)).clamp_min(0.0)
        return variance.sqrt().numpy().T * self.scaled.spread

    def draw(self, count: int, *, seed: int, waves: int = 256) -> DrawnProcess:
        """Equally likely functions."""
        return DrawnProcess(self, count, seed, waves)


class DrawnProcess:
    """Functions drawn from a process: how each differs from what is predicted, everywhere."""

    def __init__(self, process: FittedProcess, count: int, seed: int, waves: int) -> None:
        self._process = process
        random = np.random.default_rng(seed)
        metrics, domains = process.scales["linear"].shape
        # Matern covariances of order 5/2 are those of waves whose frequencies are Student's t with 5.
        frequencies = random.standard_normal((metrics, waves, domains))
        frequencies *= np.sqrt(5 / random.chisquare(5, (metrics, waves, 1)))
        self._frequencies = frequencies * np.exp(-process.scales["length"])[:, None, :]
        self._phases = random.uniform(0, 2 * np.pi, (metrics, waves))
        self._waves = random.standard_normal((metrics, waves, count)) * (
            np.sqrt(2 / waves) * np.exp(process.scales["amplitude"])[:, None, None]
        )
        self._slopes = (
            random.standard_normal((metrics, domains, count))
            * np.exp(process.scales["linear"])[:, :, None]
        )
        self._levels = random.standard_normal((metrics, 1, count))
        before = self._before(process.inputs)
        noise = np.exp(2 * process.scales["noise"])[:, None] * process.relative + JITTER
        noise = noise + UNKNOWN * (1 - process.scaled.known)
        seen = before + np.sqrt(noise)[:, :, None] * random.standard_normal(before.shape)
        self._correction = process._solve(torch.as_tensor(seen))

    def _before(self, inputs: Floats) -> Floats:
        """Functions of the process before any run was seen, [metric, mixture, draw]."""
        angles = inputs @ self._frequencies.transpose(0, 2, 1) + self._phases[:, None, :]
        found: Floats = np.cos(angles) @ self._waves + inputs @ self._slopes + self._levels
        return found

    def deviations(self, shares: Floats) -> Floats:
        """[draw, mixture, metric]."""
        before = self._before(powers(shares, self._process.power))
        seen = (self._process._between(shares) @ self._correction).numpy()
        found: Floats = (before - seen).transpose(2, 1, 0) * self._process.scaled.spread
        return found

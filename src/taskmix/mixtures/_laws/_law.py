"""What every law of mixtures is, and what their fits share: scaled losses, bounded exponentials, lines.

Exponentials whose slope is bounded: beyond the exponents of the runs they go on as straight lines.

A domain that hardly varied leaves its constant open: what runs hold at 5 % at most would make a loss of
millions at 100 %. Where the runs are nothing changes, and no two mixtures change their order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from taskmix.mixtures._table import Floats

SHRUNK_BY = 0.1  # of a run with a slope of 0


class FittedMixtureLaw(Protocol):
    """A law with its constants."""

    def predict(self, shares: Floats) -> Floats:
        """Losses [mixture, metric] of shares [mixture, domain]; rows may sum to less than 1."""


class MixtureLaw(Protocol):
    """A kind of law: how losses depend on shares.

    >>> law: MixtureLaw = LogLinearLaw()
    >>> law.name
    'log-linear'
    """

    @property
    def name(self) -> str:
        """As people call it."""

    def fit(self, shares: Floats, losses: Floats, *, seed: int = 0) -> FittedMixtureLaw:
        """Constants for losses [run, metric], NaN where one was not measured."""


@dataclass(frozen=True)
class ScaledLosses:
    """Losses of mean 0 and deviation 1, and where they are known."""

    values: Floats  # [metric, run]; 0 where unknown
    known: Floats  # [metric, run]; 1 or 0
    center: Floats  # [metric]
    spread: Floats  # [metric]

    def back(self, values: Floats) -> Floats:
        """From [metric, mixture] to losses [mixture, metric]."""
        return np.asarray(values).T * self.spread + self.center


def scale_losses(losses: Floats) -> ScaledLosses:
    """Of losses [run, metric], NaN where unknown."""
    known = np.isfinite(losses)
    count = np.maximum(known.sum(axis=0), 1)
    center = np.where(known, losses, 0.0).sum(axis=0) / count
    apart = np.where(known, losses - center, 0.0)
    spread = np.sqrt((apart**2).sum(axis=0) / count)
    spread = np.where(spread > 1e-12 * np.maximum(np.abs(center), 1e-300), spread, 1.0)
    return ScaledLosses((apart / spread).T.copy(), known.T.astype(float), center, spread)


def exp_then_straight(exponents: Floats, highest: Floats) -> Floats:
    """Exponentials up to the highest exponent of the runs, and their tangents beyond."""
    below = np.minimum(exponents, highest)
    return np.asarray(np.exp(below) * (1 + exponents - below))


def best_line(shape: Tensor, values: Tensor, known: Tensor) -> tuple[Tensor, Tensor]:
    """Of shapes and values [metric, run], the centre of shapes and the slope, [metric, 1] each."""
    count = known.sum(dim=1, keepdim=True).clamp_min(1.0)
    center = (known * shape).sum(dim=1, keepdim=True) / count
    apart = known * (shape - center)
    square = apart.square().sum(dim=1, keepdim=True)
    shrunk = square * (1 + SHRUNK_BY / count) + 1e-18
    return center, (apart * values).sum(dim=1, keepdim=True) / shrunk


def minimise(function: Callable[[], Tensor], tensors: Sequence[Tensor], steps: int) -> None:
    """Changes the tensors in place. A step to where the function is no number is taken back."""
    for tensor in tensors:
        tensor.requires_grad_(True)
    search = torch.optim.LBFGS(
        tensors, max_iter=steps, line_search_fn="strong_wolfe", history_size=20
    )
    best = [tensor.detach().clone() for tensor in tensors]
    least = float("inf")

    def measure() -> Tensor:
        nonlocal least, best
        search.zero_grad()
        value = function()
        value.backward()  # type: ignore[no-untyped-call]
        found = float(value.detach())
        if found < least:
            least, best = found, [tensor.detach().clone() for tensor in tensors]
        return value

    # A covariance that cannot be inverted: too bold a step. (torch's types leave this error out.)
    with suppress(torch.linalg.LinAlgError):  # type: ignore[attr-defined]
        search.step(measure)  # type: ignore[no-untyped-call]
    for tensor, value in zip(tensors, best, strict=True):
        tensor.requires_grad_(False)
        tensor.copy_(value)

"""What every law of mixtures is: options that can be fitted, and a fit that can be asked."""

from __future__ import annotations

from typing import Protocol

from taskmix.mixtures._table import Floats


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

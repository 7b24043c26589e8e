"""Losses of different metrics made alike: mean 0 and deviation 1 each, gaps filled and marked."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from taskmix.mixtures._table import Floats


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

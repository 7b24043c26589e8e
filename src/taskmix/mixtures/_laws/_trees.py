"""Boosted trees, as RegMix has them: no law, a peer to compare laws with (extra `trees`).

Liu et al., "RegMix: Data Mixture as Regression for Language Model Pre-training", ICLR 2025. Their
notebook stops early by the test set; here a fifth of the runs decides, and the trees then grow on all.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from taskmix.extras import load
from taskmix.mixtures._table import Floats


@dataclass(frozen=True, kw_only=True)
class BoostedTrees:
    """Options of boosted trees.

    >>> BoostedTrees().fit(shares, losses).predict(shares)  # doctest: +SKIP
    """

    rate: float = 0.05
    most: int = 1000  # trees
    patience: int = 30
    held_out: float = 0.2

    @property
    def name(self) -> str:
        return "boosted trees"

    def fit(self, shares: Floats, losses: Floats, *, seed: int = 0) -> FittedTrees:
        """A model for each metric, which knows nothing of the others."""
        load("lightgbm", purpose="boosted trees as a law of mixtures")
        return FittedTrees(
            [self._grow(shares, losses[:, metric], seed) for metric in range(losses.shape[1])]
        )

    def _grow(self, shares: Floats, losses: Floats, seed: int) -> Any:
        lightgbm: Any = load("lightgbm", purpose="boosted trees as a law of mixtures")
        known = np.flatnonzero(np.isfinite(losses))
        order = np.random.default_rng(seed).permutation(known)
        held = max(1, round(self.held_out * len(order)))
        options = {
            "objective": "regression",
            "learning_rate": self.rate,
            "min_data_in_leaf": int(np.clip(len(order) // 10, 2, 20)),
            "verbosity": -1,
            "num_threads": 1,
            "seed": seed,
            "deterministic": True,
        }
        train = lightgbm.Dataset(shares[order[held:]], losses[order[held:]])
        dev = lightgbm.Dataset(shares[order[:held]], losses[order[:held]])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            first = lightgbm.train(
                options,
                train,
                self.most,
                valid_sets=[dev],
                callbacks=[lightgbm.early_stopping(self.patience, verbose=False)],
            )
            whole = lightgbm.Dataset(shares[order], losses[order])
            return lightgbm.train(options, whole, max(first.best_iteration, 1))


@dataclass(frozen=True, eq=False)
class FittedTrees:
    """Trees that are grown."""

    models: list[Any]  # a metric each

    def predict(self, shares: Floats) -> Floats:
        return np.stack([np.asarray(model.predict(shares)) for model in self.models], axis=1)

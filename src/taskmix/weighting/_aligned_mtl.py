r"""Aligned-MTL: the tasks' gradients, made orthogonal and of one length, then averaged.

    Senushkin, Patakin, Kuznetsov and Konushin, "Independent Component Alignment for Multi-Task
    Learning", CVPR 2023, Eqs. 10 to 13 and Algorithm 1.

The matrix of gradients is replaced by the nearest one all of whose singular values are $\sigma$,
the smallest of its own. On the Gramian's eigenvectors $V$ and eigenvalues $\lambda$ that is
$\alpha = \sqrt{\lambda_R}\, V \Lambda^{-1/2} V^\top w$, with $\lambda_R$ the smallest above
rounding.

Symbols: $w$ is `preference`, scaled to sum to one, or equal weights $1/T$; $\sigma$ is chosen by
`scale`: the paper's "min", or "median" or "rmse" of the authors' code.

Cost: as `MGDA`, with one eigendecomposition of T × T. On the shared representation (`Balancer(...,
representation=...)`) it is the paper's Aligned-MTL-UB.

Departures: the `Balancer` scales weights so that their absolute values sum to T, which leaves
`scale` without effect; `normalize=None` keeps it.

Scale: a common factor cancels. Shift: none.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from taskmix.errors import OptionError
from taskmix.weighting._directional import Preferring
from taskmix.weighting._gramian import ridge_of
from taskmix.weighting._preference import preferred
from taskmix.weighting._weighting import Balance, registered


@registered("aligned", scale="common cancels", shift="ignored")
@dataclass(frozen=True, kw_only=True)
class AlignedMTL(Preferring):
    """Weights of the mean of the aligned gradients; no state.

    >>> products = torch.tensor([[4.0, 0.0], [0.0, 1.0]])  # gradients (2, 0) and (0, 1)
    >>> weights = AlignedMTL().balance(None, torch.ones(2), products).weights
    >>> [round(weight, 4) for weight in weights.tolist()]  # the mean of (1, 0) and (0, 1)
    [0.25, 0.5]
    """

    scale: Literal["min", "median", "rmse"] = "min"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.scale not in ("min", "median", "rmse"):
            raise OptionError(f'`scale` should be "min", "median" or "rmse". Found {self.scale!r}.')

    def init(self, losses: Tensor) -> None:
        return None

    def balance(
        self, state: None, losses: Tensor, gradients: Tensor, tasks: Tensor | None = None
    ) -> Balance[None]:
        products = gradients.detach().to("cpu", torch.float64).numpy()
        count = len(products)
        if not np.isfinite(products).all():
            return Balance(torch.full((count,), torch.nan, dtype=torch.float64), None)
        values, vectors = np.linalg.eigh((products + products.T) / 2)
        # What is below rounding is no direction of the gradients, and its inverse would be noise.
        kept = values > max(float(values[-1]), 0.0) * count * ridge_of(gradients) * 1e-1
        wanted = np.array(preferred(self.preference, count, tasks)) / count
        if not kept.any():
            return Balance(torch.from_numpy(wanted), None)
        values, vectors = values[kept], vectors[:, kept]
        chosen = {"min": values.min(), "median": np.median(values), "rmse": values.mean()}
        parts = (wanted @ vectors) / np.sqrt(values)
        return Balance(torch.from_numpy(math.sqrt(chosen[self.scale]) * (vectors @ parts)), None)

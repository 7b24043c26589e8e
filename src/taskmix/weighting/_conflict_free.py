r"""ConFIG: a step that agrees equally with every task, as long as the tasks' gradients together.

    Liu, Chu and Thuerey, "ConFIG: Towards Conflict-free Training of Physics Informed Neural
    Networks", ICLR 2025, Eqs. 2 and 3.

$g_v = U^{+} \mathbf 1$ with the unit gradients as rows of $U$ has the same cosine with all of
them; the step is $\big(\sum_i g_i^\top \hat g_v\big)\, \hat g_v$. Since $U^{+} = U^\top (U
U^\top)^{-1}$ both need only the cosines $C$: $g_v = U^\top C^{-1} \mathbf 1$. The direction is
IMTL-G's; the length is ConFIG's own. With a `preference` the cosines are in proportion to it, $g_v =
U^{+} p$, as in the authors' code.

Cost: as `MGDA`, with one linear system of T numbers (peers take the pseudo-inverse of T × P).

Departures: the `Balancer` scales weights so that their absolute values sum to T, which drops the
paper's length; `normalize=None` keeps it. The momentum version (M-ConFIG) is not here.

Scale: twice the loss has half the weight in the direction. Shift: none.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from taskmix.weighting._directional import Directional
from taskmix.weighting._gramian import Matrix, Vector
from taskmix.weighting._solvers import solve_positive
from taskmix.weighting._weighting import registered


@registered("config", scale="inverse", shift="ignored")
@dataclass(frozen=True, kw_only=True)
class ConFIG(Directional):
    """Weights of the conflict-free direction; no state.

    >>> products = torch.tensor([[4.0, 0.0], [0.0, 1.0]])  # gradients (2, 0) and (0, 1)
    >>> weights = ConFIG().balance(None, torch.ones(2), products).weights
    >>> [round(weight, 4) for weight in weights.tolist()]  # the step (1.5, 1.5)
    [0.75, 1.5]
    """

    def solve(self, norms: Vector, cosines: Matrix, preference: Vector) -> Vector:
        parts = solve_positive(cosines, preference)
        square = float(
            parts @ cosines @ parts
        )  # of the length of the direction before it is scaled
        agreement = float(norms @ (cosines @ parts)) / math.sqrt(square)  # the sum of g_i' along it
        return np.asarray(parts / norms * (agreement / math.sqrt(square)))

r"""IMTL-G: the step has the same projection onto every task's gradient.

    Liu, Li, Kuang, Xue, Chen, Yang, Liao and Zhang, "Towards Impartial Multi-task Learning",
    ICLR 2021, Section 3.1, Eqs. 3 to 5.

Weights $\alpha$, $\sum \alpha_t = 1$, with $g^\top u_t$ equal for all $t$, where $g = \sum
\alpha_t g_t$ and $u_t = g_t / \|g_t\|$. In terms of the cosines $C$ between the gradients that is
$C v = 1$, $\alpha_t \propto v_t / \|g_t\|$; weights may be negative. With a `preference` the projections
are in proportion to it, $C v = p$.

Cost: as `MGDA`, with one linear system of T numbers.

Departures: the paper's sum of one is divided out by its absolute value. Where $\sum v_t / \|g_t\|$
is negative the paper's $g$ would climb every loss; this one has the same direction with the sign
that descends. The `Balancer` scales weights so that their absolute values sum to T. A ridge of a
millionth keeps opposite or equal gradients solvable.

Scale: twice the loss has half the weight, the direction does not change. Shift: none.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from taskmix.weighting._directional import Directional
from taskmix.weighting._gramian import Matrix, Vector
from taskmix.weighting._solvers import solve_positive
from taskmix.weighting._weighting import registered


@registered("imtl-g", scale="inverse", shift="ignored")
@dataclass(frozen=True, kw_only=True)
class IMTLG(Directional):
    """Weights with which every task gains the same; no state.

    >>> products = torch.tensor([[4.0, 0.0], [0.0, 1.0]])  # gradients (2, 0) and (0, 1)
    >>> weights = IMTLG().balance(None, torch.ones(2), products).weights
    >>> [round(weight, 4) for weight in weights.tolist()]  # (2/3, 2/3) projects alike onto both
    [0.3333, 0.6667]
    """

    def solve(self, norms: Vector, cosines: Matrix, preference: Vector) -> Vector:
        inverse = norms.min() / norms
        weights = solve_positive(cosines, preference) * inverse
        total = abs(float(weights.sum()))
        # A sum that cancels says nothing of the weights' size; then their absolute values sum to one.
        size = float(np.abs(weights).sum())
        return np.asarray(weights / (total if total > 1e-6 * size else size))

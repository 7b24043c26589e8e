r"""UPGrad: each task's gradient is projected to where no task loses, then all are averaged.

    Quinton and Rey, "Jacobian Descent for Multi-Objective Optimization", arXiv:2406.16232, 2024,
    Eqs. 3 to 5 and Proposition 1.

The projection of $g_i$ onto the directions that have no negative product with any gradient is
$\sum_k v_k g_k$ with $v$ the smallest $v^\top G v$ over $v \ge e_i$ ($G$ the Gramian). The step is
their mean, or with a `preference` the sum of $p_i$ times the projection of $g_i$, as in the authors'
library.

Cost: as `MGDA`, with up to T small quadratic programmes, solved exactly; a task that conflicts
with none needs no programme.

Departures: the `Balancer` scales weights to sum to T. The authors' library adds 1e-4 to the
diagonal of the Gramian divided by its trace; here a ridge of a millionth is relative to each
task's own gradient.

Scale: a common factor cancels. Shift: none.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from taskmix.weighting._directional import Directional
from taskmix.weighting._gramian import Matrix, Vector
from taskmix.weighting._solvers import nonnegative_quadratic
from taskmix.weighting._weighting import registered


@registered("upgrad", scale="common cancels", shift="ignored")
@dataclass(frozen=True, kw_only=True)
class UPGrad(Directional):
    """Weights of the mean of the projected gradients; no state.

    >>> products = torch.tensor([[1.0, -0.5], [-0.5, 1.0]])  # two gradients in conflict
    >>> weights = UPGrad().balance(None, torch.ones(2), products).weights
    >>> [round(weight, 4) for weight in weights.tolist()]  # the mean of two projections
    [0.75, 0.75]
    """

    def solve(self, norms: Vector, cosines: Matrix, preference: Vector) -> Vector:
        count = len(norms)
        # In units of unit vectors, v = e_i + x with x >= 0; the size of g_i comes in at the end.
        parts = np.eye(count)
        for task in np.flatnonzero((cosines < 0).any(axis=1)):
            parts[task] += nonnegative_quadratic(cosines, cosines[task])
        return np.asarray(((norms * preference) @ parts) / norms / count)

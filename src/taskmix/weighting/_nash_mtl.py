r"""Nash-MTL: the step that the tasks would agree on if they bargained.

    Navon, Shamsian, Achituve, Maron, Kawaguchi, Chechik and Fetaya, "Multi-Task Learning as a
    Bargaining Game", ICML 2022, Claim 3.1 and Eq. 3.

The Nash bargaining solution $\Delta\theta = \sum \alpha_i g_i$ has $G^\top G \alpha = 1/\alpha$,
$\alpha > 0$. With a `preference` it is the asymmetric solution (Kalai, "Nonsymmetric Nash Solutions",
1977), which maximises $\sum p_i \log (g_i^\top \Delta\theta)$: $G^\top G \alpha = p/\alpha$.

Symbols: $G^\top G$ is the Gramian; its solution does not depend on the tasks' scales, so it is
sought for the cosines $C$: $C \beta = 1/\beta$, $\alpha_i = \beta_i / \|g_i\|$.

Cost: as `MGDA`, with Newton's method on T numbers, about ten linear systems. The paper's sequence
of convex programmes (cvxpy, ECOS) takes tens of milliseconds and can fail; the equation is the
gradient of the convex $\frac12 \alpha^\top G^\top G \alpha - \sum \log \alpha_i$, which has one
lowest point.

Departures: the `Balancer` scales $\alpha$ to sum to T. The paper's step has a length of its own
($\sqrt T$) that its code clips to 1, so the scale was never the method's.
`Balancer(update_every=...)` is the paper's "update the weights every few steps".

Scale: twice the loss has half the weight, the step does not change. Shift: none.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from taskmix.weighting._directional import Directional
from taskmix.weighting._gramian import Matrix, Vector
from taskmix.weighting._solvers import fair_allocation
from taskmix.weighting._weighting import registered


@registered("nash", scale="inverse", shift="ignored")
@dataclass(frozen=True, kw_only=True)
class NashMTL(Directional):
    """Weights of the Nash bargaining solution; no state.

    >>> products = torch.tensor([[4.0, 0.0], [0.0, 1.0]])  # gradients (2, 0) and (0, 1)
    >>> weights = NashMTL().balance(None, torch.ones(2), products).weights
    >>> [round(weight, 4) for weight in weights.tolist()]  # products @ weights = 1 / weights
    [0.5, 1.0]
    """

    def solve(self, norms: Vector, cosines: Matrix, preference: Vector) -> Vector:
        return np.asarray(fair_allocation(cosines, 1.0, preference) / norms)

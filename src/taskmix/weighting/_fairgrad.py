r"""FairGrad: the step that shares the gain fairly, in a sense that runs from the sum to the worst-off.

    Ban and Ji, "Fair Resource Allocation in Multi-Task Learning", ICML 2024, Eqs. 3 and 4.

$\max_d \sum_i \frac{(g_i^\top d)^{1-\alpha}}{1-\alpha}$ over $\|d\| \le \epsilon$ is solved by $d
= \sum w_i g_i$ with $G^\top G w = w^{-1/\alpha}$: the sum of the losses for $\alpha \to 0$,
Nash-MTL for 1, the worst-off task alone as $\alpha \to \infty$. With a `preference` each task's term
is multiplied by $p_i$, as in $(p, \alpha)$-proportional fairness (Mo and Walrand, 2000): $G^\top G w =
(w/p)^{-1/\alpha}$.

Symbols: $\alpha$ is `alpha`, $G^\top G$ is the Gramian.

Cost: as `NashMTL`. The authors' code minimises the squared residual with a general solver from one
starting point, which need not arrive.

Departures: the `Balancer` scales $w$ to sum to T.

Scale: a common factor cancels; a task whose loss is k times as large has less weight, by the power
$-2\alpha/(1+\alpha)$ where the gradients are orthogonal. Shift: none.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from taskmix.errors import OptionError
from taskmix.weighting._directional import Directional
from taskmix.weighting._gramian import Matrix, Vector
from taskmix.weighting._solvers import fair_allocation
from taskmix.weighting._weighting import registered


@registered("fairgrad", scale="common cancels", shift="ignored")
@dataclass(frozen=True, kw_only=True)
class FairGrad(Directional):
    """Weights of the alpha-fair step; no state.

    >>> products = torch.tensor([[4.0, 0.0], [0.0, 1.0]])  # gradients (2, 0) and (0, 1)
    >>> weights = FairGrad(alpha=1.0).balance(None, torch.ones(2), products).weights
    >>> [round(weight, 4) for weight in weights.tolist()]  # with alpha 1 that of Nash-MTL
    [0.5, 1.0]
    """

    alpha: float = 2.0  # the paper's value for NYU-v2 and CityScapes

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.alpha <= 0:
            raise OptionError(
                f"`alpha` should be above 0. Found {self.alpha}. `Equal` is what 0 would be."
            )

    def solve(self, norms: Vector, cosines: Matrix, preference: Vector) -> Vector:
        # A common factor of the gradients is a common factor of the solution; near 1 it
        # keeps powers of very large and very small norms within float64.
        unit = float(np.exp(np.log(norms).mean()))
        lengths = np.clip(norms / unit, 1e-50, 1e50)
        matrix = cosines * lengths[:, None] * lengths[None, :]
        power = -2 * self.alpha / (1 + self.alpha)
        factor = np.exp(np.clip(power * np.log(unit), -500, 500))
        return np.asarray(fair_allocation(matrix, self.alpha, preference) * factor)

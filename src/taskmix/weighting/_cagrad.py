r"""CAGrad: near the mean gradient, the step from which the worst-off task gains most.

    Liu, Liu, Jin, Stone and Liu, "Conflict-Averse Gradient Descent for Multi-task Learning",
    NeurIPS 2021, Eqs. 3 and 4 and Algorithm 1.

$\max_d \min_i g_i^\top d$ over $\|d - g_0\| \le c \|g_0\|$, with $g_0$ the mean gradient. Its dual
is $\min_w\; g_w^\top g_0 + c \|g_0\| \|g_w\|$ over the simplex, $g_w = \sum w_i g_i$, and $d = g_0
+ \frac{c \|g_0\|}{\|g_w\|} g_w$.

Symbols: $c$ is `closeness`; 0 is the mean gradient, large values approach MGDA. With a `preference`
$g_0$ is the mean with these weights; the worst-off task is judged as before.

Cost: as `MGDA`, with a few small quadratic programmes: for a given length $s = \|g_w\|$ the dual
is one, and on its solution's support $s$ has a closed form.

Departures: the dual is solved exactly (peers use general solvers). The `Balancer` scales the
weights $\frac1T + \frac{c\|g_0\|}{\|g_w\|} w_i$ to sum to T; the authors' code divides by $1 +
c^2$ or not at all.

Scale: a common factor cancels. Shift: none.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from taskmix.errors import OptionError
from taskmix.weighting._directional import Directional
from taskmix.weighting._gramian import Matrix, Vector
from taskmix.weighting._solvers import simplex_quadratic, solve_positive
from taskmix.weighting._weighting import registered


@registered("cagrad", scale="common cancels", shift="ignored")
@dataclass(frozen=True, kw_only=True)
class CAGrad(Directional):
    """Weights of the conflict-averse step; no state.

    >>> products = torch.tensor([[4.0, 0.0], [0.0, 1.0]])  # gradients (2, 0) and (0, 1)
    >>> weights = CAGrad(closeness=0.0).balance(None, torch.ones(2), products).weights
    >>> weights.tolist()  # the mean gradient
    [0.5, 0.5]
    >>> weights = CAGrad(closeness=0.5).balance(None, torch.ones(2), products).weights
    >>> bool(weights[1] > weights[0])  # nearer to the worse-off task
    True
    """

    closeness: float = 0.4  # the paper's value for NYU-v2; it has 0.2 for CityScapes

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.closeness < 0:
            raise OptionError(f"`closeness` should be at least 0. Found {self.closeness}.")

    def solve(self, norms: Vector, cosines: Matrix, preference: Vector) -> Vector:
        # What is shorter by a factor of a billion is out of reach of the programmes' float64.
        lengths = np.maximum(norms / norms.max(), 1e-9)
        return conflict_averse(lengths, cosines, preference, self.closeness)


def conflict_averse(norms: Vector, cosines: Matrix, preference: Vector, closeness: float) -> Vector:
    """Weights [task] of the step d; `norms` are at most 1."""
    shares = preference / len(norms)
    mean = norms * shares  # of the unit vectors in the mean gradient
    linear = cosines @ mean  # of each unit vector with the mean gradient
    radius = closeness * math.sqrt(float(mean @ linear))
    if radius <= 1e-12:
        return shares
    # x = w * norms, so that the matrix is that of the cosines and the sum of w is `sums` @ x.
    sums = 1 / norms
    x = mean.copy()
    length = math.sqrt(float(x @ cosines @ x))
    low, high = 0.0, math.inf
    for _ in range(100):
        x = simplex_quadratic(cosines, linear * (length / radius), sums, x)
        found = math.sqrt(float(x @ cosines @ x))
        if abs(found - length) <= 1e-9 * length:
            break
        # The length the solution asks for falls as the one it is given rises: they meet once.
        low, high = (length, high) if found > length else (low, length)
        length = _length_on_support(cosines, linear / radius, sums, x > 0)
        if not low < length < high:
            length = 2 * low if math.isinf(high) else math.sqrt(max(low, high / 1e3) * high)
    return np.asarray(shares + (radius / length) * x / norms)


def _length_on_support(
    matrix: Matrix, linear: Vector, sums: Vector, support: NDArray[np.bool_]
) -> float:
    """The s at which the solution with this support is s long; NaN where there is none.

    The solution is a + s * d with a and d orthogonal in `matrix`: its square is a'a + s² d'd.
    """
    places = np.flatnonzero(support)
    parts = solve_positive(
        matrix[np.ix_(places, places)], np.column_stack([sums[places], linear[places]])
    )
    total = float(sums[places] @ parts[:, 0])
    along = (float(sums[places] @ parts[:, 1]) / total) * parts[:, 0] - parts[:, 1]
    square = float(along @ matrix[np.ix_(places, places)] @ along)
    return math.sqrt(1 / total / (1 - square)) if square < 1 else math.nan

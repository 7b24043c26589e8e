r"""MGDA: the shortest vector among all averages of the tasks' gradients.

    Désidéri, "Multiple-gradient descent algorithm (MGDA) for multiobjective optimization",
    Comptes Rendus Mathématique 350, 2012; Sener and Koltun, "Multi-Task Learning as
    Multi-Objective Optimization", NeurIPS 2018, Eq. 3.

$\min_\alpha \|\sum_t \alpha_t \nabla_\theta L_t\|^2$ over $\alpha \ge 0$, $\sum \alpha_t = 1$. The
negative of that vector descends every loss, or is 0 where no direction does (a Pareto-stationary
point).

Symbols: $\theta$ is what the `Balancer` is told is shared.

Cost: T backward passes, of which each walks only its own task's graph; memory for the gradients of
T tasks; an exact quadratic programme of T numbers.

Departures and decisions:
- The programme is solved exactly by an active set; the paper's Frank-Wolfe stops short of it.
- Weights are scaled to sum to T. Heads have the same weights, as in the authors' code.
- `normalization` divides the gradients before $\alpha$ is sought, and not in the step, as in the
  authors' code: "l2" by their norms, "loss" by the losses, "loss+" by both.
- A task whose gradient is 0 takes all the weight: the shortest vector is then 0. Tasks with
  smaller gradients always have larger weights; `normalization` is the remedy.

Scale: a task whose loss is k times as large has less weight; a common factor cancels, and so does
any factor under "l2". Shift: none, except through "loss".

MGDA-UB: MGDA on the gradients of the shared representation, which bound those of the parameters.

    Sener and Koltun, "Multi-Task Learning as Multi-Objective Optimization", NeurIPS 2018,
    Section 3.3, problem (MGDA-UB) and Theorem 1.

With $Z$ the representation of the whole batch, $\nabla_{\theta^{sh}} L_t = (\partial Z / \partial
\theta^{sh})^\top \nabla_Z L_t$, so that the shortest combination of the $\nabla_Z L_t$ bounds the
shortest of the parameters' gradients up to a factor that does not depend on the weights.

Cost: T backward passes of the heads alone and one of the encoder; memory for T gradients of the
representation, [task, row * feature].

Decisions:
- Inner products run over the whole batch × feature tensor. A peer sums over the batch first; that
  is not the bound.
- Where each task brings its own rows, $Z$ is all their codes: gradients of different tasks then
  have nothing in common, and weights are proportional to the inverse squared norms.
- As `MGDA` for the rest: exact programme, weights that sum to T, heads too, `normalization`.

Scale and shift: as `MGDA`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import torch
from torch import Tensor

from taskmix.errors import OptionError
from taskmix.weighting._gramian import cosines, ridge_of
from taskmix.weighting._solvers import nonnegative_quadratic
from taskmix.weighting._weighting import Balance, Needs, registered

Normalization = Literal["none", "l2", "loss", "loss+"]
SHORTEST_GRADIENT = 1e-150  # the square of its inverse is still a float64


@registered("mgda", scale="common cancels", shift="ignored")
@dataclass(frozen=True, kw_only=True)
class MGDA:
    """Weights of the shortest convex combination of the gradients; no state.

    >>> products = torch.tensor([[4.0, 0.0], [0.0, 1.0]])  # gradients (2, 0) and (0, 1)
    >>> balance = MGDA().balance(None, torch.ones(2), products)
    >>> [round(weight, 4) for weight in balance.weights.tolist()]  # of (0.4, 0.8), the shortest
    [0.2, 0.8]
    """

    needs: ClassVar[Needs] = Needs.LOSSES | Needs.GRAMIAN

    normalization: Normalization = "none"

    def __post_init__(self) -> None:
        check_normalization(self.normalization)

    def init(self, losses: Tensor) -> None:
        return None

    def balance(
        self, state: None, losses: Tensor, gradients: Tensor, tasks: Tensor | None = None
    ) -> Balance[None]:
        return Balance(
            shortest_combination(normalized(gradients, losses, self.normalization)), None
        )


def shortest_combination(gramian: Tensor) -> Tensor:
    """Weights [task] that sum to one, of the shortest average of vectors with these products."""
    products = gramian.detach().to("cpu", torch.float64).numpy()
    if not np.isfinite(products).all():
        return torch.full((len(products),), torch.nan, dtype=torch.float64)
    norms = np.sqrt(np.maximum(products.diagonal(), 0.0))
    still = norms <= SHORTEST_GRADIENT
    if still.any():
        return torch.from_numpy(still / still.sum())
    # In units of each gradient's norm, and with the sum left open: the direction of the solution
    # is that of the smallest x'Gx / 2 - sum(x) over x >= 0, and the sum is mended afterwards.
    inverse = norms.min() / norms
    found = nonnegative_quadratic(cosines(products, ridge_of(gramian)), -inverse)
    weights = found * inverse
    return torch.from_numpy(weights / weights.sum())


def normalized(gramian: Tensor, losses: Tensor, normalization: Normalization) -> Tensor:
    """The products of gradients divided as `normalization` says."""
    if normalization == "none":
        return gramian
    divisors = torch.ones(len(gramian), dtype=torch.float64)
    if normalization in ("l2", "loss+"):
        divisors = divisors * gramian.diagonal().cpu().double().sqrt()
    if normalization in ("loss", "loss+"):
        divisors = divisors * losses.detach().cpu().double()
    divisors = torch.where(divisors == 0, 1.0, divisors)
    return (gramian.cpu() / divisors[:, None] / divisors[None, :]).to(gramian.dtype)


def check_normalization(normalization: str) -> None:
    """Raises where there is no such normalization."""
    if normalization not in ("none", "l2", "loss", "loss+"):
        raise OptionError(
            f'`normalization` should be "none", "l2", "loss" or "loss+". Found {normalization!r}.'
        )


@registered("mgda-ub", scale="common cancels", shift="ignored")
@dataclass(frozen=True, kw_only=True)
class MGDAUB(MGDA):
    """Weights of the shortest convex combination of the representation's gradients; no state.

    >>> products = torch.tensor([[4.0, 0.0], [0.0, 1.0]])  # of the representation's gradients
    >>> weights = MGDAUB().balance(None, torch.ones(2), products).weights
    >>> [round(weight, 4) for weight in weights.tolist()]  # as 1/4 to 1
    [0.2, 0.8]
    """

    needs: ClassVar[Needs] = Needs.LOSSES | Needs.GRAMIAN | Needs.REPRESENTATION

r"""MGDA-UB: MGDA on the gradients of the shared representation, which bound those of the parameters.

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
from typing import ClassVar

from torch import Tensor

from taskmix.weighting._mgda import (
    Normalization,
    check_normalization,
    normalized,
    shortest_combination,
)
from taskmix.weighting._weighting import Balance, Needs


@dataclass(frozen=True, kw_only=True)
class MGDAUB:
    """Weights of the shortest convex combination of the representation's gradients; no state.

    >>> products = torch.tensor([[4.0, 0.0], [0.0, 1.0]])  # of the representation's gradients
    >>> weights = MGDAUB().balance(None, torch.ones(2), products).weights
    >>> [round(weight, 4) for weight in weights.tolist()]  # as 1/4 to 1
    [0.2, 0.8]
    """

    needs: ClassVar[Needs] = Needs.LOSSES | Needs.GRAMIAN | Needs.REPRESENTATION

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

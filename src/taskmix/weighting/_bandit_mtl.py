r"""BanditMTL: tasks with larger losses count for more, as far as a ball around equal weights allows.

    Mao, Wang, Liu, Lin and Hu, "BanditMTL: Bandit-based Multi-task Learning for Text
    Classification", ACL 2021, Eqs. 5 to 7 and Algorithms 1 and 2.

The mean loss plus the root of the variance between the tasks' losses is, to first order, the
largest weighted loss over all $p$ with $\mathrm{KL}(p \| \mathrm{uniform}) \le \rho$ (Eq. 4). One
player descends that loss in the model's parameters; the other climbs it in $p$ by mirror ascent:

    $q_t = p_t \exp(\eta_p \hat L_t)$,    $p_t \propto q_t^{1/(1+\lambda)}$,    $\lambda \ge 0$,

with $\lambda = 0$ where that stays inside the ball, and the root of Eq. 7 where it does not.

Symbols: $\rho$ is `radius`, $\eta_p$ is `step_size`, $T$ is `len(losses)`, $\log p$ is
`log_probabilities`; the root is found in $b = 1/(1+\lambda)$, in which KL rises from 0.

Cost: that of the plain step; one backward pass of the weighted sum, and T numbers of state.

Departures and decisions:
- Weights are $T p_t$; the paper descends $\frac1T \sum p_t L_t$, which is $T^2$ times smaller and
  would shrink the step with the number of tasks.
- The paper assumes losses in [0, 1] and trains on cross-entropies, which are not. `large_losses`
  says what is done: "as_is" takes them as they are (Eq. 6 to the letter; the ball bounds what they
  can do), "clip" replaces what is above 1 by 1, "scale" divides all by the largest if that is
  above 1.
- Eq. 7's root by Newton's method within a bracket: the result of Algorithm 2 in a few steps.
- The paper writes $\hat L_t$ for the loss over the whole training set, a batch has a noisy one:
  `smoothing` takes the running mean of the losses, 0 the batch's.
- A task without a loss in a step moves as if it had the mean loss of the others.
- KL never exceeds $\log T$: a `radius` above that (1.2 for 3 tasks) never binds.

Scale: larger losses move the weights further (not with "scale", once the largest is above 1).
Shift: none under "as_is", since a constant added to all losses cancels.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from taskmix.errors import OptionError
from taskmix.weighting._scale import LOG_FLOOR, softmax_of_present, times_tasks
from taskmix.weighting._weighting import Needs


@dataclass(frozen=True)
class BanditMTLState:
    log_probabilities: Tensor  # [task], float64 on the CPU
    mean_losses: Tensor  # [task], running means; only read where `smoothing` is above 0
    seen: Tensor  # [task], whether the task has had a loss


@dataclass(frozen=True, kw_only=True)
class BanditMTL:
    """Weights T·p, with p in the ball KL(p‖uniform) <= `radius`."""

    needs: ClassVar[Needs] = Needs.LOSSES | Needs.HOST

    radius: float = 1.2
    step_size: float = 0.5
    large_losses: Literal["as_is", "clip", "scale"] = "as_is"
    smoothing: float = 0.0  # how much of the running mean loss is kept in a step

    def __post_init__(self) -> None:
        if not (self.radius > 0 and self.step_size > 0):
            raise OptionError(
                "`radius` and `step_size` should be above 0. Found "
                f"{self.radius} and {self.step_size}. The paper has 1.2 and 0.5."
            )
        if self.large_losses not in ("as_is", "clip", "scale"):
            raise OptionError(
                f'`large_losses` should be "as_is", "clip" or "scale". Found {self.large_losses!r}.'
            )
        if not 0 <= self.smoothing < 1:
            raise OptionError(
                f"`smoothing` should be at least 0 and below 1. Found {self.smoothing}."
            )

    def init(self, losses: Tensor) -> BanditMTLState:
        count = len(losses)
        return BanditMTLState(
            log_probabilities=torch.full((count,), -math.log(count), dtype=torch.float64),
            mean_losses=torch.zeros(count, dtype=torch.float64),
            seen=torch.zeros(count, dtype=torch.bool),
        )

    def weigh(self, state: BanditMTLState, losses: Tensor, present: Tensor | None = None) -> Tensor:
        shares = softmax_of_present(state.log_probabilities, present)
        return times_tasks(shares, present).to(losses.device, losses.dtype)

    def update(
        self, state: BanditMTLState, losses: Tensor, present: Tensor | None = None
    ) -> BanditMTLState:
        values = losses.detach().to("cpu", torch.float64).numpy()
        log_p = state.log_probabilities.numpy()
        means, seen = state.mean_losses, state.seen
        if self.smoothing:
            values, means, seen = self._smooth(state, values, present)
        if self.large_losses == "clip":
            values = np.minimum(values, 1.0)
        elif self.large_losses == "scale":
            largest = float(values.max() if present is None else values[present.numpy()].max())
            values = values / max(1.0, largest)
        if present is not None:
            here = present.numpy()
            shares = np.exp(log_p[here] - log_p[here].max())
            values = np.where(here, values, values[here] @ shares / shares.sum())
        log_p = project_onto_ball(log_p + self.step_size * values, self.radius)
        return BanditMTLState(torch.from_numpy(np.maximum(log_p, LOG_FLOOR)), means, seen)

    def _smooth(
        self, state: BanditMTLState, values: NDArray[np.float64], present: Tensor | None
    ) -> tuple[NDArray[np.float64], Tensor, Tensor]:
        """The running means with these losses in them."""
        here = np.ones(len(values), dtype=bool) if present is None else present.numpy()
        known, old = state.seen.numpy(), state.mean_losses.numpy()
        new = np.where(known, self.smoothing * old + (1 - self.smoothing) * values, values)
        means = np.where(here, new, old)
        return means, torch.from_numpy(means), torch.from_numpy(known | here)


def project_onto_ball(
    log_q: NDArray[np.float64],  # [task], up to a constant
    radius: float,
) -> NDArray[np.float64]:
    """The logarithm of the p nearest to q, in relative entropy, with KL(p‖uniform) <= `radius`.

    Exponents are at most 0, so that no loss is too large.
    """
    z = log_q - log_q.max()
    shares = np.exp(z)
    total = float(shares.sum())
    log_count = math.log(len(z))
    if float(shares @ z) / total - math.log(total) + log_count <= radius:
        return np.asarray(z - math.log(total))
    # With z = spread * y and y in [-1, 0], the root in b = spread / (1 + λ) is of order one, however
    # large the losses. KL is about b² Var(y) / 2 there: its square root is nearly a line, and
    # Newton's method on that needs three or four steps.
    spread = -float(z.min())
    y = z / spread
    low, high = 0.0, spread
    b = min(spread, math.sqrt(2 * radius / float(y.var())))
    log_total = 0.0
    for _ in range(200):
        shares = np.exp(b * y)
        total = float(shares.sum())
        log_total = math.log(total)
        mean = float(shares @ y) / total
        divergence = b * mean - log_total + log_count
        if abs(divergence - radius) <= 1e-13 * max(1.0, radius) or high - low <= 1e-15 * high:
            break
        if divergence > radius:
            high = b
        else:
            low = b
        variance = float(shares @ (y - mean) ** 2) / total
        root = math.sqrt(max(divergence, 0.0))
        slope = b * variance
        step = 2 * root * (root - math.sqrt(radius)) / slope if slope > 0 else math.inf
        b -= step
        if not low < b < high:  # out of the bracket: its middle, on the scale of its size
            b = math.sqrt(low) * math.sqrt(high) if low > 0 else high / 2
    return np.asarray(b * y - log_total)

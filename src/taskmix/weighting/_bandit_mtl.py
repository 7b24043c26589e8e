r"""BanditMTL: tasks with larger losses count for more, as far as a ball around equal weights allows.

    Mao, Wang, Liu, Lin and Hu, "BanditMTL: Bandit-based Multi-task Learning for Text
    Classification", ACL 2021, Eqs. 5 to 7 and Algorithms 1 and 2.

The mean loss plus the root of the variance between the tasks' losses is, to first order, the
largest weighted loss over all $p$ with $\mathrm{KL}(p \| \mathrm{uniform}) \le \rho$ (Eq. 4). One
player descends that loss in the model's parameters; the other climbs it in $p$ by mirror ascent:

    $q_t = p_t \exp(\eta_p \hat L_t)$,    $p_t \propto q_t^{1/(1+\lambda)}$,    $\lambda \ge 0$,

with $\lambda = 0$ where that stays inside the ball, and the root of Eq. 7 where it does not.

Symbols: $\rho$ is `radius`, $\eta_p$ is `step_size`, $T$ is `len(losses)`, $p$ is `probabilities`; the
root is found in $b = 1/(1+\lambda)$, in which KL rises from 0.

Cost: that of the plain step; one backward pass of the weighted sum, and T numbers of state.

Departures and decisions:
- Weights are $T p_t$; the paper descends $\frac1T \sum p_t L_t$, which is $T^2$ times smaller and
  would shrink the step with the number of tasks.
- The paper assumes losses in [0, 1] and trains on cross-entropies, which are not. `large_losses`
  says what is done: "as_is" takes them as they are (Eq. 6 to the letter; the ball bounds what they
  can do), "clip" replaces what is above 1 by 1, "scale" divides all by the largest if that is
  above 1.
- Eq. 7's root by Halley's method within a bracket: the result of Algorithm 2 in a few steps.
- The paper writes $\hat L_t$ for the loss over the whole training set, a batch has a noisy one:
  `smoothing` takes the running mean of the losses, 0 the batch's.
- A task without a loss in a step moves as if it had the mean loss of the others.
- KL never exceeds $\log T$: a `radius` above that (1.2 for 3 tasks) never binds.

Scale: larger losses move the weights further (not with "scale", once the largest is above 1).
Shift: none under "as_is", since a constant added to all losses cancels.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from operator import mul
from typing import ClassVar, Literal

import torch
from torch import Tensor

from taskmix.errors import OptionError
from taskmix.weighting._scale import weights_of
from taskmix.weighting._weighting import Needs, registered

SMALLEST_PROBABILITY = (
    1e-300  # above 0: a task whose share has all but vanished can still come back
)


@dataclass(frozen=True)
class BanditMTLState:
    """The weights that the bandit plays, and what it remembers of the losses.

    >>> BanditMTL().init(torch.tensor([0.3, 0.7])).probabilities.tolist()
    [0.5, 0.5]
    """

    probabilities: Tensor  # [task], float64 on the CPU
    mean_losses: Tensor  # [task], running means; only kept where `smoothing` is above 0
    seen: Tensor  # [task], whether the task has had a loss; only kept there as well


@registered("bandit", scale="counts", shift="ignored")
@dataclass(frozen=True, kw_only=True)
class BanditMTL:
    """Weights T·p, with p in the ball KL(p‖uniform) <= `radius`.

    >>> method, losses = BanditMTL(step_size=1.0), torch.log(torch.tensor([1.0, 3.0]))
    >>> state = method.update(method.init(losses), losses)  # q is 1/2 and 3/2
    >>> [round(weight, 4) for weight in method.weigh(state, losses).tolist()]
    [0.5, 1.5]
    """

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
            probabilities=torch.full((count,), 1 / count, dtype=torch.float64),
            mean_losses=torch.zeros(count, dtype=torch.float64),
            seen=torch.zeros(count, dtype=torch.bool),
        )

    def weigh(self, state: BanditMTLState, losses: Tensor, present: Tensor | None = None) -> Tensor:
        return weights_of(state.probabilities.tolist(), losses, present)  # Eq. 8, times T²

    def update(
        self, state: BanditMTLState, losses: Tensor, present: Tensor | None = None
    ) -> BanditMTLState:
        # Lists of floats: for tens of tasks they are faster than any array library's calls.
        values: list[float] = losses.tolist()
        here = [True] * len(values) if present is None else present.tolist()
        means, seen = state.mean_losses, state.seen
        if self.smoothing:
            means, seen = self._smooth(state, values, here)
            values = means.tolist()
        if self.large_losses == "clip":
            values = [min(value, 1.0) for value in values]
        elif self.large_losses == "scale":
            largest = max(value for value, there in zip(values, here, strict=True) if there)
            values = [value / max(1.0, largest) for value in values]
        shares: list[float] = state.probabilities.tolist()
        if present is not None:
            values = _as_the_others_do(values, shares, here)
        rate = self.step_size
        # log q of Eq. 11; Eq. 6 takes its power 1/(1+λ), which keeps p inside the ball.
        log_q = [math.log(p) + rate * value for p, value in zip(shares, values, strict=True)]
        log_p = project_onto_ball(log_q, self.radius)
        probabilities = [max(math.exp(value), SMALLEST_PROBABILITY) for value in log_p]
        return BanditMTLState(torch.tensor(probabilities, dtype=torch.float64), means, seen)

    def _smooth(
        self, state: BanditMTLState, values: list[float], here: list[bool]
    ) -> tuple[Tensor, Tensor]:
        """The running means with these losses in them, and who has had one."""
        there = torch.tensor(here)
        now = torch.tensor(values, dtype=torch.float64)
        moved = torch.where(state.seen, state.mean_losses.lerp(now, 1 - self.smoothing), now)
        return torch.where(there, moved, state.mean_losses), state.seen | there


def _as_the_others_do(values: list[float], shares: list[float], here: list[bool]) -> list[float]:
    """The values, and for a task without one the mean of the others', by their shares."""
    total = sum(share for share, there in zip(shares, here, strict=True) if there)
    triples = zip(values, shares, here, strict=True)
    mean = sum(value * share / total for value, share, there in triples if there)
    return [value if there else mean for value, there in zip(values, here, strict=True)]


def project_onto_ball(
    log_q: Sequence[float],  # [task], up to a constant
    radius: float,
) -> list[float]:
    """log p of Eq. 6: the p nearest to q, in relative entropy, with KL(p‖uniform) <= `radius`.

    Exponents are at most 0, so that no loss is too large.
    """
    top = max(log_q)
    z = [value - top for value in log_q]
    shares = list(map(math.exp, z))
    total = sum(shares)
    log_total = math.log(total)
    log_count = math.log(len(z))
    # f(0) <= 0 in Eq. 7: the first line of Algorithm 2.
    if sum(map(mul, shares, z)) / total - log_total + log_count <= radius:
        return [value - log_total for value in z]
    # With z = spread * y and y in [-1, 0], the root in b = spread / (1 + λ) is of order one, however
    # large the losses. KL is about b² Var(y) / 2 there: the root of 2 KL is nearly a line in b, and
    # Halley's method on it needs two or three steps. All it asks for are sums of powers.
    spread = -min(z)
    y = [value / spread for value in z]
    squares = list(map(mul, y, y))
    cubes = list(map(mul, squares, y))
    goal = math.sqrt(2 * radius)
    low, high = 0.0, spread
    mean = sum(y) / len(y)
    deviation = math.sqrt(max(sum(squares) / len(y) - mean * mean, 1e-300))
    b = min(spread, goal / deviation)
    for _ in range(200):
        shares = [math.exp(b * value) for value in y]
        total = sum(shares)
        log_total = math.log(total)
        first = sum(map(mul, shares, y)) / total
        divergence = b * first - log_total + log_count  # f(λ) + ρ of Eq. 7
        if abs(divergence - radius) <= 1e-12 * max(1.0, radius) or high - low <= 1e-15 * high:
            break
        low, high = (low, b) if divergence > radius else (b, high)
        second = sum(map(mul, shares, squares)) / total
        third = sum(map(mul, shares, cubes)) / total
        b = _halley(b, divergence, goal, first, second, third)
        if not low < b < high:  # out of the bracket: its middle, on the scale of its size
            b = math.sqrt(low) * math.sqrt(high) if low > 0 else high / 2
    return [b * value - log_total for value in y]  # Eq. 6


def _halley(
    b: float, divergence: float, goal: float, first: float, second: float, third: float
) -> float:
    """The next b on the way to root(2 KL) = `goal`, from KL at b and the moments of y; NaN if none.

    KL' = b Var(y) and KL'' = Var(y) + b κ₃(y) under the tilted distribution.
    """
    variance = second - first * first
    if divergence <= 0 or variance <= 0:
        return math.nan
    skew = third - 3 * first * second + 2 * first**3
    height = math.sqrt(2 * divergence)
    slope = b * variance / height
    bend = (variance + b * skew) / height - slope * slope / height
    miss = height - goal
    scale = 2 * slope * slope - miss * bend
    return b - 2 * miss * slope / scale if scale > 0 else math.nan

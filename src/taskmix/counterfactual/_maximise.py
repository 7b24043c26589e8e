r"""The softmax policy of largest estimated value plus entropy, exactly and by evolution.

    Glover and Hokamp, "Task Selection Policies for Multitask Learning", 2019, Eqs. 12 to 14.

The paper's $\hat V_{WIS}$ is `weighted_importance_sampling`, its $\lambda$ is `entropy`, its $\omega$
are the logarithms of `probabilities`.

**The exact method.** With $S = \sum_k p_k B_k$ and $V = \sum_k p_k A_k / S$ the objective is
$F(p) = V + \lambda H(p)$. Its gradient in p is $\lambda(\ell_k - \log p_k)$ plus a constant, with

$$\ell_k = (A_k - V B_k) / (\lambda S), \qquad \sum_k p_k \ell_k = 0,$$

so the optimum is a fixed point of $p \mapsto \mathrm{softmax}(\ell)$. The step
$\log p \leftarrow (1-\gamma)\log p + \gamma\ell$, renormalised, is mirror ascent: along it F rises
at the rate $\lambda\,\mathrm{Var}_p(\ell - \log p) \ge 0$, which is zero at stationary points only.
So with γ halved whenever F would fall, every step ascends and the limit is stationary; γ = 1, the
plain fixed point, is what is nearly always taken.

**When the limit is the maximum.** In a direction $v_k = p_k g_k$ with $E_p g = 0$ the second
derivative of F is $-\lambda\,\mathrm{Var}(g) - 2\lambda\,\mathrm{Cov}(\ell, g)\,\mathrm{Cov}(B, g)/S$,
so F is strictly concave wherever `curvature` $= 2\,\mathrm{sd}_p(\ell)\,\mathrm{sd}_p(B)/S$ is below
1; the same number bounds the spectral radius of the fixed point's derivative, which is its rate.
$B_k/T$ is 1 up to noise in a sound log, so the number is a few hundredths. With
$\rho = \max B / \min B$ and R the range of A/B, $\rho(\rho-1)R/\lambda < 2$ makes F concave over the
whole simplex, and the maximum the only stationary point; where that fails, the ascent starts from
the best single task as well, and the better of the two limits is kept.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from taskmix.counterfactual._statistics import LogStatistics
from taskmix.errors import OptionError
from taskmix.extras import load
from taskmix.numerics import entropy as entropy_of
from taskmix.numerics import log_softmax, softmax

TOLERANCE = 1e-12  # of every probability, at which the ascent stops
MOST_STEPS = 2000  # of the ascent; tens are usual, and a curvature near 1 takes more


@dataclass(frozen=True, slots=True)
class Maximum:
    """Policies that maximise Eq. 14."""

    probabilities: NDArray[np.float64]  # [..., task]
    objective: NDArray[np.float64]  # [...], the value of Eq. 14 there
    curvature: NDArray[np.float64]  # [...], below 1 where F is strictly concave at the policy
    steps: int  # of the ascent, or generations of the search


def maximise(
    statistics: LogStatistics,  # [..., task]
    entropy: ArrayLike,  # [...], λ; zero puts everything on the best task
) -> Maximum:
    """Eq. 14 by the fixed point above; leading axes of both arguments broadcast.

    >>> log = sum_log([0, 1], [0.0, 1.0], [0.5, 0.5], task_count=2)
    >>> maximise(log, entropy=[0.0, 1.0, 100.0]).probabilities.round(4).tolist()
    [[0.0, 1.0], [0.2689, 0.7311], [0.4975, 0.5025]]
    """
    weight = _checked(entropy)[..., None]
    gains, weights = np.broadcast_arrays(statistics.reward, statistics.weight)
    shape = np.broadcast_shapes(gains.shape, weight.shape)
    gains, weights, weight = (np.broadcast_to(a, shape) for a in (gains, weights, weight))
    # Dividing A and B by the same number changes neither V nor ℓ, and keeps them in range.
    scale = weights.mean(axis=-1, keepdims=True)
    gains, weights = gains / scale, weights / scale

    means = gains / weights
    best = means == means.max(axis=-1, keepdims=True)
    corner = best / best.sum(axis=-1, keepdims=True)
    free = np.where(weight > 0, weight, 1.0)
    log_policy, steps = _ascend(gains, weights, free, np.full(shape, -np.log(shape[-1])))
    ratio = weights.max(axis=-1) / weights.min(axis=-1)
    spread = means.max(axis=-1) - means.min(axis=-1)
    if np.any(ratio * (ratio - 1) * spread >= 2 * free[..., 0]):
        start = log_softmax(_logits(gains, weights, free, corner))
        other, more = _ascend(gains, weights, free, start)
        better = _objective(gains, weights, free, other) > _objective(
            gains, weights, free, log_policy
        )
        log_policy = np.where(better[..., None], other, log_policy)
        steps += more
    probabilities = np.where(weight > 0, np.exp(log_policy), corner)
    return Maximum(
        probabilities,
        _value(gains, weights, probabilities) + weight[..., 0] * entropy_of(probabilities),
        _curvature(gains, weights, free, probabilities),
        steps,
    )


def maximise_by_cmaes(
    statistics: LogStatistics,  # [task]
    entropy: float,
    *,
    generator: np.random.Generator,
    generations: int = 50,
    population: int = 64,
    spread: float = 0.5,
) -> Maximum:
    """Eq. 14 by CMA-ES on the logits, as the paper does it (20 or 50 generations of 64).

    Needs the package `cmaes`. `maximise` finds the same policy, exactly and a thousand times faster.

    >>> log = sum_log([0, 1], [0.0, 1.0], [0.5, 0.5], task_count=2)
    >>> generator = np.random.default_rng(0)
    >>> found = maximise_by_cmaes(log, 1.0, generator=generator)  # doctest: +SKIP
    >>> found.probabilities.round(2).tolist()  # doctest: +SKIP
    [0.27, 0.73]
    """
    cmaes = load("cmaes", purpose="CMA-ES")
    weight = float(_checked(entropy))
    count = len(statistics.visits)
    if count == 1:
        return maximise(statistics, weight)
    optimizer = cmaes.CMA(
        mean=np.zeros(count),
        sigma=spread,
        population_size=population,
        seed=int(generator.integers(2**31)),
    )
    best, best_value = np.full(count, 1.0 / count), -np.inf
    for _ in range(generations):
        logits = np.stack([optimizer.ask() for _ in range(population)])
        policies = softmax(logits)  # Eq. 12
        values = _value(statistics.reward, statistics.weight, policies)
        values = values + weight * entropy_of(policies)
        if values.max() > best_value:
            best, best_value = policies[values.argmax()], float(values.max())
        optimizer.tell([(x, -float(v)) for x, v in zip(logits, values, strict=True)])
    free = np.asarray([weight if weight > 0 else 1.0])
    curvature = _curvature(statistics.reward, statistics.weight, free, best)
    return Maximum(best, np.asarray(best_value), curvature, generations)


def _ascend(
    gains: NDArray[np.float64],
    weights: NDArray[np.float64],
    weight: NDArray[np.float64],
    log_policy: NDArray[np.float64],
) -> tuple[NDArray[np.float64], int]:
    """Mirror ascent from `log_policy`, all rows until the last has arrived."""
    stride = np.ones((*log_policy.shape[:-1], 1))
    reached = _objective(gains, weights, weight, log_policy)
    for step in range(MOST_STEPS):
        target = log_softmax(_logits(gains, weights, weight, np.exp(log_policy)))
        apart = np.abs(np.exp(target) - np.exp(log_policy)).max(axis=-1)
        if np.all(apart < TOLERANCE):
            return log_policy, step
        proposal = log_softmax((1 - stride) * log_policy + stride * target)
        there = _objective(gains, weights, weight, proposal)
        # Near the top the rise is smaller than rounding; falling by so little is no fall.
        rises = (there >= reached - 1e-14 * np.abs(reached))[..., None]
        log_policy = np.where(rises, proposal, log_policy)
        reached = np.where(rises[..., 0], there, reached)
        stride = np.where(rises, np.minimum(1.0, 2 * stride), stride / 2)
    return log_policy, MOST_STEPS


def _value(
    gains: NDArray[np.float64], weights: NDArray[np.float64], policy: NDArray[np.float64]
) -> NDArray[np.float64]:
    return np.asarray((policy * gains).sum(axis=-1) / (policy * weights).sum(axis=-1))  # Eq. 11


def _objective(
    gains: NDArray[np.float64],
    weights: NDArray[np.float64],
    weight: NDArray[np.float64],
    log_policy: NDArray[np.float64],
) -> NDArray[np.float64]:
    policy = np.exp(log_policy)
    entropies = -(policy * log_policy).sum(axis=-1)
    return np.asarray(_value(gains, weights, policy) + weight[..., 0] * entropies)  # Eq. 14


def _logits(
    gains: NDArray[np.float64],
    weights: NDArray[np.float64],
    weight: NDArray[np.float64],
    policy: NDArray[np.float64],
) -> NDArray[np.float64]:
    total = (policy * weights).sum(axis=-1, keepdims=True)
    value = (policy * gains).sum(axis=-1, keepdims=True) / total
    return np.asarray((gains - value * weights) / (weight * total))


def _curvature(
    gains: NDArray[np.float64],
    weights: NDArray[np.float64],
    weight: NDArray[np.float64],
    policy: NDArray[np.float64],
) -> NDArray[np.float64]:
    logits = _logits(gains, weights, weight, policy)
    total = (policy * weights).sum(axis=-1)
    spread_logits = np.sqrt((policy * logits**2).sum(axis=-1))  # their mean is zero
    spread_weights = np.sqrt((policy * (weights - total[..., None]) ** 2).sum(axis=-1))
    return np.asarray(2 * spread_logits * spread_weights / total)


def _checked(entropy: ArrayLike) -> NDArray[np.float64]:
    weight = np.asarray(entropy, dtype=np.float64)
    if not np.all(np.isfinite(weight) & (weight >= 0)):
        raise OptionError(
            f"`entropy` should be a number of at least zero. Found {weight.tolist()}."
        )
    return weight

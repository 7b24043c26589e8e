"""The E-step of the mixture as compiled loops: γ and φ of one task after another.

`local[k, j]` is P_k of a task's entry j, generator by generator, so that the loops over entries are
those of which the processor does several steps at once.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from taskmix.sequences._generator import kernel

Floats = NDArray[np.float64]
_VANISHED = 1e-280  # below it a quotient may overflow: what falls below is done again in logarithms


@kernel
def digamma(x: float) -> float:
    """Eight steps of the recurrence, in pairs that leave two divisions, then the asymptotic series."""
    p = x * (x + 7)
    inner = (2 * p + 6) / (p * (p + 6)) + (2 * p + 22) / ((p + 10) * (p + 12))
    shift = (2 * x + 7) * inner
    y = x + 8
    f = 1 / (y * y)
    series = f * (1 / 12 - f * (1 / 120 - f * (1 / 252 - f * (1 / 240 - f / 132))))
    return math.log(y) - 0.5 / y - series - shift


@kernel
def _expected_logs(gamma: Floats, temper: float, logs: Floats, shares: Floats) -> None:
    """E[log θ] minus its largest, and the exponential of that."""
    highest = -math.inf
    for k in range(len(gamma)):
        logs[k] = digamma(gamma[k])
    for k in range(len(gamma)):
        highest = max(highest, logs[k])
    for k in range(len(gamma)):
        logs[k] -= highest
        shares[k] = math.exp(temper * logs[k])


@kernel
def _settle(
    local: Floats,
    weight: Floats,
    alpha: Floats,
    gamma: Floats,
    temper: float,
    iterations: int,
    tolerance: float,
    logs: Floats,
    shares: Floats,
    totals: Floats,
) -> bool:
    """Eqs. 11 and 12 in turn until γ rests; False where the total of an entry vanished."""
    generators, entries = len(alpha), len(weight)
    for _ in range(iterations):
        _expected_logs(gamma, temper, logs, shares)
        for j in range(entries):
            totals[j] = 0.0
        for k in range(generators):
            share = shares[k]
            for j in range(entries):
                totals[j] += local[k, j] * share
        for j in range(entries):
            totals[j] = weight[j] / totals[j]  # what normalises φ of Eq. 11, times the weight
        change = 0.0
        for k in range(generators):
            count = 0.0
            for j in range(entries):
                count += totals[j] * local[k, j]
            new = alpha[k] + count * shares[k]  # Eq. 12
            change += abs(new - gamma[k])
            gamma[k] = new
        if not change < math.inf:
            return False
        if change < tolerance:
            break
    return True


@kernel
def _finish(
    local: Floats,
    peak: Floats,
    item: NDArray[np.int64],
    weight: Floats,
    alpha: Floats,
    gamma: Floats,
    temper: float,
    cut: float,
    logs: Floats,
    shares: Floats,
    totals: Floats,
    kept: Floats,
) -> float:
    """φ of this γ without its negligible parts, the γ that follows, and their bound (L of Eq. 5).

    Leaves in `totals` the total of each entry, and in `kept` its weight over what of it is kept.
    """
    generators, entries = len(alpha), len(weight)
    _expected_logs(gamma, temper, logs, shares)
    for j in range(entries):
        totals[j] = 0.0
        kept[j] = 0.0
    for k in range(generators):
        share = shares[k]
        for j in range(entries):
            totals[j] += local[k, j] * share
    for k in range(generators):
        share = shares[k]
        for j in range(entries):
            part = local[k, j] * share
            kept[j] += part if part >= cut * totals[j] else 0.0
    bound = 0.0
    for j in range(entries):
        if not kept[j] >= _VANISHED:
            return -math.inf
        bound += weight[j] * (peak[item[j]] + math.log(kept[j]))
        kept[j] = weight[j] / kept[j]
    mass, prior_mass = 0.0, 0.0
    for k in range(generators):
        share = shares[k]
        count = 0.0
        for j in range(entries):
            part = local[k, j] * share
            count += kept[j] * part if part >= cut * totals[j] else 0.0
        gamma[k] = alpha[k] + count
        bound += math.lgamma(gamma[k]) - math.lgamma(alpha[k]) - count * logs[k]
        mass += gamma[k]
        prior_mass += alpha[k]
    return bound + math.lgamma(prior_mass) - math.lgamma(mass)


@kernel
def _hand_out(
    local: Floats,
    item: NDArray[np.int64],
    cut: float,
    shares: Floats,
    totals: Floats,
    kept: Floats,
    responsibility: Floats,
) -> None:
    """Adds weight · φ as `_finish` left it."""
    for j in range(len(item)):
        row = responsibility[item[j]]
        for k in range(len(shares)):
            part = local[k, j] * shares[k]
            if part >= cut * totals[j]:
                row[k] += kept[j] * part


@kernel
def settle_tasks(
    item: NDArray[np.int64],
    weight: Floats,
    starts: NDArray[np.int64],
    mixture: Floats,
    peak: Floats,
    priors: Floats,
    gamma: Floats,
    continued: bool,
    temper: float,
    iterations: int,
    tolerance: float,
    cut: float,
    responsibility: Floats,
    bounds: Floats,
) -> None:
    """Writes γ, adds φ to `responsibility` and writes the bound of each task, NaN where it failed.

    `priors` are one α for each task, or one for all.
    """
    generators = priors.shape[1]
    longest = 0
    for t in range(len(starts) - 1):
        longest = max(longest, starts[t + 1] - starts[t])
    buffer = np.empty(generators * longest)
    totals, kept = np.empty(longest), np.empty(longest)
    logs, shares = np.empty(generators), np.empty(generators)
    for t in range(len(starts) - 1):
        low, high = starts[t], starts[t + 1]
        entries = high - low
        alpha = priors[t if len(priors) > 1 else 0]
        local = buffer[: generators * entries].reshape((generators, entries))
        total = 0.0
        for j in range(entries):
            total += weight[low + j]
            for k in range(generators):
                local[k, j] = mixture[item[low + j], k]
        resting = tolerance * total
        items, weights = item[low:high], weight[low:high]
        old, done = -math.inf, True
        again = gamma[t].copy()
        if continued:
            done = _settle(
                local, weights, alpha, again, temper, iterations, resting, logs, shares, totals
            )
            start = again.copy()
            old = _finish(
                local, peak, items, weights, alpha, again, temper, cut, logs, shares, totals, kept
            )
        fresh = alpha + total / generators
        done &= _settle(
            local, weights, alpha, fresh, temper, iterations, resting, logs, shares, totals
        )
        bounds[t] = _finish(
            local, peak, items, weights, alpha, fresh, temper, cut, logs, shares, totals, kept
        )
        if old > bounds[t]:
            fresh = start
            bounds[t] = _finish(
                local, peak, items, weights, alpha, fresh, temper, cut, logs, shares, totals, kept
            )
        if not done:
            bounds[t] = np.nan
            continue
        gamma[t] = fresh
        _hand_out(local, items, cut, shares, totals, kept, responsibility)

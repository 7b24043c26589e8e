"""How strongly each level of back-off holds: what foresees sequences best that were left out.

The counts are those without the sequence itself (`Chains.leave_out`), so that no sequence is foreseen
from itself. The gradient is exact; the priors on strengths and discounts are so wide that they matter
only where nothing else speaks.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, logit

from taskmix.sequences._counted._chains import Counted, Strengths
from taskmix.sequences._generator import Floats

_LEAST = 1e-300
# Log-strengths, and log-odds of discounts and of the outside parent: mean and spread of their priors.
_CENTRES = (np.log(4.0), logit(0.4), logit(0.4))
_SPREADS = (2.0, 2.0, 2.0)


def backed_off_steps(counted: Counted, outside: Floats, held: Strengths) -> Floats:
    """[transition], its probability by the longest contexts; `outside` is that by Q."""
    found = outside
    for place in range(len(counted.times)):
        found, _, _ = _step(counted, outside, held, place, found)
    return np.asarray(found)


def learn_strengths(
    counted: Counted,
    outside: Floats,
    weight: Floats,
    *,
    plain_top: bool = False,  # no discount at the top, whose counts will be fractions
    mixed: bool = True,  # whether Q is a parent of every level, or of the lowest alone
    iterations: int = 60,
) -> Strengths:
    """The most likely strengths, discounts and parts of the outside."""
    count = len(counted.times)
    free = np.ones((3, count), np.bool_)
    free[1, -1] = not plain_top
    free[2] = mixed
    free[2, 0] = False  # Q is its only parent
    values = np.repeat(np.array(_CENTRES)[:, None], count, axis=1)

    def level(free_values: Floats) -> tuple[float, Floats]:
        values[free] = free_values
        held = _held(values, free)
        steps, found = [], outside
        for place in range(count):
            found, kept, base = _step(counted, outside, held, place, found)
            steps.append((kept, base))
        safe = np.maximum(found, _LEAST)
        value = float(weight @ np.log(safe))
        slope = np.zeros((3, count))
        pull = weight / safe
        for place in reversed(range(count)):
            kept, base = steps[place]
            strength, discount = held.strength[place], held.discount[place]
            outer = held.outside[place]
            total = counted.totals[place] + strength
            share = (strength + discount * counted.kinds[place]) / total
            below = steps[place - 1] if place else None
            slope[0, place] = pull @ ((base * (1 - share) - kept) / total) * strength
            ones = np.minimum(counted.times[place], 1.0)
            change = (counted.kinds[place] * base - ones) / total
            slope[1, place] = pull @ change * discount * (1 - discount)
            if below is not None:
                lower = _probability(counted, held, place - 1, *below)
                slope[2, place] = pull @ (share * (outside - lower)) * outer * (1 - outer)
                pull = pull * share * (1 - outer)
        centred = (values - np.array(_CENTRES)[:, None]) / np.array(_SPREADS)[:, None] ** 2
        spread = np.array(_SPREADS)[:, None]
        prior = -0.5 * (((values - np.array(_CENTRES)[:, None]) / spread) ** 2)[free].sum()
        return -(value + prior), -(slope - centred)[free]

    found = minimize(
        level, values[free], jac=True, method="L-BFGS-B", bounds=[(-12.0, 12.0)] * int(free.sum()),
        options={"maxiter": iterations},
    )  # fmt: skip
    values[free] = found.x
    return _held(values, free)


def _held(values: Floats, free: np.ndarray) -> Strengths:
    shares = np.where(free[1:], expit(values[1:]), 0.0)
    return Strengths(
        tuple(np.exp(values[0]).tolist()), tuple(shares[0].tolist()), tuple(shares[1].tolist())
    )


def _step(
    counted: Counted, outside: Floats, held: Strengths, place: int, found: Floats
) -> tuple[Floats, Floats, Floats]:
    """The probability of one level more, the part of the counts in it and what it backs off to."""
    discount, outer = held.discount[place], held.outside[place]
    base = (1 - outer) * found + outer * outside
    times = counted.times[place]
    kept = times - discount * np.minimum(times, 1.0)
    kept = kept / np.maximum(counted.totals[place] + held.strength[place], _LEAST)
    return _probability(counted, held, place, kept, base), kept, base


def _probability(
    counted: Counted, held: Strengths, place: int, kept: Floats, base: Floats
) -> Floats:
    strength = held.strength[place]
    spread = strength + held.discount[place] * counted.kinds[place]
    return np.asarray(kept + spread / np.maximum(counted.totals[place] + strength, _LEAST) * base)

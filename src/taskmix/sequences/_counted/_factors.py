r"""How strongly several generators are held to one prior: by their marginal likelihood.

    Minka, "Estimating a Dirichlet distribution", 2000, section 3.

The strength that a pool of all sequences asks for says how well shorter contexts predict. How much
generators differ from each other it cannot say: held that strongly, few observations of each pull all
of them towards one another. With the counts n of generator k after context c, prior means m and
strengths $\lambda_c$, the factor f of all strengths maximises

$\sum_{kc} \log\Gamma(f\lambda_c) - \log\Gamma(f\lambda_c + n_{kc}) +
\sum_s \log\Gamma(f\lambda_c m_{cs} + n_{kcs}) - \log\Gamma(f\lambda_c m_{cs})$.

Prior means have in them what these very generators count (`_backoff.py`), so that the maximum lies too
high where generators hardly differ: the strength of the pool is never exceeded.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import gammaln

from taskmix.sequences._generator import Floats

_LEAST = 1e-3  # counts below are left out: shares of sequences that are hardly a generator's
_ENOUGH = 50_000  # counts say as much as all of them
_LOWEST = -4.0  # the logarithm of the smallest factor


def learn_factor(
    counts: Floats,  # [generator, context, symbol]
    prior: Floats,  # [context, symbol]
    strength: Floats,  # [context]
) -> float:
    """What all strengths should be multiplied by, at most 1.

    >>> alike, apart = np.array([[[50.0, 50.0]]] * 2), np.array([[[99.0, 1.0]], [[1.0, 99.0]]])
    >>> prior, strength = np.array([[0.5, 0.5]]), np.array([4.0])
    >>> learn_factor(alike, prior, strength), round(learn_factor(apart, prior, strength), 2)
    (1.0, 0.15)
    """
    seen = (counts > _LEAST) & (prior > 0)
    step = -(-int(seen.sum()) // _ENOUGH)
    if step > 1:
        chosen = np.arange(counts.shape[1]) % step == 0
        counts, prior, strength, seen = (
            counts[:, chosen],
            prior[chosen],
            strength[chosen],
            seen[:, chosen],
        )
    _, context, symbol = np.nonzero(seen)
    if not len(context) or not (strength > 0).any():
        return 1.0
    base = strength[context] * prior[context, symbol]
    some, totals = counts[seen], np.where(seen, counts, 0.0).sum(axis=2)
    used = totals > 0
    whole = np.broadcast_to(strength, totals.shape)[used]
    totals = totals[used]

    def loss(place: float) -> float:
        factor = float(np.exp(place))
        rows = gammaln(factor * whole) - gammaln(factor * whole + totals)
        cells = gammaln(factor * base + some) - gammaln(factor * base)
        return -float(rows.sum() + cells.sum())

    found = minimize_scalar(loss, bounds=(_LOWEST, 0.0), method="bounded", options={"xatol": 0.01})
    return float(np.exp(found.x)) if found.fun < loss(0.0) else 1.0

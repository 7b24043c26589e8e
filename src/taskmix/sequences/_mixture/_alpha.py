r"""α of the Dirichlet prior by Newton's method in linear time.

    Blei, Ng and Jordan, "Latent Dirichlet Allocation", JMLR 2003, appendix A.2 and A.4.2: the "fast
    Newton-Raphson method" of Crawford and Pineau's M-step.

The part of the bound that has α in it is, for M tasks and $s_k = \sum_i E[\log\theta_{ik}]$,
$L(\alpha) = M(\log\Gamma(\sum\alpha) - \sum\log\Gamma(\alpha_k)) + \sum(\alpha_k - 1) s_k$. It is
concave, and its Hessian is diag(h) + 1z1ᵀ, whose inverse times a vector takes linear time. Steps are
halved until α is positive and L does not fall.
"""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln, polygamma, psi

from taskmix.sequences._generator import Floats

# One task alone, or tasks all alike, have no best α. Without these it runs away, until the gamma
# functions of the bound are no numbers any more.
LEAST, MOST = 1e-4, 1e4


def learn_alpha(
    alpha: Floats, gamma: Floats, *, symmetric: bool = False, iterations: int = 50
) -> Floats:
    """α that explains the tasks' γ [task, generator] at least as well as `alpha`.

    Tasks that are all alike are explained best by an α like their γ.

    >>> learn_alpha(np.ones(2), np.array([[5.0, 5.0], [5.0, 5.0]])).round(6)
    array([5., 5.])
    """
    if len(alpha) == 1:
        return alpha  # one generator has all sequences, whatever α is
    tasks = len(gamma)
    logs = (psi(gamma) - psi(gamma.sum(axis=1, keepdims=True))).sum(axis=0)
    if symmetric:
        logs = np.full_like(logs, logs.mean())  # equal parts then take equal steps
    value = _level(alpha, tasks, logs)
    for _ in range(iterations):
        gradient = tasks * (psi(alpha.sum()) - psi(alpha)) + logs  # A.4.2, ∂L/∂α
        diagonal = -tasks * polygamma(1, alpha)  # A.4.2: the Hessian is diag(h) + 1z1ᵀ, this is h
        corner = tasks * polygamma(1, alpha.sum())  # and this is z
        shift = (gradient / diagonal).sum() / (1 / corner + (1 / diagonal).sum())  # A.2, its c
        step = -(gradient - shift) / diagonal  # A.2: −H⁻¹g without H
        for halvings in range(30):
            trial = np.clip(alpha + step / 2**halvings, LEAST, MOST)
            level = _level(trial, tasks, logs)
            if level >= value:
                break
        else:
            return alpha
        rested = bool(np.abs(trial - alpha).max() < 1e-8 * alpha.max())
        alpha, value = trial, level
        if rested:
            break
    return alpha


def _level(alpha: Floats, tasks: int, logs: Floats) -> float:
    normaliser = gammaln(alpha.sum()) - gammaln(alpha).sum()
    return float(tasks * normaliser + ((alpha - 1) * logs).sum())

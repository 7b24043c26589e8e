r"""What tokens are worth that are read more than once.

    Muennighoff et al., "Scaling Data-Constrained Language Models", NeurIPS 2023, Eq. 5:
    $D' = U_D + U_D R^*_D (1 - e^{-R_D / R^*_D})$

`tokens` is their $D$, of which $U_D$ (`supply`) are unique, so $R_D = D / U_D - 1$ is how often they are
repeated. $R^*_D$ is `worth`: repetitions teach like that many passes of new text at the most, and the
next repetition still teaches 1/e after that many. They found 15.4 for English web text.
"""

from __future__ import annotations

import numpy as np

from taskmix.mixtures._table import Floats

PUBLISHED_WORTH = 15.4  # their fit over runs of up to 9 B parameters; 44 passes gain nothing more


def effective_tokens(tokens: Floats, supply: Floats, worth: float = PUBLISHED_WORTH) -> Floats:
    """How many new tokens teach as much as `tokens` of which only `supply` are different.

    A `worth` of 0 says that repeated tokens teach nothing, infinity that they teach like new ones.

    >>> effective_tokens(np.array([1.0, 4.0]), np.array([2.0, 2.0]), 15.4).round(3).tolist()
    [1.0, 3.936]
    """
    tokens, supply = np.broadcast_arrays(tokens, supply)
    if np.isinf(worth):
        return tokens.astype(np.float64)
    # A domain with nothing at hand teaches nothing, and has no number of passes to divide by.
    passes = np.divide(tokens, supply, out=np.zeros(tokens.shape), where=supply > 0)
    repeats = np.maximum(passes - 1, 0.0)
    gained = np.zeros_like(repeats) if worth == 0 else -worth * np.expm1(-repeats / worth)
    unlimited = np.isinf(supply)
    beyond = np.where(unlimited, 0.0, supply) * (1 + gained)
    return np.where(tokens <= supply, tokens, beyond)

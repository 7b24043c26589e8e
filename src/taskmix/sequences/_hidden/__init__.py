"""Hidden Markov models, learned by forward and backward passes over their states.

`_symbols` is `HiddenMarkov` and `_vectors` is `GaussianHiddenMarkov`. They share their states
(`_states`) and the passes (`_passes`), which are in plain NumPy, compiled (`_compiled`, imported
only where numba is) or on a device (`_device`).
"""

from taskmix.sequences._hidden._symbols import (
    HiddenMarkov,
    HiddenMarkovParameters,
    HiddenMarkovStatistics,
)
from taskmix.sequences._hidden._vectors import (
    GaussianHiddenMarkov,
    GaussianHiddenMarkovParameters,
    GaussianHiddenMarkovStatistics,
)

__all__ = [
    "GaussianHiddenMarkov",
    "GaussianHiddenMarkovParameters",
    "GaussianHiddenMarkovStatistics",
    "HiddenMarkov",
    "HiddenMarkovParameters",
    "HiddenMarkovStatistics",
]

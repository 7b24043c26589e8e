"""Linear dynamical systems, learned by the Kalman filter and smoother.

`_linear` is `LinearDynamics`; `_system` one system and its sums; `_passes` goes over whole
sequences, whose covariances (`_covariances`, and `_compiled` where numba is) are the same for all
of one length, and `_gaps` over a sequence with missing numbers, whose covariances are its own.
"""

from taskmix.sequences._dynamics._linear import LinearDynamics, LinearDynamicsParameters
from taskmix.sequences._dynamics._system import DynamicsStatistics

__all__ = [
    "DynamicsStatistics",
    "LinearDynamics",
    "LinearDynamicsParameters",
]

"""The mixture and how it is learned: variational EM, all at once or batch by batch.

`_bank` takes generators of several kinds as one; `_expectation` is the E-step (`_compiled` where
numba is), `_alpha` the prior's part of the M-step, `_em` the iteration over both and `_restarts`
the best of several starts; `_stochastic` and `_batches` learn from a part of the data at a time.
All of it is functions of states.
"""

from taskmix.sequences._mixture._alpha import learn_alpha
from taskmix.sequences._mixture._bank import Bank, make_bank
from taskmix.sequences._mixture._batches import BatchState, batch_states, source_states
from taskmix.sequences._mixture._em import SHORT, EMOptions, MixtureState, variational_em
from taskmix.sequences._mixture._expectation import Division, Settling, divide_sequences
from taskmix.sequences._mixture._restarts import FitState, fit_mixture, fit_states, result_of
from taskmix.sequences._mixture._stochastic import StochasticOptions, StochasticState, absorb, begin

__all__ = [
    "SHORT",
    "Bank",
    "BatchState",
    "Division",
    "EMOptions",
    "FitState",
    "MixtureState",
    "Settling",
    "StochasticOptions",
    "StochasticState",
    "absorb",
    "batch_states",
    "begin",
    "divide_sequences",
    "fit_mixture",
    "fit_states",
    "learn_alpha",
    "make_bank",
    "result_of",
    "source_states",
    "variational_em",
]

"""What a task has of its own beside the generators it shares.

`_chains` is for symbols: a task's own counts, backed off to what the shared generators foresee.
`_adapted` is for vectors: a task's own version of its main generator, as one more generator of it.
"""

from taskmix.sequences._own._adapted import (
    PSEUDO,
    AdaptedStrengths,
    OwnGenerators,
    adapt_generators,
    learn_weight,
    log_mixed,
    own_posterior,
)
from taskmix.sequences._own._chains import OwnChains, OwnStrengths, count_own, learn_own_strengths
from taskmix.sequences._own._traces import StepTrace, mixed_steps, rows_at_once, trace_sequences

Own = OwnChains | OwnGenerators

__all__ = [
    "PSEUDO",
    "AdaptedStrengths",
    "Own",
    "OwnChains",
    "OwnGenerators",
    "OwnStrengths",
    "StepTrace",
    "adapt_generators",
    "count_own",
    "learn_own_strengths",
    "learn_weight",
    "log_mixed",
    "mixed_steps",
    "own_posterior",
    "rows_at_once",
    "trace_sequences",
]

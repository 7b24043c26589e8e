"""Pure functions on arrays: log space, simplex, quantiles, intervals, power laws, trees of states."""

from taskmix.numerics._intervals import (
    Interval,
    check_level,
    mean_interval,
    normal_quantile,
    paired_interval,
    quantile_of_sorted,
    student_quantile,
)
from taskmix.numerics._isotonic import isotonic
from taskmix.numerics._mutual_information import (
    adjusted_mutual_information,
    expected_mutual_information,
)
from taskmix.numerics._power_law import (
    PowerLaw,
    PowerLawFit,
    PowerLawPrediction,
    fit_power_law,
    squares_by_power,
)
from taskmix.numerics._simplex import (
    as_distribution,
    entropy,
    log_softmax,
    log_sum_exp,
    mix_uniform,
    softmax,
)
from taskmix.numerics._state_trees import state_from_tree, state_to_tree

__all__ = [
    "Interval",
    "PowerLaw",
    "PowerLawFit",
    "PowerLawPrediction",
    "adjusted_mutual_information",
    "as_distribution",
    "check_level",
    "entropy",
    "expected_mutual_information",
    "fit_power_law",
    "isotonic",
    "log_softmax",
    "log_sum_exp",
    "mean_interval",
    "mix_uniform",
    "normal_quantile",
    "paired_interval",
    "quantile_of_sorted",
    "softmax",
    "squares_by_power",
    "state_from_tree",
    "state_to_tree",
    "student_quantile",
]

"""What another policy would have earned, and a better one, from the logs of runs alone."""

from taskmix.counterfactual._balanced import balanced
from taskmix.counterfactual._curves import learning_curves
from taskmix.counterfactual._dynamic import improve_stages
from taskmix.counterfactual._estimates import (
    Estimator,
    Range,
    ValueEstimate,
    bernstein,
    compare,
    doubly_robust,
    estimate,
    hajek,
    importance_sampling,
    row_value,
    weighted_importance_sampling,
)
from taskmix.counterfactual._faults import Fault, check_log, find_faults
from taskmix.counterfactual._improve import Improvement, improve_policy
from taskmix.counterfactual._learn import PolicyLessons, PolicyValue, learn
from taskmix.counterfactual._log import Log, log_from_arrays, log_from_batches, log_of_runs
from taskmix.counterfactual._maximise import Maximum, maximise, maximise_by_cmaes
from taskmix.counterfactual._statistics import LogStatistics
from taskmix.counterfactual._sums import sum_log

__all__ = [
    "Estimator",
    "Fault",
    "Improvement",
    "Log",
    "LogStatistics",
    "Maximum",
    "PolicyLessons",
    "PolicyValue",
    "Range",
    "ValueEstimate",
    "balanced",
    "bernstein",
    "check_log",
    "compare",
    "doubly_robust",
    "estimate",
    "find_faults",
    "hajek",
    "importance_sampling",
    "improve_policy",
    "improve_stages",
    "learn",
    "learning_curves",
    "log_from_arrays",
    "log_from_batches",
    "log_of_runs",
    "maximise",
    "maximise_by_cmaes",
    "row_value",
    "sum_log",
    "weighted_importance_sampling",
]

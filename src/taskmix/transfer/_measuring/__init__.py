"""From the description of a study (`_study`) to its trained runs and their outcomes (`_trials`)."""

from taskmix.transfer._measuring._study import OutcomeKind, TransferStudy, Trial
from taskmix.transfer._measuring._trials import (
    TrialOutcomes,
    in_stages,
    measure_trials,
    train_trials,
)

__all__ = [
    "OutcomeKind",
    "TransferStudy",
    "Trial",
    "TrialOutcomes",
    "in_stages",
    "measure_trials",
    "train_trials",
]

"""The mixture as scikit-learn has it: `fit`, `score`, `predict`, and what comes next in a sequence.

`_estimator` is `SequenceMixture`, which learns; `_fitted` is what it answers once it has learned,
by way of `_prediction`. `_crossing` learns what tasks have of their own on sequences left out.
`_scoring` is whose sequences are, by way of `_scores` and `_shares`.
"""

from taskmix.sequences._estimator._continuation import Continuation, continue_sequence
from taskmix.sequences._estimator._crossing import (
    ForeseenRest,
    assign_folds,
    folds_for,
    learn_own,
)
from taskmix.sequences._estimator._estimator import SequenceMixture
from taskmix.sequences._estimator._fitted import LearnedMixture, Tasks
from taskmix.sequences._estimator._prediction import Judgement, SequencePrediction
from taskmix.sequences._estimator._scores import Prior, ScoreReference, SequenceScores
from taskmix.sequences._estimator._shares import TaskShares

__all__ = [
    "Continuation",
    "ForeseenRest",
    "Judgement",
    "LearnedMixture",
    "Prior",
    "ScoreReference",
    "SequenceMixture",
    "SequencePrediction",
    "SequenceScores",
    "TaskShares",
    "Tasks",
    "assign_folds",
    "continue_sequence",
    "folds_for",
    "learn_own",
]

"""The mixture as scikit-learn has it: `fit`, `score`, `predict`, and what comes next in a sequence.

`_estimator` is `SequenceMixture`, which learns; `_fitted` is what it answers once it has learned,
by way of `_prediction`; `_scoring` is whose sequences are, by way of `_scores` and `_shares`.
"""

from taskmix.sequences._estimator._continuation import Continuation, continue_sequence
from taskmix.sequences._estimator._estimator import SequenceMixture
from taskmix.sequences._estimator._fitted import LearnedMixture, Tasks
from taskmix.sequences._estimator._prediction import Judgement, SequencePrediction
from taskmix.sequences._estimator._scores import Prior, ScoreReference, SequenceScores
from taskmix.sequences._estimator._shares import TaskShares

__all__ = [
    "Continuation",
    "Judgement",
    "LearnedMixture",
    "Prior",
    "ScoreReference",
    "SequenceMixture",
    "SequencePrediction",
    "SequenceScores",
    "TaskShares",
    "Tasks",
    "continue_sequence",
]

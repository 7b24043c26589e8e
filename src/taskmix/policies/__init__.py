"""Which task is trained on next, and what a step on it was worth."""

from taskmix.policies._exp3 import Exp3, Exp3State
from taskmix.policies._exp3s import Exp3S, Exp3SState, lift_weights, share_weights
from taskmix.policies._fixed import Fixed
from taskmix.policies._hard_progress import HardProgress, hard_progress
from taskmix.policies._policy import (
    AnyPolicy,
    Choice,
    Outcome,
    Policy,
    Probabilities,
    Sizes,
    draw,
    draw_many,
)
from taskmix.policies._prediction_gain import PredictionGain
from taskmix.policies._quantile_scaled import QuantileScaled, QuantileScaledState
from taskmix.policies._reward import AnyReward, Reward
from taskmix.policies._scheduled import Scheduled, ScheduledState
from taskmix.policies._score_improvement import ScoreImprovement, ScoreImprovementState
from taskmix.policies._shares import SharesState, Unchanging
from taskmix.policies._size_proportional import SizeProportional
from taskmix.policies._tempered import Tempered
from taskmix.policies._uniform import Uniform

__all__ = [
    "AnyPolicy",
    "AnyReward",
    "Choice",
    "Exp3",
    "Exp3S",
    "Exp3SState",
    "Exp3State",
    "Fixed",
    "HardProgress",
    "Outcome",
    "Policy",
    "PredictionGain",
    "Probabilities",
    "QuantileScaled",
    "QuantileScaledState",
    "Reward",
    "Scheduled",
    "ScheduledState",
    "ScoreImprovement",
    "ScoreImprovementState",
    "SharesState",
    "SizeProportional",
    "Sizes",
    "Tempered",
    "Unchanging",
    "Uniform",
    "draw",
    "draw_many",
    "hard_progress",
    "lift_weights",
    "share_weights",
]

"""Which task is trained on next, and what a step on it was worth."""

from taskmix.policies._capped import Capped
from taskmix.policies._exp3 import Exp3
from taskmix.policies._exp3s import Exp3S, Exp3SState, lift_weights, share_weights
from taskmix.policies._fixed import Fixed, MixtureShares
from taskmix.policies._hard_progress import HardProgress, hard_progress
from taskmix.policies._policy import (
    POLICIES,
    AnyPolicy,
    Choice,
    NamedPolicy,
    Outcome,
    Policy,
    Probabilities,
    Sizes,
    draw,
    draw_many,
)
from taskmix.policies._prediction_gain import PredictionGain
from taskmix.policies._quantile_scaled import QuantileScaled
from taskmix.policies._reward import AnyReward, Reward, steps_without_draws
from taskmix.policies._scheduled import Scheduled
from taskmix.policies._score_improvement import ScoreImprovement
from taskmix.policies._shares import Unchanging
from taskmix.policies._size_proportional import SizeProportional
from taskmix.policies._tempered import Tempered
from taskmix.policies._uniform import Uniform

__all__ = [
    "POLICIES",
    "AnyPolicy",
    "AnyReward",
    "Capped",
    "Choice",
    "Exp3",
    "Exp3S",
    "Exp3SState",
    "Fixed",
    "HardProgress",
    "MixtureShares",
    "NamedPolicy",
    "Outcome",
    "Policy",
    "PredictionGain",
    "Probabilities",
    "QuantileScaled",
    "Reward",
    "Scheduled",
    "ScoreImprovement",
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
    "steps_without_draws",
]

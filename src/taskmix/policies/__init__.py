"""Which task is trained on next."""

from taskmix.policies._policy import AnyPolicy, Choice, Outcome, Policy, draw
from taskmix.policies._reward import AnyReward, Reward
from taskmix.policies._size_proportional import SizeProportional
from taskmix.policies._tempered import Tempered
from taskmix.policies._uniform import Uniform

__all__ = [
    "AnyPolicy",
    "AnyReward",
    "Choice",
    "Outcome",
    "Policy",
    "Reward",
    "SizeProportional",
    "Tempered",
    "Uniform",
    "draw",
]

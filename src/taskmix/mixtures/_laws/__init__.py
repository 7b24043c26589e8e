"""Laws of mixtures: how the losses of a model depend on the shares of what it was trained on."""

from taskmix.mixtures._laws._effective import EffectiveDataLaw, FittedEffectiveData
from taskmix.mixtures._laws._exponential import ExponentialLaw
from taskmix.mixtures._laws._law import FittedMixtureLaw, MixtureLaw
from taskmix.mixtures._laws._log_linear import LogLinearLaw
from taskmix.mixtures._laws._process import DrawnProcess, FittedProcess, ProcessLaw
from taskmix.mixtures._laws._trees import BoostedTrees

__all__ = [
    "BoostedTrees",
    "DrawnProcess",
    "EffectiveDataLaw",
    "ExponentialLaw",
    "FittedEffectiveData",
    "FittedMixtureLaw",
    "FittedProcess",
    "LogLinearLaw",
    "MixtureLaw",
    "ProcessLaw",
]

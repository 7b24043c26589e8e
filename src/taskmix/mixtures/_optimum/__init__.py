"""The best mixture by a forecast: targets, limits, the optimum and how far it can be trusted."""

from taskmix.mixtures._optimum._distance import DistanceToRuns, measure_distance
from taskmix.mixtures._optimum._draws import expected_regret, optima_of_draws
from taskmix.mixtures._optimum._feasible import FeasibleShares
from taskmix.mixtures._optimum._front import FrontMixture, find_front
from taskmix.mixtures._optimum._judged import JudgedMixtures
from taskmix.mixtures._optimum._learned_repetition import LearnedRepetition, learn_repetition
from taskmix.mixtures._optimum._limits import DomainGroup, MixtureLimits
from taskmix.mixtures._optimum._optimum import MixtureGain, MixtureOptimum, find_optimum
from taskmix.mixtures._optimum._repetition import effective_tokens
from taskmix.mixtures._optimum._searching import candidate_mixtures, search_mixture
from taskmix.mixtures._optimum._sensitivity import (
    MixtureSensitivity,
    ShareCurve,
    measure_sensitivity,
)
from taskmix.mixtures._optimum._target import MixtureTarget

__all__ = [
    "DistanceToRuns",
    "DomainGroup",
    "FeasibleShares",
    "FrontMixture",
    "JudgedMixtures",
    "LearnedRepetition",
    "MixtureGain",
    "MixtureLimits",
    "MixtureOptimum",
    "MixtureSensitivity",
    "MixtureTarget",
    "ShareCurve",
    "candidate_mixtures",
    "effective_tokens",
    "expected_regret",
    "find_front",
    "find_optimum",
    "learn_repetition",
    "measure_distance",
    "measure_sensitivity",
    "optima_of_draws",
    "search_mixture",
]

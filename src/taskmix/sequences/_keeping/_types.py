"""The dataclasses that may come back out of a file of ours, bit for bit.

A file has them by their names (`taskmix.numerics.state_to_tree`): a class that is renamed can no
longer be read from what an older version wrote.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from taskmix.errors import RecordError
from taskmix.numerics import state_from_tree
from taskmix.records import StateTree
from taskmix.sequences._comparing import SeparateState
from taskmix.sequences._counted import (
    Backoff,
    Chains,
    Level,
    Markov,
    MarkovParameters,
    MarkovStatistics,
    Multinomial,
    MultinomialParameters,
    MultinomialStatistics,
    Outcomes,
    Strengths,
)
from taskmix.sequences._dynamics import DynamicsStatistics, LinearDynamics, LinearDynamicsParameters
from taskmix.sequences._estimator import ForeseenRest, Judgement, ScoreReference
from taskmix.sequences._hidden import (
    GaussianHiddenMarkov,
    GaussianHiddenMarkovParameters,
    GaussianHiddenMarkovStatistics,
    HiddenMarkov,
    HiddenMarkovParameters,
    HiddenMarkovStatistics,
)
from taskmix.sequences._mixture import Bank, BatchState, FitState, MixtureState, StochasticState
from taskmix.sequences._normal import Background, Gaussian, GaussianParameters, Moments
from taskmix.sequences._observed import Alphabet, Sequences
from taskmix.sequences._own import AdaptedStrengths, OwnChains, OwnGenerators, OwnStrengths
from taskmix.sequences._recurrent import Recurrent, RecurrentParameters

_KNOWN: tuple[type, ...] = (
    AdaptedStrengths,
    Alphabet,
    Background,
    Backoff,
    Bank,
    BatchState,
    Chains,
    DynamicsStatistics,
    FitState,
    Gaussian,
    GaussianHiddenMarkov,
    GaussianHiddenMarkovParameters,
    GaussianHiddenMarkovStatistics,
    GaussianParameters,
    HiddenMarkov,
    HiddenMarkovParameters,
    HiddenMarkovStatistics,
    Judgement,
    ForeseenRest,
    Level,
    LinearDynamics,
    LinearDynamicsParameters,
    Markov,
    MarkovParameters,
    MarkovStatistics,
    MixtureState,
    Moments,
    Multinomial,
    MultinomialParameters,
    MultinomialStatistics,
    Outcomes,
    OwnChains,
    OwnGenerators,
    OwnStrengths,
    Recurrent,
    RecurrentParameters,
    ScoreReference,
    SeparateState,
    Sequences,
    StochasticState,
    Strengths,
)


def from_tree(tree: StateTree, path: str | Path, types: Sequence[type] = ()) -> Any:
    """What gave the named tree; a `RecordError` that names `path` where it is of another form."""
    try:
        return state_from_tree(tree, types=(*_KNOWN, *types), where=f"`{path}`")
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError) as error:
        raise other_form(path) from error


def other_form(path: str | Path) -> RecordError:
    """The error of a file that holds no mixture of ours."""
    return RecordError(
        f"`{path}` should hold a mixture that this version of taskmix wrote. Found something "
        "else. Fit and save it again."
    )

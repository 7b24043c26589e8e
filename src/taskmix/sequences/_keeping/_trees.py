"""Dataclasses of arrays as trees that `taskmix.records` stores, and back, bit for bit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from taskmix.errors import RecordError
from taskmix.records import StateTree
from taskmix.sequences._comparing import SeparateState
from taskmix.sequences._counted import (
    Backoff,
    Level,
    Markov,
    MarkovParameters,
    MarkovStatistics,
    Multinomial,
    MultinomialParameters,
    MultinomialStatistics,
    Outcomes,
)
from taskmix.sequences._dynamics import DynamicsStatistics, LinearDynamics, LinearDynamicsParameters
from taskmix.sequences._estimator import Judgement
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
from taskmix.sequences._recurrent import Recurrent, RecurrentParameters

_TYPE = "dataclass"
_PAIRS = "pairs"  # of a mapping whose keys are not all strings
_KNOWN: tuple[type, ...] = (
    Alphabet,
    Background,
    Backoff,
    Bank,
    BatchState,
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
    Recurrent,
    RecurrentParameters,
    SeparateState,
    Sequences,
    StochasticState,
)


def to_tree(value: Any) -> StateTree:
    """Known dataclasses, in dicts, lists and tuples, as a tree of plain values and arrays."""
    if is_dataclass(value) and not isinstance(value, type):
        parts = {each.name: to_tree(getattr(value, each.name)) for each in fields(value)}
        return {_TYPE: type(value).__name__, "fields": parts}
    if isinstance(value, dict):
        if all(type(key) is str for key in value):
            return {key: to_tree(item) for key, item in value.items()}
        return {_PAIRS: [[to_tree(key), to_tree(item)] for key, item in value.items()]}
    if isinstance(value, list | tuple):
        return type(value)(to_tree(item) for item in value)
    return value


def from_tree(tree: StateTree, path: str | Path, types: Sequence[type] = ()) -> Any:
    """What `to_tree` was given; a `RecordError` that names `path` where it is of another form."""
    try:
        return _built(tree, {each.__name__: each for each in (*_KNOWN, *types)}, path)
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError) as error:
        raise other_form(path) from error


def other_form(path: str | Path) -> RecordError:
    return RecordError(
        f"`{path}` should hold a mixture that this version of taskmix wrote. Found something "
        "else. Fit and save it again."
    )


def _built(value: Any, known: dict[str, type], path: str | Path) -> Any:
    if isinstance(value, dict) and set(value) == {_TYPE, "fields"}:
        if value[_TYPE] not in known:
            raise RecordError(
                f"`{path}` should hold generators that are known here. Found {value[_TYPE]!r}. Pass "
                "its class in `types`."
            )
        return known[value[_TYPE]](**_built(value["fields"], known, path))
    if isinstance(value, dict) and set(value) == {_PAIRS}:
        return {_built(key, known, path): _built(each, known, path) for key, each in value[_PAIRS]}
    if isinstance(value, dict):
        return {key: _built(item, known, path) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_built(item, known, path) for item in value)
    if isinstance(value, np.ndarray):
        return value.copy()  # out of the file's bytes, to where NumPy would have put it
    return value

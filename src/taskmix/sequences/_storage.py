"""A fitted mixture as one file that runs no code when it is read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from taskmix.errors import RecordError
from taskmix.records import load_state, save_state
from taskmix.sequences._backoff import Backoff, Level
from taskmix.sequences._bank import Bank
from taskmix.sequences._data import Alphabet, Sequences
from taskmix.sequences._em import MixtureState
from taskmix.sequences._estimator import SequenceMixture
from taskmix.sequences._gaussian import Gaussian, GaussianParameters
from taskmix.sequences._gaussian_hidden_markov import (
    GaussianHiddenMarkov,
    GaussianHiddenMarkovParameters,
)
from taskmix.sequences._generator import Floats
from taskmix.sequences._hidden_markov import HiddenMarkov, HiddenMarkovParameters
from taskmix.sequences._linear_dynamics import LinearDynamics, LinearDynamicsParameters
from taskmix.sequences._markov import Markov, MarkovParameters
from taskmix.sequences._multinomial import Multinomial, MultinomialParameters
from taskmix.sequences._normal import Background
from taskmix.sequences._outcomes import Outcomes
from taskmix.sequences._recurrent import Recurrent, RecurrentParameters

_VERSION = 1
_TYPE = "dataclass"
_KNOWN: tuple[type, ...] = (
    Alphabet,
    Background,
    Backoff,
    Bank,
    Gaussian,
    GaussianHiddenMarkov,
    GaussianHiddenMarkovParameters,
    GaussianParameters,
    HiddenMarkov,
    HiddenMarkovParameters,
    Level,
    LinearDynamics,
    LinearDynamicsParameters,
    Markov,
    MarkovParameters,
    Multinomial,
    MultinomialParameters,
    Outcomes,
    Recurrent,
    RecurrentParameters,
    Sequences,
)
_OPTIONS = ("generator", "n_generators", "alpha", "learn_alpha", "max_iter", "tol", "n_init")
_FITTED = (
    "bank_",
    "parameters_",
    "alpha_",
    "tasks_",
    "gamma_",
    "theta_",
    "alphabet_",
    "n_symbols_",
    "dimension_",
    "longest_",
    "bounds_",
    "n_iter_",
    "converged_",
)


def save_mixture(model: SequenceMixture, path: str | Path) -> None:
    """Writes a fitted model; on any failure what was there before stays."""
    fitted = {name: getattr(model, name) for name in _FITTED if hasattr(model, name)}
    options = {name: getattr(model, name) for name in _OPTIONS}
    save_state(path, {"version": _VERSION, "options": _plain(options), "fitted": _plain(fitted)})


def load_mixture(path: str | Path, types: Sequence[type] = ()) -> SequenceMixture:
    """Reads what `save_mixture` wrote. `types` are the dataclasses of generators of your own."""
    tree = load_state(path)
    if not isinstance(tree, dict) or tree.get("version") != _VERSION:
        raise _other(path)
    known = {each.__name__: each for each in (*_KNOWN, *types)}
    try:
        model = SequenceMixture(**_built(tree["options"], known, path))
        fitted = _built(tree["fitted"], known, path)
        if not set(fitted) <= set(_FITTED):
            raise _other(path)
        for name, value in fitted.items():
            setattr(model, name, value)
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError) as error:
        raise _other(path) from error
    return model


def _other(path: str | Path) -> RecordError:
    return RecordError(
        f"`{path}` should hold a mixture that this version of taskmix wrote. Found something "
        "else. Fit and save it again."
    )


def save_start(path: str | Path, name: str, state: MixtureState) -> None:
    """Writes where EM has come to, under a name that says what it is learning."""
    tree = {"name": name, "parameters": _plain(state.parameters), "iteration": state.iteration}
    save_state(path, {"version": _VERSION, **tree, "alpha": state.alpha})


def load_start(path: str | Path, name: str) -> tuple[tuple[Any, ...], Floats] | None:
    """Parameters and α to go on from, or None where there are none under this name."""
    if not Path(path).exists():
        return None
    tree = load_state(path)
    if not isinstance(tree, dict) or tree.get("version") != _VERSION or tree.get("name") != name:
        return None
    known = {each.__name__: each for each in _KNOWN}
    try:
        return _built(tree["parameters"], known, path), tree["alpha"]
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError) as error:
        raise _other(path) from error


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        parts = {each.name: _plain(getattr(value, each.name)) for each in fields(value)}
        return {_TYPE: type(value).__name__, "fields": parts}
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_plain(item) for item in value)
    return value


def _built(value: Any, known: dict[str, type], path: str | Path) -> Any:
    if isinstance(value, dict) and set(value) == {_TYPE, "fields"}:
        if value[_TYPE] not in known:
            raise RecordError(
                f"`{path}` should hold generators that are known here. Found {value[_TYPE]!r}. Pass "
                "its class in `types`."
            )
        return known[value[_TYPE]](**_built(value["fields"], known, path))
    if isinstance(value, dict):
        return {key: _built(item, known, path) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_built(item, known, path) for item in value)
    return value

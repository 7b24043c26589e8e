"""A fitted mixture as one file that runs no code when it is read.

A file has dataclasses by their names (`taskmix.numerics.state_to_tree`): a class that is renamed can no
longer be read from what an older version wrote.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any

from taskmix.errors import InputError, RecordError
from taskmix.numerics import state_from_tree, state_to_tree
from taskmix.records import StateTree, load_state, save_state
from taskmix.sequences import (
    _backoff,
    _bank,
    _chains,
    _comparison,
    _crossing,
    _em,
    _gaussian,
    _gaussian_hidden_markov,
    _hidden_markov,
    _linear_dynamics,
    _markov,
    _multinomial,
    _normal,
    _own_chains,
    _own_generators,
    _prediction,
    _recurrent,
    _restarts,
    _scores,
    _sequences,
    _stochastic,
)
from taskmix.sequences._estimator import SequenceMixture
from taskmix.sequences._folder import MixtureFolder

_VERSION = 2  # of the file; a model of another one is refused
_OPTIONS = ("generator", "n_generators", "alpha", "learn_alpha", "max_iter", "tol", "n_init", "own")


def save_mixture(model: SequenceMixture, path: str | Path) -> None:
    """Writes a fitted model; on any failure what was there before stays.

    >>> model = SequenceMixture(Markov(), 1, random_state=0).fit(["ab", "ab"], ["x", "x"])
    >>> save_mixture(model, "model.safetensors")
    >>> load_mixture("model.safetensors").score(["ab"], ["x"]) == model.score(["ab"], ["x"])
    True
    """
    options = {name: getattr(model, name) for name in _OPTIONS}
    tree = {
        "options": state_to_tree(options, named=True),
        "fitted": state_to_tree(model.learned(), named=True),
    }
    save_state(path, {"version": _VERSION, **tree})


def load_mixture(path: str | Path, types: Sequence[type] = ()) -> SequenceMixture:
    """Reads what `save_mixture` wrote, or the last model of a folder of `taskmix sequences`.

    `types` are the dataclasses of generators of your own.

    >>> model = SequenceMixture(Markov(), 1, random_state=0).fit(["ab", "ab"], ["x", "x"])
    >>> save_mixture(model, "model.safetensors")
    >>> load_mixture("model.safetensors").complete("a", "x")[0]
    'ab'
    """
    if Path(path).is_dir():
        path = MixtureFolder(Path(path)).last_model()
    if not Path(path).exists():
        raise InputError(
            f"`{path}` should be a folder of `taskmix sequences`, or its .safetensors file. Found "
            "nothing there. Check the path, or fit the mixture first."
        )
    tree = load_state(path)
    if not isinstance(tree, dict) or tree.get("version") != _VERSION:
        raise other_form(path)
    try:
        model = SequenceMixture(**from_tree(tree["options"], path, types))
        return model.restore(from_tree(tree["fitted"], path, types))
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError) as error:
        raise other_form(path) from error


_MODULES = (
    _backoff,
    _bank,
    _chains,
    _comparison,
    _crossing,
    _em,
    _gaussian,
    _gaussian_hidden_markov,
    _hidden_markov,
    _linear_dynamics,
    _markov,
    _multinomial,
    _normal,
    _own_chains,
    _own_generators,
    _prediction,
    _recurrent,
    _restarts,
    _scores,
    _sequences,
    _stochastic,
)
_KNOWN = tuple(  # every dataclass that a fit may hold
    each
    for module in _MODULES
    for each in vars(module).values()
    if isinstance(each, type) and is_dataclass(each) and each.__module__ == module.__name__
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

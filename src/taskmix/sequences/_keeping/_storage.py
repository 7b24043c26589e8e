"""A fitted mixture as one file that runs no code when it is read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from taskmix.errors import InputError
from taskmix.numerics import state_to_tree
from taskmix.records import load_state, save_state
from taskmix.sequences._estimator import SequenceMixture
from taskmix.sequences._keeping._folder import MixtureFolder
from taskmix.sequences._keeping._types import from_tree, other_form

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

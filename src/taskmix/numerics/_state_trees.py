"""States as plain trees that a file can hold, and back: one way for policies, weightings and fits.

A state is a number, a word, an array, a tensor or None, or a list, tuple, dictionary or frozen
dataclass of such things, so that no method needs code of its own to be checkpointed. Reading runs no
code of the tree's; the classes come from who reads, in one of two ways:

- A method can make a fresh state of itself. Its tree is bare, a dataclass being the dictionary of its
  fields, and is read `like` the fresh one.
- A fit may stop in a state of one class or another. Its tree is `named`: a dataclass brings its
  class's name, a tuple stays a tuple, and a dictionary may have any keys. It is read by the `types`
  that may occur.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np

from taskmix.errors import RecordError

# The form on disk: another word here, and no tree that was written before is read.
_CLASS, _FIELDS = "dataclass", "fields"
_PAIRS = "pairs"  # of a mapping whose keys are not all strings


def state_to_tree(state: Any, *, named: bool = False) -> Any:
    """The state without its classes, or with their names.

    >>> state_to_tree((Interval(0.5, 0.2, 0.8, 10), None))
    [{'mean': 0.5, 'low': 0.2, 'high': 0.8, 'n': 10, 'level': 0.95}, None]
    >>> state_to_tree({3: "c"}, named=True)
    {'pairs': [[3, 'c']]}
    """
    if is_dataclass(state) and not isinstance(state, type):
        parts = {
            each.name: state_to_tree(getattr(state, each.name), named=named)
            for each in fields(state)
        }
        return {_CLASS: type(state).__name__, _FIELDS: parts} if named else parts
    if isinstance(state, tuple | list):
        items = [state_to_tree(item, named=named) for item in state]
        return tuple(items) if named and isinstance(state, tuple) else items
    if named and isinstance(state, dict):
        if all(type(key) is str for key in state):
            return {key: state_to_tree(item, named=True) for key, item in state.items()}
        return {_PAIRS: [state_to_tree(list(pair), named=True) for pair in state.items()]}
    return state


def state_from_tree(
    tree: Any, *, like: Any = None, types: Sequence[type] = (), where: str = "The saved state"
) -> Any:
    """The state that gave `tree`: `like` a fresh one, or made of `types`. Arrays and tensors are copies.

    `where` begins the sentence of an error; what a class says of wrong fields rises as it is.

    >>> tree = state_to_tree(Interval(0.5, 0.2, 0.8, 10))
    >>> state_from_tree(tree, like=Interval(0.0, 0.0, 0.0, 0)).high
    0.8
    >>> named = state_to_tree(Interval(0.5, 0.2, 0.8, 10), named=True)
    >>> state_from_tree(named, types=[Interval]).high
    0.8
    """
    known = {each.__name__: each for each in types}
    return _filled(tree, like, where) if not known else _built(tree, known, where)


def _filled(tree: Any, like: Any, where: str) -> Any:
    """What the fresh state says is what the tree is taken for."""
    if is_dataclass(like) and not isinstance(like, type):
        names = {each.name for each in fields(like)}
        if not isinstance(tree, dict) or set(tree) != names:
            found = sorted(tree) if isinstance(tree, dict) else type(tree).__name__
            raise RecordError(
                f"{where} should be a {type(like).__name__} with {sorted(names)}. Found {found}. It "
                "was saved by another method or version: start afresh."
            )
        parts = {name: _filled(tree[name], getattr(like, name), where) for name in names}
        return replace(like, **parts)
    if isinstance(like, tuple):
        if len(like) != len(tree):
            return tuple(tree)  # it grows, and has nothing but plain values
        return tuple(_filled(item, each, where) for item, each in zip(tree, like, strict=True))
    return _copied(tree, like)


def _built(tree: Any, known: Mapping[str, type], where: str) -> Any:
    """What the tree says of itself is what it is."""
    if isinstance(tree, dict) and set(tree) == {_CLASS, _FIELDS}:
        if tree[_CLASS] not in known:
            raise RecordError(
                f"{where} should be made of classes that are known here. Found {tree[_CLASS]!r}. Pass "
                "it in `types`."
            )
        return known[tree[_CLASS]](**_built(tree[_FIELDS], known, where))
    if isinstance(tree, dict) and set(tree) == {_PAIRS}:
        return {_built(key, known, where): _built(item, known, where) for key, item in tree[_PAIRS]}
    if isinstance(tree, dict):
        return {key: _built(item, known, where) for key, item in tree.items()}
    if isinstance(tree, list | tuple):
        return type(tree)(_built(item, known, where) for item in tree)
    return _copied(tree)


def _copied(leaf: Any, like: Any = None) -> Any:
    """Arrays out of the file's bytes, to where NumPy puts its own; tensors to the device of `like`."""
    if isinstance(leaf, np.ndarray):
        return leaf.copy()
    if "torch" in sys.modules:  # else nobody has made a tensor
        import torch

        if isinstance(leaf, torch.Tensor):
            device = like.device if isinstance(like, torch.Tensor) else leaf.device
            return leaf.detach().to(device, copy=True)
    return leaf

"""States of policies, rewards and weightings as plain trees, and back.

A state is None, a number, an array, a tensor, or a (frozen) dataclass of such things: no method needs
code of its own to be checkpointed.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import Any

from taskmix.errors import RecordError


def state_to_tree(state: Any) -> Any:
    """Dataclasses become dictionaries, everything else stays."""
    if is_dataclass(state) and not isinstance(state, type):
        return {item.name: state_to_tree(getattr(state, item.name)) for item in fields(state)}
    if isinstance(state, tuple | list):
        return [state_to_tree(item) for item in state]
    return state


def state_from_tree(template: Any, tree: Any) -> Any:
    """The state that gave `tree`; `template` is a fresh state of the same method."""
    if is_dataclass(template) and not isinstance(template, type):
        names = {item.name for item in fields(template)}
        if not isinstance(tree, dict) or set(tree) != names:
            found = sorted(tree) if isinstance(tree, dict) else type(tree).__name__
            raise RecordError(
                f"The checkpoint should hold a {type(template).__name__} with {sorted(names)}. "
                f"Found {found}. It was written by another method or version: start afresh."
            )
        return replace(
            template,
            **{name: state_from_tree(getattr(template, name), tree[name]) for name in names},
        )
    if isinstance(template, tuple):
        items = zip(template, tree, strict=False) if len(template) == len(tree) else None
        return tuple(state_from_tree(a, b) for a, b in items) if items else tuple(tree)
    return tree

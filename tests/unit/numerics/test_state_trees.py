from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from taskmix.errors import RecordError
from taskmix.numerics import state_from_tree, state_to_tree
from taskmix.records import load_state, save_state


@dataclass(frozen=True, eq=False)
class Inner:
    counts: Any
    name: str = "inner"


@dataclass(frozen=True, eq=False)
class Outer:
    inner: Inner
    pair: tuple[Any, ...] = ()
    rest: Any = None
    extra: dict[Any, Any] = field(default_factory=dict)


STATE = Outer(
    Inner(np.arange(3.0)),
    (Inner(torch.ones(2)), None),
    [1, 2.5, "x"],
    {"a": (1, 2), "b": Inner(None, "b")},
)


def test_a_bare_tree_has_no_names_of_classes_and_its_tuples_are_lists() -> None:
    tree = state_to_tree(Outer(Inner(1), (Inner(2), 3)))
    assert tree == {
        "inner": {"counts": 1, "name": "inner"},
        "pair": [{"counts": 2, "name": "inner"}, 3],
        "rest": None,
        "extra": {},
    }


def test_a_named_tree_says_what_it_is_made_of() -> None:
    tree = state_to_tree((Inner(1), {("a", 2): Inner(3)}), named=True)
    assert tree == (
        {"dataclass": "Inner", "fields": {"counts": 1, "name": "inner"}},
        {"pairs": [[("a", 2), {"dataclass": "Inner", "fields": {"counts": 3, "name": "inner"}}]]},
    )


def test_a_bare_tree_is_read_like_a_fresh_state_through_a_file(tmp_path: Path) -> None:
    state = Outer(Inner(np.arange(3.0)), (Inner(torch.ones(2)), None), "rest")
    save_state(tmp_path / "state", state_to_tree(state))
    fresh = Outer(Inner(np.zeros(3)), (Inner(torch.zeros(2)), None))
    found = state_from_tree(load_state(tmp_path / "state"), like=fresh)
    assert (type(found), type(found.inner), type(found.pair)) == (Outer, Inner, tuple)
    assert found.inner.counts.tolist() == [0.0, 1.0, 2.0]
    assert found.pair[0].counts.tolist() == [1.0, 1.0]
    assert (found.pair[1], found.rest, found.extra) == (None, "rest", {})


def test_a_named_tree_is_read_by_the_classes_that_are_known_through_a_file(tmp_path: Path) -> None:
    save_state(tmp_path / "state", state_to_tree({3: STATE}, named=True))
    found = state_from_tree(load_state(tmp_path / "state"), types=(Inner, Outer))[3]
    assert (type(found), type(found.pair), type(found.rest)) == (Outer, tuple, list)
    assert found.inner.counts.tobytes() == STATE.inner.counts.tobytes()
    assert found.pair[0].counts.tolist() == [1.0, 1.0]
    assert (found.pair[1], found.rest) == (None, [1, 2.5, "x"])
    assert found.extra["a"] == (1, 2)
    assert found.extra["b"].name == "b"


@pytest.mark.parametrize("options", [{"like": Inner(None)}, {"types": (Inner,)}])
def test_what_is_read_does_not_change_when_the_tree_does(options: dict[str, Any]) -> None:
    for values in (np.zeros(2), torch.zeros(2)):
        tree = state_to_tree(Inner(values), named="types" in options)
        found = state_from_tree(tree, **options)
        values += 1
        assert found.counts.tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("tree", "found"),
    [({"counts": 1}, r"\['counts'\]"), ({"counts": 1, "name": "", "more": 2}, "more"), (7, "int")],
)
def test_a_bare_tree_of_another_method_is_refused_in_a_sentence(tree: Any, found: str) -> None:
    with pytest.raises(RecordError, match=rf"^The saved state should be a Inner with .*{found}"):
        state_from_tree(tree, like=Inner(0))


def test_a_class_that_is_not_known_is_never_built() -> None:
    tree = {"dataclass": "Path", "fields": {}}
    with pytest.raises(RecordError, match=r"^`file` should .* Found 'Path'. Pass it in `types`"):
        state_from_tree({"a": [tree]}, types=(Inner,), where="`file`")

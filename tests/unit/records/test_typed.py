from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskmix.records import LEFT_OUT_IF_NONE, from_plain, to_plain


@dataclass(frozen=True)
class Leaf:
    number: float
    kind: Literal["a", "b"]
    pair: tuple[int, str] = (0, "")


@dataclass(frozen=True, kw_only=True)
class Tree:
    words: str
    count: int
    sure: bool
    leaves: tuple[Leaf, ...]
    by_name: Mapping[str, tuple[float, ...]]
    maybe: Leaf | None
    foreign: Any = None
    asked: int | None = field(default=None, metadata=LEFT_OUT_IF_NONE)


LEAF = {"number": 1.5, "kind": "a", "pair": [1, "x"]}
TREE = {
    "words": "w",
    "count": 2,
    "sure": True,
    "leaves": [LEAF],
    "by_name": {"x": [1.0]},
    "maybe": None,
    "foreign": {"deep": [1, {"er": None}]},
}

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)
whole = st.integers(-(2**63) + 1, 2**63 - 1)
finite = st.floats(allow_nan=False, allow_infinity=False)
leaves = st.builds(Leaf, finite, st.sampled_from(["a", "b"]), st.tuples(whole, st.text()))
trees = st.builds(
    Tree,
    words=st.text(),
    count=whole,
    sure=st.booleans(),
    leaves=st.lists(leaves).map(tuple),
    by_name=st.dictionaries(st.text(), st.lists(finite).map(tuple)),
    maybe=st.none() | leaves,
    foreign=st.none() | st.dictionaries(st.text(), st.integers()),
    asked=st.none() | whole,
)


@given(anything)
def test_every_value_becomes_json_that_any_reader_takes(value: object) -> None:
    plain = to_plain(value)
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain


@given(trees)
def test_what_is_written_comes_back_the_same(tree: Tree) -> None:
    assert from_plain(Tree, json.loads(json.dumps(to_plain(tree), allow_nan=False))) == tree


@given(anything)
def test_whatever_is_read_is_a_tree_or_a_type_error(value: object) -> None:
    for given_ in (value, {**TREE, "leaves": [value]}, {**TREE, "by_name": {"x": value}}):
        try:
            tree = from_plain(Tree, given_)
        except TypeError:
            continue
        assert to_plain(from_plain(Tree, to_plain(tree))) == to_plain(tree)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"words": 3}, "Tree.words should be words, and is 3"),
        ({"words": None}, "Tree.words should be words, and is None"),
        ({"count": 2.0}, "Tree.count should be a whole number, and is 2.0"),
        ({"count": True}, "Tree.count should be a whole number, and is True"),
        ({"count": -(10**30)}, "Tree.count should be a whole number of at most .*, and is larger"),
        ({"sure": 1}, "Tree.sure should be true or false, and is 1"),
        ({"leaves": {}}, "Tree.leaves should be a list, and is an object"),
        ({"leaves": [LEAF, 7]}, r"Tree.leaves\[1\] should be an object, and is 7"),
        ({"maybe": {"kind": "a"}}, "Tree.maybe should have `number`"),
        ({"maybe": {**LEAF, "number": "x"}}, "Tree.maybe.number should be a number, and is 'x'"),
        ({"maybe": {**LEAF, "number": True}}, "Tree.maybe.number should be a number, and is True"),
        ({"maybe": {**LEAF, "kind": "c"}}, "Tree.maybe.kind should be one of a, b, and is 'c'"),
        (
            {"maybe": {**LEAF, "kind": ["a"]}},
            "Tree.maybe.kind should be one of a, b, and is a list",
        ),
        ({"maybe": {**LEAF, "pair": [1]}}, "Tree.maybe.pair should have 2 entries, and has 1"),
        ({"by_name": {"x": [[]]}}, r"Tree.by_name.x\[0\] should be a number, and is a list"),
    ],
)
def test_the_error_says_where_something_else_is(change: dict[str, object], words: str) -> None:
    with pytest.raises(TypeError, match=f"^{words}$"):
        from_plain(Tree, TREE | change)


@pytest.mark.parametrize("number", [None, math.inf, -math.inf, math.nan, 10**400])
def test_a_number_that_is_none_or_not_finite_is_nan(number: object) -> None:
    assert math.isnan(from_plain(Leaf, {**LEAF, "number": number}).number)


def test_what_a_later_version_adds_is_left_out_and_what_an_earlier_one_lacks_has_its_default() -> (
    None
):
    tree = from_plain(Tree, {**TREE, "leaves": [{"number": 1, "kind": "b"}], "new": {"x": 1}})
    assert tree.leaves == (Leaf(1.0, "b", (0, "")),)
    assert tree.foreign == TREE["foreign"]


def test_an_entry_that_was_not_asked_for_is_absent_and_another_is_null() -> None:
    tree = from_plain(Tree, TREE)
    assert to_plain(tree) == TREE
    assert list(to_plain(tree)) == list(TREE), "in the order of the fields"
    assert to_plain(from_plain(Tree, TREE | {"asked": 3}))["asked"] == 3

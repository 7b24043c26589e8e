from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskmix.errors import OptionError
from taskmix.records import describe, specification_hash


@dataclass(frozen=True, kw_only=True)
class Tempered:
    temperature: float = 2.0
    inner: object = None
    _cache: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class Kinded:
    kind: str


@dataclass
class Changeable:
    value: int = 1


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


def test_a_frozen_dataclass_is_its_fields_and_the_name_of_its_class() -> None:
    value = Tempered(inner=(Kinded("text"), Path("a/b"), np.float32(0.5), np.arange(3)))
    assert describe(value) == {
        "kind": "Tempered",
        "temperature": 2.0,
        "inner": [{"kind": "Kinded", "kind_": "text"}, "a/b", 0.5, [0, 1, 2]],
    }


def test_the_hash_is_what_it_was_when_studies_were_first_written() -> None:
    # sha256sum of {"policy":{"inner":null,"kind":"Tempered","temperature":2.0},"seed":1}
    assert specification_hash({"seed": 1, "policy": Tempered()}) == "5d4f28d0cc9c4bcd"


@given(st.dictionaries(st.text(), VALUES, max_size=4))
def test_neither_the_order_of_keys_nor_a_trip_through_json_changes_the_hash(
    specification: dict[str, object],
) -> None:
    name = specification_hash(specification)
    assert specification_hash(dict(reversed(specification.items()))) == name
    assert specification_hash(json.loads(json.dumps(describe(specification)))) == name
    assert len(name) == 16
    assert set(name) <= set("0123456789abcdef")


def test_values_that_differ_have_names_that_differ() -> None:
    values = [1, 1.0, True, "1", None, [1], {"a": 1}, float("inf"), -float("inf"), "inf", 0.1]
    assert len({specification_hash({"a": value}) for value in values}) == len(values)


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        (float("nan"), "Found NaN"),
        (np.float64("nan"), "Found NaN"),
        (print, "builtin_function"),
        (Tempered, "Found type"),
        ({1, 2}, "Found set"),
        (b"bytes", "Found bytes"),
        ({1: 2}, "should be strings"),
        (Changeable(), "frozen=True"),
    ],
)
def test_what_cannot_name_a_run_is_refused_and_its_place_is_told(
    value: object, sentence: str
) -> None:
    with pytest.raises(OptionError, match=sentence) as caught:
        specification_hash({"policy": [value]})
    assert "specification.policy[0]" in str(caught.value)

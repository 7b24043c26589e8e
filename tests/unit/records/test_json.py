from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskmix.errors import InputError
from taskmix.records import must_have, read_document, without_nan, write_document

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(values)
def test_every_value_becomes_json_that_any_reader_takes(value: object) -> None:
    plain = without_nan(value)
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain


def test_a_number_that_is_none_is_null_and_all_else_stays() -> None:
    found = without_nan({"a": (1.5, float("nan")), "b": [float("-inf"), "nan"], "c": None})
    assert found == {"a": [1.5, None], "b": [None, "nan"], "c": None}


def test_a_document_comes_back_and_none_is_none(tmp_path: Path) -> None:
    path = write_document(tmp_path / "new" / "x.json", {"version": 3, "part": {"a": 1}})

    def check(document: dict[str, object]) -> None:
        must_have(document["part"], "a")  # type: ignore[arg-type]

    assert read_document(path, version=3, command="taskmix x", check=check) == {
        "version": 3,
        "part": {"a": 1},
    }
    assert read_document(tmp_path / "y", version=3, command="taskmix x", check=check) is None
    for text in ("{", '{"version": 2}', '{"version": 3, "part": {}}', '{"version": 3, "part": 1}'):
        path.write_text(text)
        with pytest.raises(InputError, match=r"version 3 that `taskmix x` wrote"):
            read_document(path, version=3, command="taskmix x", check=check)

"""Rows have one key where they are equal in Python, and only there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from taskmix.tasks._looking._row_keys import column_keys, group_keys, table_keys, target_keys


def frozen(value: Any) -> Any:
    """The plain way: cells as Python compares them, NaN equal to itself."""
    if isinstance(value, list | tuple):
        return tuple(map(frozen, value))
    if isinstance(value, dict):
        return tuple(map(frozen, value.items()))
    return "NaN" if isinstance(value, float) and value != value else value


COLUMNS: dict[str, pa.Array] = {
    "whole": pa.array([0, 1, -1, -2, 2**53, 2**53 + 1, None, 1]),
    "floating": pa.array([0.0, -0.0, 1.0, float("nan"), None, 1e300, 2.5, float("nan")]),
    "truth": pa.array([True, False, None, True]),
    "words": pa.array(["a", "b", "a", "", None, "1"]),
    "lists": pa.array([["a", "b"], ["ab"], ["b", "a"], [], None, ["a", "b"], ["a", None]]),
    "numbers": pa.array([[-1.0], [-2.0], [1.0, 2.0], [2.0, 1.0], [-1.0]]),
    "nested": pa.array([[[1], [2]], [[1, 2]], [[1], [2]]]),
    "messages": pa.array([[{"role": "a", "content": "x"}], [{"role": "b", "content": "x"}]]),
    "named": pa.array(["x", "y", "x"]).dictionary_encode(),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_cells_have_one_key_exactly_where_they_are_equal(name: str) -> None:
    column = COLUMNS[name]
    keys, plain = column_keys(pa.chunked_array([column])).tolist(), map(frozen, column.to_pylist())
    cells = list(plain)
    for one, first in zip(keys, cells, strict=True):
        for other, second in zip(keys, cells, strict=True):
            assert (one == other) == (first == second), (first, second)


def test_numbers_are_equal_by_value_whatever_their_type() -> None:
    whole, floating = column_keys(pa.array([1, 2, 0])), column_keys(pa.array([1.0, 2.0, -0.0]))
    assert whole.tolist() == floating.tolist()
    assert column_keys(pa.array([True]))[0] == whole[0]
    assert column_keys(pa.array(["1"]))[0] != whole[0]


def test_a_row_is_all_of_its_cells_in_their_order_but_for_the_answer() -> None:
    table = pa.table({"a": ["x", "y", "x"], "b": ["y", "x", "y"]})
    keys = table_keys(table)
    assert keys[0] == keys[2] != keys[1]
    asked = pa.table({"prompt": ["p", "p"], "answer": ["one", "two"]})
    assert len(set(table_keys(asked).tolist())) == 1


def test_slices_and_chunks_make_no_difference() -> None:
    column = pa.array([["a"], ["b", "c"], [], ["a"]])
    parts = pa.chunked_array([column.slice(0, 2), column.slice(2)])
    assert column_keys(parts).tolist() == column_keys(column).tolist()
    assert column_keys(column.slice(1, 2)).tolist() == column_keys(column).tolist()[1:3]


def test_targets_of_several_columns_and_tags_of_a_sentence_have_one_key() -> None:
    several = target_keys(np.array([[0, 1], [1, 0], [0, 1]]))
    assert several[0] == several[2] != several[1]
    tags = group_keys(target_keys(np.array([0, 1, 1, 0, 0, 1])), np.array([2, 2, 2]))
    assert tags[0] == tags[2] != tags[1]

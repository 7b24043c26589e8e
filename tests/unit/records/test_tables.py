from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taskmix.errors import OptionError, ShapeError
from taskmix.records import _tables
from taskmix.records._tables import STEPS, StepBuffer, StepRow, Vector, bulk_rows, thin_vectors

TASKS = ["a", "b"]


def row(step: int, vector: Vector | None = None, task: int = 0) -> StepRow:
    return (step, task, 0.5, vector, 1.0, None, None, None, 0.1, 32)


def buffered(*rows: StepRow, before: Vector | None = None) -> pa.Table:
    buffer = StepBuffer(TASKS, before)
    buffer.extend(rows)
    return buffer.table()


def filled(vectors: list[list[float] | None], before: list[float] | None) -> list[object]:
    """The slow way: what holds at each row."""
    found: list[object] = []
    holds: object = before
    for vector in vectors:
        holds = holds if vector is None else vector
        found.append(holds)
    return found


def test_rows_become_columns_and_absent_numbers_become_nulls() -> None:
    full = (3, 1, 0.25, np.array([0.75, 0.25]), float("nan"), 0.5, -1.0, float("inf"), 0.01, 64)
    table = buffered(row(2), full)
    assert table.schema == STEPS
    first, second = table.to_pylist()
    assert first["task"] == "a"
    assert [first[name] for name in ("loss_after", "reward", "weight")] == [None] * 3
    assert first["probabilities"] is None
    assert second["task"] == "b"
    assert np.isnan(second["loss"])
    assert second["weight"] == float("inf")
    assert second["probabilities"] == [0.75, 0.25]
    assert second["examples"] == 64


def test_the_first_row_of_a_part_has_the_vector_that_held_before() -> None:
    before = np.array([0.5, 0.5])
    assert buffered(row(1), row(2), before=before)["probabilities"].to_pylist() == [
        [0.5, 0.5],
        None,
    ]


def test_a_vector_is_told_only_where_it_changes() -> None:
    one, two = np.array([0.5, 0.5]), np.array([0.1, 0.9])
    rows = [row(1, one), row(2, one.copy()), row(3), row(4, two), row(5, two), row(6, one)]
    told = buffered(*rows)["probabilities"].to_pylist()
    assert told == [[0.5, 0.5], None, None, [0.1, 0.9], None, [0.5, 0.5]]


VECTORS = st.none() | st.sampled_from([[0.5, 0.5], [0.25, 0.75], [1.0, 0.0], [1.0, -0.0]])


@settings(deadline=None)
@given(st.lists(VECTORS, min_size=1, max_size=12), st.data())
def test_thinning_is_the_same_wherever_a_record_is_divided(
    vectors: list[list[float] | None], data: st.DataObject
) -> None:
    rows = [row(i, None if v is None else np.array(v)) for i, v in enumerate(vectors)]
    whole = buffered(*rows)
    cuts = [*sorted(data.draw(st.sets(st.integers(1, len(rows))))), len(rows)]
    buffer = StepBuffer(TASKS, None)
    parts, start = [], 0
    for cut in cuts:
        buffer.extend(rows[start:cut])
        part = buffer.table()
        buffer.clear()
        told = part["probabilities"].to_pylist()
        held = filled(vectors, None)[start:cut]
        assert filled(told, None) == held  # a part reads alone
        parts.append(part)
        start = cut
    merged, vector = [], None
    for part in parts:
        thinned, vector = thin_vectors(part, vector, keep_first=False)
        merged.append(thinned)
    assert pa.concat_tables(merged).to_pylist() == whole.to_pylist()


def test_many_rows_are_sealed_and_none_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_tables, "SEALED_AT", 3)
    buffer = StepBuffer(TASKS, None)
    vector = np.array([0.5, 0.5])
    for step in range(10):
        buffer.append(row(step, vector if step == 4 else None))
    assert buffer.table()["step"].to_pylist() == list(range(10))
    buffer.clear()
    assert len(buffer.table()) == 0
    buffer.append(row(10))
    assert buffer.table()["probabilities"].to_pylist() == [[0.5, 0.5]]


def test_steps_out_of_order_and_tasks_out_of_range_are_told() -> None:
    with pytest.raises(OptionError, match="step 1 after step 2"):
        buffered(row(2), row(1))
    with pytest.raises(OptionError, match="from 0 to 1"):
        buffered(row(1, task=2))


def test_bulk_rows_take_single_numbers_columns_and_vectors() -> None:
    vectors = np.array([[0.5, 0.5], [0.1, 0.9]])
    columns = ([0.5, 0.9], np.array([1.0, 2.0]), None, None, 1.0, 0.1, 32)
    table = buffered(*bulk_rows(7, np.array([0, 1]), vectors, columns))
    assert table["step"].to_pylist() == [7, 7]
    assert table["loss"].to_pylist() == [1.0, 2.0]
    assert table["probabilities"].to_pylist() == vectors.tolist()
    assert table["weight"].to_pylist() == [1.0, 1.0]
    once = buffered(*bulk_rows([7, 8], [0, 1], vectors[0], columns))
    assert once["probabilities"].to_pylist() == [[0.5, 0.5], None]
    assert list(bulk_rows(7, [], None, columns)) == []
    with pytest.raises(ShapeError, match="`loss` should have one value for each of the 2 rows"):
        list(bulk_rows(7, [0, 1], None, (None, [1.0, 2.0, 3.0], None, None, None, 0.1, 32)))

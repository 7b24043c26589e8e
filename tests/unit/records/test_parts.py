"""Tables of a record: rows in parts on the disk, equal however they were divided."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taskmix.errors import OptionError, RecordError
from taskmix.records import _parts
from taskmix.records._parts import (
    TablePart,
    chain_parts,
    iter_batches,
    merge_parts,
    read_part,
    write_part,
)
from taskmix.records._tables import (
    SCORES,
    STEPS,
    StepBuffer,
    StepRow,
    Vector,
    scores_table,
    thin_vectors,
)

TASKS = ["a", "b"]


def score_part(folder: Path, first: int, last: int) -> None:
    rows = [(step, "a", "dev", "accuracy", step / 7) for step in range(first + 1, last + 1)]
    write_part(TablePart.spanning(folder, first, last), scores_table(rows))


def steps_seen(folder: Path) -> list[int]:
    batches = list(iter_batches(folder, SCORES, ["step"], rows=3))
    assert all(len(batch) <= 3 for batch in batches)
    return [step for batch in batches for step in batch["step"].to_pylist()]


def test_a_part_that_spans_others_stands_for_them(tmp_path: Path) -> None:
    for first, last in [(0, 4), (4, 8), (8, 9), (0, 8), (8, 8 + 3), (8, 10)]:
        score_part(tmp_path, first, last)
    assert [(part.first, part.last) for part in chain_parts(tmp_path)] == [(0, 8), (8, 11)]
    assert steps_seen(tmp_path) == list(range(1, 12))
    assert [part.last for part in chain_parts(tmp_path, end=9)] == [8, 9]


def test_a_missing_part_is_told_and_an_empty_folder_is_empty(tmp_path: Path) -> None:
    assert steps_seen(tmp_path / "none") == []
    score_part(tmp_path, 0, 4)
    score_part(tmp_path, 6, 8)
    with pytest.raises(RecordError, match="rows of steps 5 to 8"):
        steps_seen(tmp_path)


def test_other_files_beside_the_parts_are_left_alone(tmp_path: Path) -> None:
    score_part(tmp_path, 0, 4)
    score_part(tmp_path, 4, 5)
    (tmp_path / "notes.txt").touch()
    (tmp_path / "part-1-2.parquet").touch()
    assert steps_seen(tmp_path) == [1, 2, 3, 4, 5]
    merge_parts(tmp_path, SCORES, TASKS)
    assert {path.name for path in tmp_path.iterdir()} == {
        "notes.txt",
        "part-1-2.parquet",
        "part-000000000-000000005.parquet",
    }


def steps_table(count: int, seed: int) -> pa.Table:
    generator, buffer = np.random.default_rng(seed), StepBuffer(TASKS, None)
    for step in range(1, count + 1):
        vector = generator.dirichlet([1, 1]) if generator.random() < 0.3 else None
        numbers = (generator.random(), None, None, None, 0.5, 32)
        buffer.append((step, int(generator.integers(2)), 0.5, vector, *numbers))
    return buffer.table()


def test_merging_gives_equal_bytes_however_the_rows_were_divided(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_parts, "GROUP", 16)
    table = steps_table(100, seed=1)
    contents = []
    for name, cuts in [("a", [0, 50, 100]), ("b", [0, 1, 2, 16, 33, 99, 100])]:
        for first, last in pairwise(cuts):
            write_part(TablePart.spanning(tmp_path / name, first, last), table[first:last])
        merge_parts(tmp_path / name, STEPS, TASKS)
        (path,) = (tmp_path / name).iterdir()
        contents.append(path.read_bytes())
        assert pq.ParquetFile(path).num_row_groups == 7
        assert pq.read_table(path).to_pylist() == table.to_pylist()
    assert contents[0] == contents[1]


def test_a_reader_whose_parts_are_merged_under_it_goes_on_without_loss(tmp_path: Path) -> None:
    for first in range(0, 40, 4):
        score_part(tmp_path, first, first + 4)
    seen: list[int] = []
    for number, batch in enumerate(iter_batches(tmp_path, SCORES, None, rows=3)):
        seen += batch["step"].to_pylist()
        if number == 4:
            merge_parts(tmp_path, SCORES, TASKS)
    assert seen == list(range(1, 41))


def test_a_part_with_other_columns_is_told(tmp_path: Path) -> None:
    part = TablePart.spanning(tmp_path, 0, 1)
    pq.write_table(pa.table({"step": [1]}), part.path)
    with pytest.raises(RecordError, match="other columns"):
        list(read_part(part, SCORES))
    with pytest.raises(OptionError, match="Found `lost`"):
        list(read_part(part, STEPS, ["lost"]))


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


def test_steps_out_of_order_and_tasks_out_of_range_are_told() -> None:
    with pytest.raises(OptionError, match="step 1 after step 2"):
        buffered(row(2), row(1))
    with pytest.raises(OptionError, match="from 0 to 1"):
        buffered(row(1, task=2))

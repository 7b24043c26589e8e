from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from taskmix.errors import TaskFileError
from taskmix.tasks import load_tasks, read_sequences

ROWS = {"Irish": ["kelly", "daly", "doyle"] * 8, "Greek": ["roma", "spiros", "adamou"] * 8}


def train_symbols(path: Path, **options: str) -> dict[str, list[list[str]]]:
    tasks = load_tasks(path, kind="sequences", **options)  # type: ignore[arg-type]
    return {task.name: task.splits["train"].inputs.column("symbols").to_pylist() for task in tasks}


@pytest.mark.parametrize("ending", ["txt", "csv", "jsonl", "parquet"])
@pytest.mark.parametrize("column", ["sequence", "name"])
def test_each_file_of_a_folder_is_a_task(tmp_path: Path, ending: str, column: str) -> None:
    for task, words in ROWS.items():
        path = tmp_path / f"{task}.{ending}"
        if ending == "txt":
            path.write_text("\n".join(words))
        elif ending == "csv":
            path.write_text("\n".join([column, *words]))
        elif ending == "jsonl":
            path.write_text("\n".join(json.dumps({column: word}) for word in words))
        else:
            pq.write_table(pa.table({column: words}), path)
    found = train_symbols(tmp_path, symbols="characters")
    assert set(found) == set(ROWS)
    assert list("kelly") in found["Irish"]


def test_cells_may_be_lists_of_symbols_or_of_vectors(tmp_path: Path) -> None:
    words = [{"task": "a", "sequence": ["go", "on"]}, {"task": "b", "sequence": ["go"]}] * 10
    (tmp_path / "words.jsonl").write_text("\n".join(map(json.dumps, words)))
    assert train_symbols(tmp_path / "words.jsonl")["a"][0] == ["go", "on"]
    numbers = [{"task": "a", "sequence": [3, 1]}] * 10
    (tmp_path / "codes.jsonl").write_text("\n".join(map(json.dumps, numbers)))
    assert train_symbols(tmp_path / "codes.jsonl")["a"][0] == ["3", "1"]
    vectors = [{"task": "a", "sequence": [[1.5, 2.0], [0.5, None]]}] * 10
    (tmp_path / "vectors.jsonl").write_text("\n".join(map(json.dumps, vectors)))
    tasks = load_tasks(tmp_path / "vectors.jsonl", kind="sequences")
    assert tasks["a"].splits["train"].inputs.column("values")[0].as_py() == [
        [1.5, 2.0],
        [0.5, None],
    ]
    single = [{"task": "a", "sequence": [1.5, 2.5]}] * 10
    (tmp_path / "single.jsonl").write_text("\n".join(map(json.dumps, single)))
    tasks = load_tasks(tmp_path / "single.jsonl", kind="sequences")
    assert tasks["a"].splits["train"].inputs.column("values")[0].as_py() == [[1.5], [2.5]]
    (tmp_path / "empty.jsonl").write_text("\n".join(map(json.dumps, [*words, {"sequence": []}])))
    with pytest.raises(TaskFileError, match="line 21"):
        load_tasks(tmp_path / "empty.jsonl", kind="sequences")


def test_the_error_names_the_argument_that_is_missing(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("user,name,town\nx,ab,c\n" * 3)
    with pytest.raises(TaskFileError, match="`sequence_column`") as caught:
        load_tasks(tmp_path / "rows.csv", kind="sequences")
    assert "sequence_column" in caught.value.arguments
    assert "user, name, town" in str(caught.value)


def test_a_file_is_read_in_the_order_of_its_rows(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("task,sequence\nb,x y\na,z\nb,y\n")
    found = read_sequences(path)
    assert found.sequences == [["x", "y"], ["z"], ["y"]]
    assert found.tasks == ["b", "a", "b"]
    lines = tmp_path / "lines.txt"
    lines.write_text("anna cd ls\nbob vi\n")
    assert read_sequences(lines, first_symbol_is_task=True).tasks == ["anna", "bob"]
    assert read_sequences(lines).tasks is None
    vectors = tmp_path / "vectors.jsonl"
    vectors.write_text(json.dumps({"sequence": [[1.0, None], [2.0, 3.5]]}))
    np.testing.assert_array_equal(
        read_sequences(vectors).sequences[0], np.array([[1.0, np.nan], [2.0, 3.5]])
    )

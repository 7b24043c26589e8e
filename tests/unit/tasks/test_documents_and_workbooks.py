"""Rows in JSON documents, workbooks and Arrow files, and which row a sentence names."""

from __future__ import annotations

import datetime
import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.feather as feather
import pytest

from taskmix.errors import MissingExtraError, TaskFileError
from taskmix.tasks import load_tasks, read_rows

ROWS = [{"x": 1, "label": "a"}, {"x": 2.5, "label": "b"}]


def document(tmp_path: Path, content: Any) -> Path:
    path = tmp_path / "rows.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


@pytest.mark.parametrize("orient", ["columns", "records", "index", "split", "table"])
def test_whatever_pandas_writes_is_read(tmp_path: Path, orient: str) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(ROWS)
    path = document(tmp_path, frame.to_json(orient=orient))
    table = read_rows(path).table.select(["x", "label"])
    assert table.to_pylist() == ROWS


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("[1, 2]", "Found 1"),
        ('{"x": [1], "y": [1, 2]}', "should be equally long"),
        ('{"columns": ["x"], "data": [[1, 2]]}', "as many cells as"),
        ('[{"x": 1, "x": 2}]', "each key once"),
        ('[{"x": 1},\n{"x": }]', "line 2"),
        ("[" * 1000 + "]" * 1000, "nested over|too large"),
        ('{"a": {"0": 1, "1": 2}, "b": {"0": 1}}', "the same rows"),
        ("3", "Found 3"),
    ],
)
def test_a_document_of_another_shape_gets_a_sentence(
    tmp_path: Path, content: str, said: str
) -> None:
    with pytest.raises(TaskFileError, match=said):
        read_rows(document(tmp_path, content))


def workbook(path: Path, **sheets: list[list[Any]]) -> Path:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
    book.save(path)
    return path


def test_cells_of_a_workbook_keep_their_types(tmp_path: Path) -> None:
    day = datetime.datetime(2024, 5, 1)
    rows = [["when", "n", "share", "yes", "text", 7], [day, 3, 0.5, True, "a", 1], [None, 4]]
    table = read_rows(workbook(tmp_path / "a.xlsx", s=rows)).table
    assert table.to_pylist() == [
        {"when": "2024-05-01", "n": 3, "share": 0.5, "yes": True, "text": "a", "7": 1},
        {"when": None, "n": 4, "share": None, "yes": None, "text": None, "7": None},
    ]


def test_a_row_of_a_workbook_is_named_as_excel_shows_it(tmp_path: Path) -> None:
    rows = [[], ["x", "label"], *([n, "ab"[n % 2]] for n in range(5)), [], [9, None]]
    path = workbook(tmp_path / "a.xlsx", s=rows)
    with pytest.raises(TaskFileError, match=r"a\.xlsx, row 9"):
        load_tasks(path, strict=True)


def test_without_openpyxl_a_workbook_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = workbook(tmp_path / "a.xlsx", s=[["x"], [1]])
    monkeypatch.setitem(__import__("sys").modules, "openpyxl", None)
    with pytest.raises(MissingExtraError, match="excel"):
        read_rows(path)


@pytest.mark.parametrize("packing", ["lz4", "zstd", "uncompressed"])
def test_a_feather_file_is_the_table_that_was_written(tmp_path: Path, packing: str) -> None:
    words = pa.array(["one", "two", None] * 20)
    table = pa.table(
        {"text": words.dictionary_encode(), "n": range(60), "tokens": [["a"], [], None] * 20}
    )
    feather.write_feather(table, str(tmp_path / "a.feather"), compression=packing, chunksize=7)
    read = read_rows(tmp_path / "a.feather").table
    assert read.column("text").to_pylist() == words.to_pylist()
    assert read.select(["n", "tokens"]).to_pylist() == table.select(["n", "tokens"]).to_pylist()


def test_an_arrow_stream_and_views_of_text_are_read(tmp_path: Path) -> None:
    table = pa.table({"text": pa.array(["a", "a longer text than fits in"], pa.string_view())})
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    (tmp_path / "a.arrow").write_bytes(sink.getvalue())
    assert read_rows(tmp_path / "a.arrow").table.column("text").type == pa.string()

"""Files to tables: what every format gives, and that bad bytes get a sentence with the row."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from taskmix.errors import TaskFileError
from taskmix.tasks._formats._csv import read_csv
from taskmix.tasks._formats._readers import column_names, file_format, read_rows


def write(path: Path, data: str | bytes) -> Path:
    content = data.encode() if isinstance(data, str) else data
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


def error_of(path: Path, **options: int) -> TaskFileError:
    with pytest.raises(TaskFileError) as caught:
        read_rows(path, **options)
    assert str(path) in str(caught.value)
    assert caught.value.path == path
    return caught.value


# Formats


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_json_lines_become_columns_of_their_types(tmp_path: Path, ending: str) -> None:
    rows = [{"text": "é", "label": 1, "tokens": ["a", "b"]}, {"text": "", "label": 2.5}]
    data = "\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
    table = read_rows(write(tmp_path / f"train.jsonl{ending}", data)).table
    assert table.column("label").to_pylist() == [1.0, 2.5]
    assert table.column("text").to_pylist() == ["é", ""]
    assert table.column("tokens").to_pylist() == [["a", "b"], None]


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_csv_cells_are_text_and_may_hold_commas_quotes_and_line_ends(
    tmp_path: Path, ending: str
) -> None:
    path = write(tmp_path / f"a.csv{ending}", 'x,y\r\n1,"a, ""b""\nc"\r\n\r\n007,\r\n')
    rows = read_rows(path)
    assert rows.table.to_pylist() == [{"x": "1", "y": 'a, "b"\nc'}, {"x": "007", "y": ""}]
    assert not rows.typed


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_parquet_keeps_its_types(tmp_path: Path, ending: str) -> None:
    table = pa.table({"x": pa.array([1, 2], pa.int8()), "y": ["a", None]})
    plain = tmp_path / "a.parquet"
    parquet.write_table(table, plain)
    path = plain if not ending else write(tmp_path / "b.parquet.gz", plain.read_bytes())
    assert read_rows(path).table.equals(table)
    assert column_names(path) == ("x", "y")


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_conll_rows_become_sentences(tmp_path: Path, ending: str) -> None:
    data = "\n\nEU\tNNP\tB-ORG\nrejects\tVBZ\tO\n\n\nPeter\tNNP\tB-PER"
    table = read_rows(write(tmp_path / f"a.conll{ending}", data)).table
    assert table.to_pydict() == {
        "1": [["EU", "rejects"], ["Peter"]],
        "2": [["NNP", "VBZ"], ["NNP"]],
        "3": [["B-ORG", "O"], ["B-PER"]],
    }


def test_conll_quotes_and_number_signs_are_tokens(tmp_path: Path) -> None:
    table = read_rows(write(tmp_path / "a.conll", '"\t``\n#\t#\nx"y,z\tNN\n')).table
    assert table.column("1").to_pylist() == [['"', "#", 'x"y,z']]


@pytest.mark.parametrize(
    "data",
    [
        "a O\nb  O\n\nc O\n",  # spaces
        " a O \nb\tO\n \nc O\n",  # spaces around and a TAB in between
        "a\tO\r\nb\tO\r\n\r\nc\tO\r\n",  # line ends of Windows
        "a\tO\nb\tO\n \t \nc\tO\n",  # a blank row of spaces
        "# id = 1\na\tO\nb\tO\n\n# id = 2\nc\tO\n",  # comments
        "-DOCSTART-\t-X-\n\na\tO\nb\tO\n\n-DOCSTART-\t-X-\n\nc\tO\n",  # documents
        "\ufeffa\tO\nb\tO\n\nc\tO\n",  # a byte order mark
    ],
)
def test_conll_dialects_give_the_same_sentences(tmp_path: Path, data: str) -> None:
    table = read_rows(write(tmp_path / "a.conll", data)).table
    assert table.to_pydict() == {"1": [["a", "b"], ["c"]], "2": [["O", "O"], ["O"]]}


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_text_lines_that_are_not_blank_are_rows(tmp_path: Path, ending: str) -> None:
    table = read_rows(write(tmp_path / f"a.txt{ending}", "1 2\n\n  \n3\r\n4")).table
    assert [line.strip() for line in table.column("line").to_pylist()] == ["1 2", "3", "4"]


def test_json_text_that_looks_like_a_date_stays_text(tmp_path: Path) -> None:
    data = '{"text": "2020-01-01", "tokens": ["2020-01-01 10:00"], "o": {"d": "2020-01-01"}}\n'
    table = read_rows(write(tmp_path / "a.jsonl", data)).table
    assert table.column("text").to_pylist() == ["2020-01-01"]
    assert table.column("tokens").to_pylist() == [["2020-01-01 10:00"]]


def test_csv_rows_longer_than_a_block_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("taskmix.tasks._formats._csv._BLOCK", 64)
    table = read_rows(write(tmp_path / "a.csv", "x,y\n" + "z" * 200_000 + ",1\n")).table
    assert len(table.column("x")[0].as_py()) == 200_000


def test_blank_lines_between_json_rows_are_passed_over(tmp_path: Path) -> None:
    rows = read_rows(write(tmp_path / "a.jsonl", '{"a": 1}\n\n\n{"a": 2}\n\n'))
    assert rows.table.column("a").to_pylist() == [1, 2]
    assert rows.row_number(1) == 4


def test_a_column_that_mixes_types_is_no_obstacle_until_it_is_used(tmp_path: Path) -> None:
    data = '{"a": 1, "id": 1, "n": 1}\n{"a": 2, "id": "x", "n": 2.5}\n{"a": 3}\n'
    rows = read_rows(write(tmp_path / "a.jsonl", data))
    assert rows.table.column("a").to_pylist() == [1, 2, 3]
    assert rows.table.column("n").to_pylist() == [1.0, 2.5, None]
    assert rows.unusable == {}
    assert rows.table.column("id").to_pylist() == ["1", "x", None]
    assert "text in line 2 ('x') and a number in line 1" in rows.mixed["id"]


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("train.jsonl", ("train", "jsonl")),
        ("train.CSV.GZ", ("train", "csv")),
        ("a.seq.txt.gz", ("a.seq", "txt")),
        ("train", None),
        (".csv", None),
        ("train.json", ("train", "json")),
        ("a.b.feather", ("a.b", "arrow")),
        ("x.tab.gz", ("x", "tsv")),
        ("train.xls", None),
        ("train.gz", None),
    ],
)
def test_the_format_follows_from_the_name(name: str, known: tuple[str, str] | None) -> None:
    assert file_format(Path(name)) == known


def test_rows_are_numbered_as_an_editor_shows_them(tmp_path: Path) -> None:
    csv = read_rows(write(tmp_path / "a.csv", 'x\n"1\n2"\n\n3\n'))
    assert [csv.row_number(place) for place in range(2)] == [2, 5]
    conll = read_rows(write(tmp_path / "a.conll", "a\tO\n\n\nb\tO\n"))
    assert [conll.row_number(place) for place in range(2)] == [1, 4]
    lines = read_rows(write(tmp_path / "a.txt", "\na\n\nb"))
    assert [lines.row_number(place) for place in range(2)] == [2, 4]


def test_an_empty_file_has_no_rows(tmp_path: Path) -> None:
    for name in ("a.jsonl", "a.csv", "a.conll", "a.txt", "a.jsonl.gz"):
        assert read_rows(write(tmp_path / name, "")).table.num_rows == 0
    assert read_rows(write(tmp_path / "b.csv", "x,y\n")).table.column_names == ["x", "y"]
    assert read_rows(write(tmp_path / "c.csv", "x,y")).table.num_rows == 0
    assert read_rows(write(tmp_path / "b.conll", "\n\n \n")).table.num_rows == 0


# Bad files


TEXT_FORMATS = {
    "jsonl": '{"text": "a", "label": 1}\n',
    "csv": "text,label\na,1\n",
    "conll": "a\tO\n\n",
    "txt": "a b\n",
}


@pytest.mark.parametrize("ending", TEXT_FORMATS)
def test_a_nul_is_refused_with_its_row(tmp_path: Path, ending: str) -> None:
    data = (TEXT_FORMATS[ending] * 3).encode() + b"x\0y\n"
    error = error_of(write(tmp_path / f"a.{ending}", data))
    assert "NUL" in str(error)
    assert error.row == data.count(b"\n")


@pytest.mark.parametrize("ending", TEXT_FORMATS)
def test_bytes_that_are_not_utf8_are_refused_with_their_row(tmp_path: Path, ending: str) -> None:
    data = (TEXT_FORMATS[ending] * 3 + "à\n").encode() + b"caf\xe9\n"
    error = error_of(write(tmp_path / f"a.{ending}.gz", data))
    assert "UTF-8" in str(error)
    assert r"b'\xe9\n'" in str(error)
    assert error.row == data.count(b"\n")


@pytest.mark.parametrize("cut", [1, 10, 20, -8, -1])
@pytest.mark.parametrize("ending", [*TEXT_FORMATS, "parquet"])
def test_gzip_that_breaks_off_is_refused(tmp_path: Path, ending: str, cut: int) -> None:
    lines = TEXT_FORMATS.get(ending, "PAR1") * 50
    path = tmp_path / f"a.{ending}.gz"
    path.write_bytes(gzip.compress(lines.encode())[:cut])
    assert "gzip" in str(error_of(path))


def test_gzip_members_one_after_another_are_one_file(tmp_path: Path) -> None:
    path = tmp_path / "a.txt.gz"
    path.write_bytes(gzip.compress(b"a\n") + gzip.compress(b"b\n") + b"\0" * 512)
    assert read_rows(path).table.column("line").to_pylist() == ["a", "b"]


@pytest.mark.parametrize(
    ("row", "found"),
    [
        ('{"a": }', "Expecting value at character 7"),
        ('{"a": 1', "Expecting ',' delimiter"),
        ("[1, 2]", "'[1, 2]'"),
        ("3", "'3'"),
        ('"text"', "text"),
        ("null", "'null'"),
        ('{"a": 1}{"a": 2}', "Extra data"),
        ('{"a": "\\ud800"}', "surrogate"),
        ('{"a": "x\ty"}', "Invalid control character"),
        ('{"a": 1, "a": ' + "9" * 5000 + "}", "too large"),
        ("\x1b[31m", r"\x1b"),
    ],
)
def test_a_bad_json_row_is_named(tmp_path: Path, row: str, found: str) -> None:
    path = write(tmp_path / "a.jsonl", '{"a": 1}\n\n' + row + '\n{"a": 2}\n')
    error = error_of(path)
    assert error.row == 3
    assert found in str(error)
    assert len(str(error)) < 400
    assert str(error).isprintable()


@pytest.mark.parametrize("start", ["", " ", "\r", "\n", "\r\n", '{"a": 1}\r'])
@pytest.mark.parametrize("end", ["", "\n", "x\n", "}\n"])
def test_null_in_place_of_an_object_is_refused_and_does_not_crash(
    tmp_path: Path, start: str, end: str
) -> None:
    path = write(tmp_path / "a.jsonl", f'{start}null{end}{{"a": 1}}\n')
    assert error_of(path).row in (1, 2)


@pytest.mark.parametrize("depth", [600, 100_000, 3_000_000])
@pytest.mark.parametrize("before", ["", '"b": "' + "]" * 100_000 + '", '])
def test_deep_nesting_is_refused_and_does_not_crash(
    tmp_path: Path, depth: int, before: str
) -> None:
    row = "{" + before + '"a": ' + "[" * depth + "]" * depth + "}\n"
    error = error_of(write(tmp_path / "a.jsonl", '{"a": 1}\n' + row))
    assert error.row == 2


def test_many_brackets_inside_text_are_no_nesting(tmp_path: Path) -> None:
    row = {"text": "[" * 5000, "label": 1}
    table = read_rows(write(tmp_path / "a.jsonl", json.dumps(row))).table
    assert table.to_pylist() == [row]


def test_a_csv_row_of_another_width_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", 'x,y\n1,"a\nb"\n\n1,2,3\n4,5\n')
    error = error_of(path)
    assert error.row == 5
    assert "Found 3 beside 2" in str(error)
    assert error_of(write(tmp_path / "b.csv", "x,y\n1\n")).row == 2


def test_a_csv_quote_that_swallows_more_than_a_line_may_have_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("taskmix.files._allowance.LINE_LIMIT", 1000)
    monkeypatch.setattr("taskmix.tasks._formats._csv._BLOCK", 500)
    path = write(tmp_path / "a.csv", 'x,y\n1,"2\n' + "3,4\n" * 2000)
    assert error_of(path).row == 2


def test_a_csv_that_ends_in_a_cell_of_several_lines_is_read(tmp_path: Path) -> None:
    table = read_csv(write(tmp_path / "a.csv", 'x,y\n1,"a\nb\n"\n'), 2**30)
    assert table.to_pylist() == [{"x": "1", "y": "a\nb\n"}]


@pytest.mark.parametrize(
    ("data", "row", "found"),
    [
        ("a\tX\tO\nb\tX\tO\n\nc\tO\n", 4, "2 columns beside 3 in line 1"),
        ("a\tO\nb\tX\tO\n", 2, "3 columns beside 2 in line 1"),
        ("\n\nhello\nworld\n", 3, "'hello'"),
        ("a\tO\nb\t\n", 2, "''"),
        ("a\tO\n\tO\n", 2, "''"),
        ("a\tO\nb\rc\tO\n", 2, r"'b\rc'"),
        ("a O\nb O O\n", 2, "3 columns beside 2"),
    ],
)
def test_a_bad_conll_row_is_named(tmp_path: Path, data: str, row: int, found: str) -> None:
    error = error_of(write(tmp_path / "a.conll", data))
    assert error.row == row
    assert found in str(error)


def test_parquet_that_is_not_whole_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    parquet.write_table(pa.table({"x": list(range(1000))}), path)
    data = path.read_bytes()
    for broken in (b"", b"PAR1", data[: len(data) // 2], data[:-1], data[: -len(data) // 3]):
        path.write_bytes(broken)
        assert "Parquet" in str(error_of(path))


def test_parquet_text_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    parquet.write_table(pa.table({"text": ["café" * 20]}), path, compression="none")
    path.write_bytes(path.read_bytes().replace("é".encode(), b"\xff\xff"))
    assert "Parquet" in str(error_of(path))


def test_what_is_not_a_plain_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "train.jsonl").mkdir()
    assert "plain file" in str(error_of(tmp_path / "train.jsonl"))
    os.mkfifo(tmp_path / "a.csv")
    assert "plain file" in str(error_of(tmp_path / "a.csv"))
    (tmp_path / "b.parquet").symlink_to(tmp_path / "nowhere")
    assert "no such file" in str(error_of(tmp_path / "b.parquet"))


def test_an_unknown_ending_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TaskFileError, match=r"\.xlsx, .* Save it as .xlsx or .csv"):
        read_rows(tmp_path / "train.xls")


READ = """
import sys
from pathlib import Path
from taskmix.tasks import read_rows
read_rows(Path("rows.jsonl"))
read_rows(Path("rows.csv"))
sys.exit(2)
"""


def test_no_thread_of_the_reader_is_left_to_abort_the_process(tmp_path: Path) -> None:
    write(tmp_path / "rows.csv", "a,b,c\n" + "1,2,3\n" * 50_000)
    write(tmp_path / "rows.jsonl", '{"a": 1, "b": 2}\n' * 50_000)
    ended = subprocess.run([sys.executable, "-c", READ], cwd=tmp_path, timeout=120, check=False)
    assert ended.returncode == 2

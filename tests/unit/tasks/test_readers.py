"""Files to tables: what every format gives, and that bad bytes get a sentence with the row."""

from __future__ import annotations

import datetime
import gzip
import io
import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as parquet
import pytest
from hypothesis import strategies as st

from taskmix.errors import MissingExtraError, TaskFileError
from taskmix.tasks import load_tasks, text_lines
from taskmix.tasks._formats import _streams
from taskmix.tasks._formats._readers import column_names, file_format, read_rows
from taskmix.tasks._formats._streams import NotTextError, TextDecoder


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


# Text files of any encoding: the same rows, whatever the blocks they come in.

TEXT = "text,label\r\ncafé „naïve“,a\r\nüber €,b\r\n"
ENCODINGS = ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "cp1252"]


def decoded(data: bytes, size: int) -> tuple[bytes, str]:
    decoder = TextDecoder()
    blocks = [data[start : start + size] for start in range(0, len(data), size)]
    whole = b"".join(decoder.decode(block) for block in blocks) + decoder.decode(b"", final=True)
    return whole, decoder.encoding


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_the_size_of_blocks_does_not_matter(encoding: str) -> None:
    # Without a mark, UTF-16 is told by more bytes than the smallest blocks have.
    smallest = 24 if encoding in ("utf-16-le", "utf-16-be") else 1
    for size in range(smallest, 80):
        assert decoded(TEXT.encode(encoding), size)[0].decode() == TEXT


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_rows_and_their_numbers_do_not_depend_on_the_encoding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, encoding: str
) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(TEXT.encode(encoding))
    for size in (64, 2**20):
        monkeypatch.setattr(_streams, "_BLOCK", size)
        rows = read_rows(path)
        assert rows.table.to_pylist()[1] == {"text": "über €", "label": "b"}
        assert rows.row_number(1) == 3
        is_other = not encoding.startswith("utf-8")
        assert any("is not UTF-8 and was read as" in remark for remark in rows.remarks) == is_other
    assert list(text_lines(path))[2] == "über €,b"


def test_a_late_byte_of_cp1252_is_read_and_a_late_broken_byte_of_utf8_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_streams, "_BLOCK", 1000)
    plain = b"text,label\n" + b"some words,a\n" * 300
    path = tmp_path / "a.csv"
    path.write_bytes(plain + b"caf\xe9,b\n")
    assert read_rows(path).table.column("text")[-1].as_py() == "café"
    path.write_bytes(plain.replace(b"some", "söme".encode()) + b"caf\xe9,b\n")
    with pytest.raises(TaskFileError, match="should be UTF-8") as caught:
        read_rows(path)
    assert caught.value.row == 302


def test_a_character_that_the_end_of_a_block_cuts_may_be_of_either_encoding() -> None:
    assert decoded(b"abcd\xe9", 5) == ("abcdé".encode(), "cp1252")
    assert decoded(b"abcd\xc3\xa9", 5) == ("abcdé".encode(), "utf-8")
    assert decoded(b"abcd\xc3", 5) == ("abcdÃ".encode(), "cp1252")


@pytest.mark.parametrize(
    "data",
    [
        b"text \x81 more",  # nothing in cp1252
        b"\x01\x02\xff\xfe binary",
        "eins é zwei é drei é".encode() + b"\xe9",  # mostly UTF-8
        b"\xe9 " + "eins é zwei é drei é".encode(),
        "ab".encode("utf-16") + b"\x00\xd8",  # half a pair
    ],
)
def test_what_is_neither_is_refused(data: bytes) -> None:
    with pytest.raises(NotTextError):
        decoded(data, 7)


# Separators, quotes and numbers of files that other programs wrote.


def read(tmp_path: Path, text: str, name: str = "a.csv") -> tuple[dict[str, list[str]], list[str]]:
    path = tmp_path / name
    path.write_text(text, newline="")
    rows = read_rows(path)
    return rows.table.to_pydict(), list(rows.remarks)


cells = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=8)


@pytest.mark.parametrize(
    ("text", "separator"),
    [
        ("text,label\na; b; c,1\n", ","),  # semicolons are in the text
        ("text;label\none, two;1\nthree, four, five;2\n", ";"),
        ("a,b;c\n1,2;3\n", ","),  # both would do: the usual one
        ("text\njust words\n", ","),
        ("x|y\n1|2\n", "|"),
        ('text;label\n"a;b";1\n', ";"),
    ],
)
def test_the_separator_is_the_one_that_cuts_all_rows_alike(
    tmp_path: Path, text: str, separator: str
) -> None:
    table, _ = read(tmp_path, text)
    assert list(table) == text.splitlines()[0].split(separator)


def test_rows_keep_the_numbers_that_an_editor_shows(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text('sep=;\nx;y\n1;2\n;\n"3\n3";4\n\nx;y\n5;6\n')
    rows = read_rows(path)
    assert rows.table.column("x").to_pylist() == ["1", "3\n3", "5"]
    assert [rows.row_number(place) for place in range(3)] == [3, 5, 9]


def test_a_header_that_begins_with_a_hash_is_one(tmp_path: Path) -> None:
    table, remarks = read(tmp_path, "#id,text\n1,a\n2,b\n")
    assert table == {"#id": ["1", "2"], "text": ["a", "b"]}
    assert remarks == []


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (["1,5", "2", "-3,25"], ["1.5", "2", "-3.25"]),
        (["1.234,5", "1.000", "7,25"], ["1234.5", "1000", "7.25"]),
        (["1,234,567", "1,000", "12"], ["1234567", "1000", "12"]),
        (["0,123", "1,234", "5"], ["0.123", "1.234", "5"]),  # a thousand does not begin with 0
        (["1,234", "2,345", "5"], ["1,234", "2,345", "5"]),  # nobody can tell
        (["1,5", "1,234,567"], ["1,5", "1,234,567"]),  # it says both
        (["a, b", "1,5"], ["a, b", "1,5"]),
        (["1.5", "2.25"], ["1.5", "2.25"]),
    ],
)
def test_commas_in_numbers_are_read_where_they_can_mean_one_thing(
    tmp_path: Path, written: list[str], meant: list[str]
) -> None:
    table, _ = read(tmp_path, "x;y\n" + "".join(f"{cell};k\n" for cell in written))
    assert table["x"] == meant


# Rows in JSON documents, workbooks and Arrow files, and which row a sentence names.

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


# Each file once


@pytest.mark.parametrize(
    "ending", ["csv", "tsv", "csv.gz", "jsonl", "json", "parquet", "feather", "conll", "txt"]
)
def test_a_sound_file_is_opened_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    rows = [{"text": f"a text number {n} of them", "label": "ab"[n % 2]} for n in range(30)]
    cells = [list(rows[0]), *(list(row.values()) for row in rows)]
    written: dict[str, str | bytes] = {
        "csv": "".join(",".join(row) + "\n" for row in cells),
        "tsv": "".join("\t".join(row) + "\n" for row in cells),
        "csv.gz": gzip.compress("".join(",".join(row) + "\n" for row in cells).encode()),
        "jsonl": "".join(json.dumps(row) + "\n" for row in rows),
        "json": json.dumps(rows),
        "conll": "a\tX\nb\tY\n\n" * 9,
        "txt": "a b\nb c\n" * 9,
    }
    for split in ("train", "dev"):
        path = tmp_path / f"{split}.{ending}"
        if ending == "parquet":
            parquet.write_table(pa.Table.from_pylist(rows), path)
        elif ending == "feather":
            feather.write_feather(pa.Table.from_pylist(rows), str(path))
        else:
            content = written[ending]
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
    opened: list[str] = []
    open_file = os.open

    def counted(path: Path, *more: int) -> int:
        opened.append(Path(path).name)
        return open_file(path, *more)

    monkeypatch.setattr("taskmix.files._plain.os.open", counted)
    load_tasks(tmp_path)
    assert sorted(opened) == [f"dev.{ending}", f"train.{ending}"]

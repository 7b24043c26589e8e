"""Separators, quotes and numbers of files that other programs wrote."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import strategies as st

from taskmix.tasks import read_rows


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


def test_quoted_cells_of_a_file_with_tabs_lose_their_quotes(tmp_path: Path) -> None:
    table, remarks = read(tmp_path, '"text"\t"label"\n"a\tb\nc"\t"1"\n', "a.tsv")
    assert table == {"text": ["a\tb\nc"], "label": ["1"]}
    assert remarks == []


def test_columns_without_a_name_that_hold_something_are_said(tmp_path: Path) -> None:
    table, remarks = read(tmp_path, "x,,y,\n1,a,2,\n3,b,4,\n")
    assert table == {"x": ["1", "3"], "y": ["2", "4"]}
    assert "1 column without a name or a cell" in remarks[0]
    assert "a column without a name" in remarks[1]


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


def test_one_column_tells_what_commas_of_another_mean(tmp_path: Path) -> None:
    table, remarks = read(tmp_path, "x;y\n1,234;1,5\n2,345;2,5\n")
    assert table["x"] == ["1.234", "2.345"]
    assert len([each for each in remarks if "decimal commas" in each]) == 2

"""Files as people have them, and what happens with each: the rows of docs/messy-files.md.

`python tests/docs/messy_cases.py` writes the tables of that page; a test compares them with it.
"""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as parquet

Content = str | bytes | Callable[[], bytes]
PAGE = Path(__file__).parents[2] / "docs" / "messy-files.md"
FILMS = [("y" if n % 2 else "n", f"a café film number {n} ok") for n in range(20)]
TABLE = "text,label\n" + "".join(f"{text},{label}\n" for label, text in FILMS)
BOOKS = "text,label\n" + "".join(f"a plain book number {n} ok,{'ab'[n % 2]}\n" for n in range(20))
NUMBERS = [(n * 1.5, n % 7, n % 2) for n in range(1, 41)]


@dataclass(frozen=True, kw_only=True)
class Case:
    """One kind of file; `tasks` None means that it is refused."""

    have: str
    happens: str
    says: str = ""  # words of a note, or of the sentence
    files: Mapping[str, Content]
    tasks: Mapping[str, int] | None  # rows of each task
    source: str = "."  # below the folder
    options: Mapping[str, Any] = field(default_factory=dict)
    labels: tuple[str, ...] | None = None  # of the first task
    kind: str | None = None
    columns: tuple[str, ...] | None = None  # that it reads
    holds: Any = None  # a value of the first of them, in some row
    needs: str | None = None  # a package


def rows_json(count: int = 20, **more: Any) -> list[dict[str, Any]]:
    return [{"text": text, "label": label, **more} for label, text in FILMS[:count]]


def arrow_table() -> pa.Table:
    return pa.table({"text": [text for _, text in FILMS], "label": [label for label, _ in FILMS]})


def in_memory(write: Callable[..., object], *arguments: Any) -> bytes:
    sink = io.BytesIO()
    write(*arguments, sink)
    return sink.getvalue()


def workbook(**sheets: list[list[Any]]) -> Callable[[], bytes]:
    def make() -> bytes:
        import openpyxl

        book = openpyxl.Workbook()
        book.remove(book.active)
        for name, rows in sheets.items():
            sheet = book.create_sheet(name)
            for row in rows:
                sheet.append(row)
        return in_memory(book.save)

    return make


def sheet_of(rows: list[tuple[str, str]]) -> list[list[Any]]:
    return [["Text", "Label"], *([text, label] for label, text in rows)]


def separated(by: str) -> str:
    return TABLE.replace(",", by)


def numbers(pattern: str, header: str = "x,z,label") -> str:
    return header + "\n" + "".join(pattern.format(x=x, z=z, y=y) + "\n" for x, z, y in NUMBERS)


def comma(value: float) -> str:
    return f"{value:.2f}".replace(".", ",")


EUROPEAN = "preis;z;label\n" + "".join(f"{comma(x)};{z};{y}\n" for x, z, y in NUMBERS)
GERMAN = "preis;z;label\n" + "".join(f"1.{n:03d},50;{n % 7};{n % 2}\n" for n in range(40))
MILES = "miles,z,label\n" + "".join(f'"{n + 1},234.5",{n % 7},{n % 2}\n' for n in range(40))
UNCLEAR = "miles;z;label\n" + "".join(f"{n % 9 + 1},234;{n % 7};{n % 2}\n" for n in range(40))
INDEXED = "".join(f"{n - 1 if n else ''},{row}\n" for n, row in enumerate(TABLE.splitlines()))
HOLES = "x,z,label\n" + "".join(
    f"{x},{z},{'?' if n == 9 else x / 7:}\n" for n, (x, z, _) in enumerate(NUMBERS)
)
TWO = "text,stars,mood\n" + "".join(
    f"{text},{'' if n == 3 else n % 2},{'' if n in (3, 5) else label}\n"
    for n, (label, text) in enumerate(FILMS)
)
ALL = {"a": 20}

CASES: dict[str, list[Case]] = {
    "Names of columns": [
        Case(
            have="`Text`, `LABEL`: other letters than `text` and `label`",
            happens="found whatever the case",
            files={"a.csv": TABLE.replace("text,label", "Text,LABEL")},
            source="a.csv",
            tasks=ALL,
            columns=("Text",),
            labels=("n", "y"),
        ),
        Case(
            have="blanks, quotes, a non-breaking space around a name",
            happens="found without them",
            files={"a.csv": TABLE.replace("text,label", ' text ,"\u00a0label "')},
            source="a.csv",
            tasks=ALL,
            labels=("n", "y"),
        ),
        Case(
            have="`--label Category`, and the column is `category`",
            happens="found whatever the case; so are all names that you give",
            files={"a.csv": TABLE.replace("text,label", "text,category")},
            source="a.csv",
            options={"label": "Category", "text": "TEXT"},
            tasks=ALL,
        ),
        Case(
            have="two columns that differ only in case, none of them exact",
            happens="refused; the exact name always wins",
            says="differ only in case",
            files={"a.csv": "Label,LABEL,x\n" + "a,b,1\n" * 9},
            source="a.csv",
            tasks=None,
        ),
        Case(
            have="a `train` file with `Label` and a `dev` file with `label`",
            happens="called as in the first file",
            files={"train.csv": TABLE.replace("label", "Label"), "dev.csv": TABLE},
            tasks={"tasks": 40},
        ),
        Case(
            have="no `label`, but one column called `target`, `class`, `category` or the like",
            happens="taken for the label",
            says="`Sentiment` was taken for the label, as no column is called `label`",
            files={"a.csv": TABLE.replace("label", "Sentiment")},
            source="a.csv",
            tasks=ALL,
        ),
        Case(
            have="two such columns",
            happens="refused: name one with `--label`",
            says="There should be a column named label, or one that is plainly to be predicted",
            files={"a.csv": "text,class,target\n" + "a b,1,2\nc d,2,1\n" * 9},
            source="a.csv",
            tasks=None,
        ),
        Case(
            have="a file without a header",
            happens="refused",
            says="which look like a row of data",
            files={"a.csv": TABLE.split("\n", 1)[1]},
            source="a.csv",
            tasks=None,
        ),
        Case(
            have="two columns of one name",
            happens="refused",
            says="Column names should differ. Found 'text' twice",
            files={"a.csv": TABLE.replace("text,label", "text,text")},
            source="a.csv",
            tasks=None,
        ),
        Case(
            have="a first column without a name, as pandas writes its index",
            happens="left out",
            says="has a first column without a name, taken for numbers of rows and left out",
            files={"a.csv": INDEXED},
            source="a.csv",
            tasks=ALL,
            columns=("text",),
        ),
        Case(
            have="a column `Unnamed: 0`",
            happens="left out of a table's features",
            says="`Unnamed: 0` numbers the rows and was left out",
            files={
                "a.csv": "Unnamed: 0,x,label\n"
                + "".join(f"{n},{x},{y}\n" for n, (x, _, y) in enumerate(NUMBERS))
            },
            source="a.csv",
            tasks={"a": 40},
            columns=("x",),
        ),
    ],
    "Cells and separators": [
        Case(
            have="semicolons in a `.csv`",
            happens="read",
            says="a.csv is separated by semicolons, not commas",
            files={"a.csv": separated(";")},
            source="a.csv",
            tasks=ALL,
            labels=("n", "y"),
        ),
        Case(
            have="tabs in a `.csv`",
            happens="read",
            says="is separated by tabs, not commas",
            files={"a.csv": separated("\t")},
            source="a.csv",
            tasks=ALL,
        ),
        Case(
            have="vertical bars in a `.csv`",
            happens="read",
            says="is separated by vertical bars, not commas",
            files={"a.csv": separated("|")},
            source="a.csv",
            tasks=ALL,
        ),
        Case(
            have="a `.tsv` (or `.tab`), also with `.gz` behind it",
            happens="read",
            files={"a.tsv.gz": gzip.compress(separated("\t").encode())},
            source="a.tsv.gz",
            tasks=ALL,
        ),
        Case(
            have="a `.tsv` in which a text begins with a lone quote",
            happens="read, with quotes as letters",
            says="has quotes that do not close, so quotes were read as letters",
            files={"a.tsv": separated("\t").replace("a café film number 3", '"a café')},
            source="a.tsv",
            tasks=ALL,
            holds='"a café ok',
        ),
        Case(
            have="a first line `sep=;` of Excel",
            happens="taken at its word",
            says="is separated by semicolons",
            files={"a.csv": "sep=;\n" + separated(";")},
            source="a.csv",
            tasks=ALL,
        ),
        Case(
            have="comments (`# ...`) before the header",
            happens="passed over",
            says="begins with 2 comments (`#`), which were passed over",
            files={"a.csv": "# made by hand\n# in spring\n" + TABLE},
            source="a.csv",
            tasks=ALL,
        ),
        Case(
            have="line breaks and commas inside of quotes",
            happens="part of the cell",
            files={"a.csv": TABLE + '"two lines,\nof one text",y\n'},
            source="a.csv",
            tasks={"a": 21},
            holds="two lines,\nof one text",
        ),
        Case(
            have="line ends of Windows, or of an old Mac",
            happens="read",
            files={"train.csv": TABLE.replace("\n", "\r\n"), "dev.csv": TABLE.replace("\n", "\r")},
            tasks={"tasks": 40},
        ),
        Case(
            have="empty columns at the end (`;;;`)",
            happens="left out",
            says="has 3 columns without a name or a cell, left out",
            files={"a.csv": separated(";").replace("\n", ";;;\n")},
            source="a.csv",
            tasks=ALL,
        ),
        Case(
            have="rows with empty cells beyond the header",
            happens="these cells are left out",
            says="has 1 row with empty cells beyond the header",
            files={"a.csv": TABLE + "one more text,y,,\n"},
            source="a.csv",
            tasks={"a": 21},
        ),
        Case(
            have="rows of empty cells at the end",
            happens="left out",
            says="has 2 rows without any value, left out",
            files={"a.csv": TABLE + ",\n,\n\n\n"},
            source="a.csv",
            tasks=ALL,
        ),
        Case(
            have="the header again in the middle, after files were put together",
            happens="left out",
            says="has a row that repeats the header, left out",
            files={"a.csv": TABLE + BOOKS},
            source="a.csv",
            tasks={"a": 40},
        ),
        Case(
            have="a row with too few or too many cells",
            happens="refused, with its number",
            says="Found 3 beside 2 in",
            files={"a.csv": TABLE + "a text, with a comma,y\n"},
            source="a.csv",
            tasks=None,
        ),
        Case(
            have="a quote that never closes",
            happens="refused, with its row",
            says="A quote that opens should close",
            files={"a.csv": TABLE + '"an open text,y\nmore,n\n'},
            source="a.csv",
            tasks=None,
        ),
        Case(
            have="decimal commas (`1,50`) in a file with semicolons",
            happens="numbers",
            says="has decimal commas in the column `preis` (such as '1,50')",
            files={"a.csv": EUROPEAN},
            source="a.csv",
            tasks={"a": 40},
            holds=1.5,
        ),
        Case(
            have="points between thousands beside them (`1.234,50`)",
            happens="numbers",
            says="has decimal commas in the column `preis` (such as '1.000,50')",
            files={"a.csv": GERMAN},
            source="a.csv",
            tasks={"a": 40},
            holds=1001.5,
        ),
        Case(
            have='commas between thousands (`"1,234.5"`)',
            happens="numbers",
            says="has commas between thousands in the column `miles`",
            files={"a.csv": MILES},
            source="a.csv",
            tasks={"a": 40},
            holds=1234.5,
        ),
        Case(
            have="only cells such as `1,234`, which may be either",
            happens="read as text: nobody can tell",
            says="which may be a decimal comma or a thousand",
            files={"a.csv": UNCLEAR},
            source="a.csv",
            tasks={"a": 40},
            holds="1,234",
        ),
    ],
    "Encodings": [
        Case(
            have="UTF-8 with a byte order mark",
            happens="read",
            files={"a.csv": TABLE.encode("utf-8-sig")},
            source="a.csv",
            tasks=ALL,
            columns=("text",),
        ),
        Case(
            have='UTF-16, as Excel\'s "Unicode text" is',
            happens="read",
            says="is not UTF-8 and was read as UTF-16",
            files={"a.tsv": separated("\t").encode("utf-16")},
            source="a.tsv",
            tasks=ALL,
            holds="a café film number 0 ok",
        ),
        Case(
            have="UTF-16 without its mark",
            happens="recognised by its zeros",
            says="is not UTF-8 and was read as UTF-16",
            files={
                "a.jsonl": "".join(json.dumps(row) + "\n" for row in rows_json()).encode(
                    "utf-16-be"
                )
            },
            source="a.jsonl",
            tasks=ALL,
        ),
        Case(
            have="Windows-1252 (cp1252, Latin-1)",
            happens="read, if the file is no UTF-8",
            says="is not UTF-8 and was read as Windows-1252 (cp1252)",
            files={"a.csv": TABLE.replace("café", "café “bon”").encode("cp1252")},
            source="a.csv",
            tasks=ALL,
            holds="a café “bon” film number 0 ok",
        ),
        Case(
            have="UTF-8 with a few broken bytes",
            happens="refused, with the row: as cp1252 all other letters would be wrong",
            says="A text file should be UTF-8. Found the bytes b'\\xff",
            files={"a.csv": TABLE.encode() + b"a broken \xff byte,y\n"},
            source="a.csv",
            tasks=None,
        ),
        Case(
            have="bytes that are no text in any of these",
            happens="refused",
            says="A text file should be UTF-8",
            files={"a.csv": b"text,label\na\x81b,y\n"},
            source="a.csv",
            tasks=None,
        ),
    ],
    "Formats": [
        Case(
            have="`.json`: a list of objects",
            happens="one row each",
            files={"a.json": json.dumps(rows_json())},
            source="a.json",
            tasks=ALL,
            labels=("n", "y"),
        ),
        Case(
            have="`.json`: an object of columns, or what pandas' `to_json` writes in any `orient`",
            happens="read as a table",
            files={
                "a.json": json.dumps(
                    {
                        "text": {str(n): text for n, (_, text) in enumerate(FILMS)},
                        "label": {str(n): label for n, (label, _) in enumerate(FILMS)},
                    }
                )
            },
            source="a.json",
            tasks=ALL,
        ),
        Case(
            have='`.json`: lists by split, `{"train": [...], "dev": [...]}`',
            happens="its splits",
            says="has lists of rows by split: 'train', 'dev'",
            files={"a.json": json.dumps({"train": rows_json(12), "dev": rows_json(8)})},
            source="a.json",
            tasks=ALL,
        ),
        Case(
            have='`.json`: lists by task, `{"books": [...], "dvd": [...]}`',
            happens="a task for each",
            says="has lists of rows by task: 'books', 'dvd'",
            files={"a.json": json.dumps({"books": rows_json(), "dvd": rows_json(10)})},
            source="a.json",
            tasks={"books": 20, "dvd": 10},
        ),
        Case(
            have='`.json`: rows under one key, `{"version": 1, "data": [...]}`',
            happens="its rows",
            says="has its rows under 'data'",
            files={"a.json": json.dumps({"version": 1, "data": rows_json()})},
            source="a.json",
            tasks=ALL,
        ),
        Case(
            have="`.json` with one object a line",
            happens="read as JSON lines",
            says="was read as JSON lines",
            files={"a.json": "".join(json.dumps(row) + "\n" for row in rows_json())},
            source="a.json",
            tasks=ALL,
        ),
        Case(
            have="`.jsonl` that is one list",
            happens="read as a document",
            says="is one list, and was read as a JSON document",
            files={"a.jsonl": json.dumps(rows_json(), indent=1)},
            source="a.jsonl",
            tasks=ALL,
        ),
        Case(
            have="`.json` of another shape",
            happens="refused",
            says="A .json file should be a list of objects",
            files={"a.json": '{"text": "a", "label": 3}'},
            source="a.json",
            tasks=None,
        ),
        Case(
            have="`.xlsx` (extra `excel`)",
            happens="the first sheet that has cells, with empty rows passed over",
            files={"a.xlsx": workbook(Empty=[], Films=[[], *sheet_of(FILMS)])},
            source="a.xlsx",
            tasks=ALL,
            holds="a café film number 0 ok",
            needs="openpyxl",
        ),
        Case(
            have="`.xlsx` with sheets `train` and `test`",
            happens="splits",
            says="has a sheet for each split: 'train', 'test'",
            files={"a.xlsx": workbook(train=sheet_of(FILMS[:14]), test=sheet_of(FILMS[14:]))},
            source="a.xlsx",
            tasks=ALL,
            needs="openpyxl",
        ),
        Case(
            have="`.xlsx` with several sheets that have the same columns",
            happens="a task for each; other sheets are left alone",
            says="has a sheet for each task: 'books', 'dvd'",
            files={
                "a.xlsx": workbook(
                    books=sheet_of(FILMS), dvd=sheet_of(FILMS[:10]), notes=[["made in"], ["May"]]
                )
            },
            source="a.xlsx",
            tasks={"books": 20, "dvd": 10},
            needs="openpyxl",
        ),
        Case(
            have="`.xlsx` with `#N/A` and other errors in cells",
            happens="missing cells",
            says="has 2 cells with errors such as #N/A",
            files={
                "a.xlsx": workbook(
                    s=[["x", "label"], *([x, y] for x, _, y in NUMBERS), ["#N/A", 1], ["#REF!", 0]]
                )
            },
            source="a.xlsx",
            tasks={"a": 42},
            needs="openpyxl",
        ),
        Case(
            have="`.parquet`, `.feather`, `.arrow`",
            happens="read, with their types",
            files={
                "train.parquet": lambda: in_memory(parquet.write_table, arrow_table()),
                "dev.feather": lambda: in_memory(feather.write_feather, arrow_table()),
            },
            tasks={"tasks": 40},
        ),
        Case(
            have="`.txt` without a label",
            happens="sequences of symbols, one a line",
            files={"a.txt": "b a c\nc c a b\n" * 10},
            source="a.txt",
            tasks=ALL,
            kind="sequences",
        ),
        Case(
            have="`.xls`, `.ods`, `.numbers`",
            happens="refused: save it as .xlsx or .csv",
            says="Save it as .xlsx or .csv in the program that made it",
            files={"a.xls": b"\xd0\xcf\x11\xe0"},
            source="a.xls",
            tasks=None,
        ),
        Case(
            have="`.pkl`, `.joblib`, `.pt`",
            happens="refused: such files can run code",
            says="Such files can run code when they are read",
            files={"a.pkl": b"\x80\x04N."},
            tasks=None,
        ),
        Case(
            have="`.npz`, `.sav`, `.dta`, `.sqlite`, `.zip` and others",
            happens="refused, with what to convert it to",
            says="Export it as .csv",
            files={"a.sav": b"$FL2"},
            source="a.sav",
            tasks=None,
        ),
    ],
    "Folders": [
        Case(
            have="one file for each task: `books.csv`, `dvd.csv`",
            happens="tasks `books` and `dvd`",
            says="each of its files is a task: books.csv, dvd.csv",
            files={"books.csv": BOOKS, "dvd.csv": TABLE},
            tasks={"books": 20, "dvd": 20},
        ),
        Case(
            have="`books_train.csv`, `books_test.csv` (or `train.books.csv`)",
            happens="splits of the task `books`",
            files={
                "books_train.csv": BOOKS,
                "books_test.csv": BOOKS,
                "test-dvd.csv": TABLE,
                "train-dvd.csv": TABLE,
            },
            tasks={"books": 40, "dvd": 40},
        ),
        Case(
            have="README, LICENSE, `.DS_Store`, `~$books.xlsx`, `requirements.txt` beside them",
            happens="no tasks",
            files={
                "books.csv": BOOKS,
                "README.csv": "see,the,web\n",
                "license.txt": "do as you like",
                ".DS_Store": b"\0",
                "~$books.xlsx": b"lock",
                "requirements.txt": "taskmix",
            },
            tasks={"tasks": 20},
        ),
        Case(
            have="a folder for each task, and files beside the folders",
            happens="the folders are the tasks",
            says="files beside them were left alone: all.csv",
            files={"books/train.csv": BOOKS, "dvd/train.csv": TABLE, "all.csv": BOOKS},
            tasks={"books": 20, "dvd": 20},
        ),
        Case(
            have="a folder for each task with one table of any name",
            happens="each is a task",
            files={"books/data.csv": BOOKS, "dvd/final (2).csv": TABLE},
            tasks={"books": 20, "dvd": 20},
        ),
        Case(
            have="several tables, of which one has the columns asked for",
            happens="that one is the task",
            files={"people.csv": TABLE, "codes.csv": "code,meaning\n1,one\n", "about.json": "[1]"},
            tasks={"tasks": 20},
        ),
        Case(
            have="`pos.txt` and `neg.txt`, a text a line",
            happens="one task, the names are its labels",
            says="each line of neg.txt, pos.txt was taken for a text, and the name for its label",
            files={"pos.txt": "a good film\n" * 10, "neg.txt": "a bad film\n" * 10},
            tasks={"tasks": 20},
            labels=("neg", "pos"),
        ),
    ],
    "Splits": [
        Case(
            have="one table without splits",
            happens="80, 10 and 10 in a hundred of each class, always the same rows; rows with the same "
            "inputs stay together",
            says="80, 10 and 10 in a hundred of each class, by a fixed rule, became train, dev and test",
            files={"a.csv": TABLE},
            source="a.csv",
            tasks=ALL,
        ),
        Case(
            have="`train` and `test`, but no `dev`",
            happens="a tenth of each class of train is put aside",
            says="every tenth row of train, of each class and by a fixed rule, was put aside as dev",
            files={"train.csv": TABLE, "test.csv": BOOKS.replace(",a", ",n").replace(",b", ",y")},
            tasks={"tasks": 40},
        ),
        Case(
            have="`Train`, `valid`, `val`, `validation`, `development`, `testing`",
            happens="known as train, dev and test",
            files={"training.csv": TABLE, "Validation.csv": TABLE},
            tasks={"tasks": 40},
        ),
        Case(
            have="a column `Split` with `train`, `dev`, `test`",
            happens="honoured; a cell that is missing is refused",
            says="or test in every row. Found nothing in",
            files={
                "a.csv": TABLE.replace("label\n", "label,Split\n")
                .replace("n\n", "n,train\n")
                .replace("y\n", "y,dev\n")
                + "one more,y,\n"
            },
            source="a.csv",
            tasks=None,
        ),
        Case(
            have="a `test` without the label, as competitions have it",
            happens="left out",
            says="test.csv has no column `label`, so it was left out",
            files={"train.csv": TABLE, "test.csv": "text\n" + "an unknown text\n" * 5},
            tasks={"tasks": 20},
        ),
    ],
    "Missing cells": [
        Case(
            have="a row without a label (empty, `null`, NaN)",
            happens="left out and counted; refused with `--strict`",
            says="1 of 21 rows has no `label` and was left out; the first is a.csv, line 22",
            files={"a.csv": TABLE + "a text without a label,\n"},
            source="a.csv",
            tasks=ALL,
        ),
        Case(
            have="the same with `--strict`",
            happens="refused",
            says="Every row should have `label`. Found nothing in",
            files={"a.csv": TABLE + "a text without a label,\n"},
            source="a.csv",
            options={"strict": True},
            tasks=None,
        ),
        Case(
            have="no label in any row",
            happens="refused",
            says="Some rows should have `label`. Found none in any of 9 rows",
            files={"a.csv": "text,label\n" + "a text,\n" * 9},
            source="a.csv",
            tasks=None,
        ),
        Case(
            have="`?` or `NA` among the numbers of a regression",
            happens="these rows are left out",
            says="1 of 40 rows has no number as `label` ('?') and was left out",
            files={"a.csv": HOLES},
            source="a.csv",
            tasks={"a": 39},
            kind="regression",
        ),
        Case(
            have="the labels `None` or `NA` among words",
            happens="classes: they may be true ones",
            says="`label` is 'None' in 10 rows, which was kept as a class",
            files={"a.csv": TABLE.replace(",n\n", ",None\n")},
            source="a.csv",
            tasks=ALL,
            labels=("None", "y"),
        ),
        Case(
            have="a row without a task in the task column",
            happens="left out and counted",
            says="1 of 21 rows has no `task` and was left out",
            files={"a.csv": TABLE.replace("text,label", "text,task") + "text of no task,\n"},
            source="a.csv",
            options={"label": "text", "kind": "classification", "features": ["task"]},
            tasks={"n": 10, "y": 10},
        ),
        Case(
            have="several labels, of which a row has some",
            happens="the row counts for those it has; without any it is left out",
            says="1 of 20 rows has no `stars` or `mood` and was left out",
            files={"a.csv": TWO},
            source="a.csv",
            options={"label": ["stars", "mood"]},
            tasks={"a/stars": 19, "a/mood": 19},
        ),
        Case(
            have="empty texts",
            happens="kept and counted",
            says="1 text is empty, and kept; the first is a.csv, line 22",
            files={"a.csv": TABLE + " ,y\n"},
            source="a.csv",
            tasks={"a": 21},
        ),
        Case(
            have="an empty file",
            happens="refused",
            says="A split should have rows. Found none",
            files={"a.csv": ""},
            source="a.csv",
            tasks=None,
        ),
    ],
}


def page_tables() -> str:
    """The tables of the page, as Markdown."""
    parts = []
    number = 0
    for title, cases in CASES.items():
        rows = []
        for case in cases:
            number += 1
            said = f"`{case.says}`" if "`" not in case.says else f"`` {case.says} ``"
            cells = (str(number), case.have, case.happens, said if case.says else "")
            rows.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |\n")
        head = "| | you have | what happens | what is said |\n|---|---|---|---|\n"
        parts.append(f"## {title}\n\n{head}{''.join(rows)}")
    return "\n".join(parts)


if __name__ == "__main__":
    begin, _, _ = PAGE.read_text(encoding="utf-8").partition("\n## ")
    PAGE.write_text(f"{begin}\n{page_tables()}", encoding="utf-8")

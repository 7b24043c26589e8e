"""Formats by the ending of a file's name, and what to do with endings that are none of ours."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal, NoReturn

from taskmix.errors import TaskFileError
from taskmix.tasks._formats._words import quoted

Format = Literal["jsonl", "json", "csv", "tsv", "xlsx", "parquet", "arrow", "conll", "txt"]
FORMATS: tuple[Format, ...] = (
    "jsonl",
    "json",
    "csv",
    "tsv",
    "xlsx",
    "parquet",
    "arrow",
    "conll",
    "txt",
)
TABLES = ("jsonl", "json", "csv", "tsv", "xlsx", "parquet", "arrow")  # whose columns have names
_ENDINGS: Mapping[str, Format] = {
    **{known: known for known in FORMATS},
    "ndjson": "jsonl",
    "tab": "tsv",
    "feather": "arrow",
    "ipc": "arrow",
    "pq": "parquet",
}
_SPREADSHEET = "Save it as .xlsx or .csv in the program that made it."
_UNPACK = "Unpack it first; of packed files only .gz is read."
_CONVERT = {
    **dict.fromkeys(("xls", "xlsm", "xlsb", "ods", "numbers", "gsheet"), _SPREADSHEET),
    **dict.fromkeys(
        ("pkl", "pickle", "joblib", "pt", "pth"),
        "Such files can run code when they are read, so they are not: load it where it was made and "
        "write .parquet (pandas: `frame.to_parquet`).",
    ),
    **dict.fromkeys(
        ("npy", "npz", "mat", "h5", "hdf5"),
        "Write its arrays as columns of .parquet, or give them to `taskmix.advise` in Python.",
    ),
    **dict.fromkeys(
        ("sav", "dta", "sas7bdat", "xpt", "rds", "rdata", "por"),
        "Export it as .csv, or read it with pandas (`read_spss`, `read_stata`, `read_sas`) and write "
        ".parquet.",
    ),
    **dict.fromkeys(("zip", "7z", "tar", "tgz", "rar", "bz2", "xz", "zst", "lz4"), _UNPACK),
    **dict.fromkeys(("db", "sqlite", "sqlite3", "duckdb", "sql"), "Export its table as .csv."),
    **dict.fromkeys(("arff", "xml", "html", "yaml", "yml"), "Convert it to .csv or .jsonl."),
    **dict.fromkeys(("pdf", "doc", "docx", "odt", "rtf"), "Copy its text into .csv or .jsonl."),
    **dict.fromkeys(
        ("bio", "iob", "iob2", "conllu"), "Rename it to .conll if it has a token a row."
    ),
}


def file_format(path: Path) -> tuple[str, Format] | None:
    """The name without its endings, and the format; None where the ending is none of ours."""
    name = path.name[:-3] if path.name.lower().endswith(".gz") else path.name
    stem, dot, ending = name.rpartition(".")
    known = _ENDINGS.get(ending.lower()) if dot and stem else None
    return None if known is None else (stem, known)


def how_to_convert(path: Path) -> str | None:
    """What to do with a file of data that is not read; None of anything else."""
    return _CONVERT.get(path.suffix.lower().removeprefix("."))


def refuse_ending(path: Path) -> NoReturn:
    """Raise the sentence about a file that is not read."""
    endings = ", ".join(f".{ending}" for ending in FORMATS)
    remedy = how_to_convert(path) or "Rename the file, or convert it to one of these formats."
    raise TaskFileError(
        f"The name of a task file should end in one of {endings}, and .gz may follow. Found "
        f"{quoted(path.name)}. {remedy}",
        path=path,
    )

"""From the bytes of a file to Arrow tables.

One module a format. Those of text are on the checked streams of `_streams.py`, which gunzip, decode
(`_encodings.py`), count and refuse what no honest file has. What a cell of text says as a
number is here too, because JSON has to spell numbers back as they stood in the file.
"""

from taskmix.tasks._formats._endings import (
    FORMATS,
    TABLES,
    file_format,
    how_to_convert,
    refuse_ending,
)
from taskmix.tasks._formats._jsonl import exact_cells
from taskmix.tasks._formats._numbers import (
    LARGEST_EXACT,
    NOTED_SHARE,
    NUMERIC_SHARE,
    OddCells,
    are_numbers,
    numbers_of,
    spell_number,
    trimmed_cells,
)
from taskmix.tasks._formats._parquet import read_parquet
from taskmix.tasks._formats._readers import column_names, read_rows
from taskmix.tasks._formats._rows import Rows
from taskmix.tasks._formats._streams import (
    DamagedError,
    FileAllowance,
    allowance,
    open_file,
    text_lines,
    unpacked,
)
from taskmix.tasks._formats._values import table_of_values
from taskmix.tasks._formats._words import bad_file, is_too_long, quoted, show_path, tame

__all__ = [
    "FORMATS",
    "LARGEST_EXACT",
    "NOTED_SHARE",
    "NUMERIC_SHARE",
    "TABLES",
    "DamagedError",
    "FileAllowance",
    "OddCells",
    "Rows",
    "allowance",
    "are_numbers",
    "bad_file",
    "column_names",
    "exact_cells",
    "file_format",
    "how_to_convert",
    "is_too_long",
    "numbers_of",
    "open_file",
    "quoted",
    "read_parquet",
    "read_rows",
    "refuse_ending",
    "show_path",
    "spell_number",
    "table_of_values",
    "tame",
    "text_lines",
    "trimmed_cells",
    "unpacked",
]

"""Rows that are not in files: whatever Python holds that has columns, as if a file had been read.

One protocol covers most of it, the Arrow PyCapsule interface (polars, duckdb, pyarrow and others have
`__arrow_c_stream__`); pandas is gone over column by column, because a column of its objects may hold
anything. Neither is imported here: whoever gives a frame has done so.
"""

from taskmix.tasks._frames._classes import name_classes
from taskmix.tasks._frames._pairs import Pairs, are_pairs, columns_of_pairs, pairs_of
from taskmix.tasks._frames._saved import is_saved, saved_splits
from taskmix.tasks._frames._tables import (
    Given,
    holds_columns,
    is_stream,
    is_table,
    rows_of,
)

__all__ = [
    "Given",
    "Pairs",
    "are_pairs",
    "columns_of_pairs",
    "holds_columns",
    "is_saved",
    "is_stream",
    "is_table",
    "name_classes",
    "pairs_of",
    "rows_of",
    "saved_splits",
]

"""Laws (Bettgenhäuser, Hedderich and Klakow, 2020): the study of ten thousand taggers and its table."""

from taskmix.papers._laws._figure import laws_figure
from taskmix.papers._laws._study import LawsOptions
from taskmix.papers._laws._table import (
    check_new_table,
    law_rows,
    read_laws_table,
    reproduce_laws,
    write_laws_table,
)

__all__ = [
    "LawsOptions",
    "check_new_table",
    "law_rows",
    "laws_figure",
    "read_laws_table",
    "reproduce_laws",
    "write_laws_table",
]

"""Tables of runs on mixtures, from files or memory, and what in them cannot be used."""

from taskmix.mixtures._reading._checks import (
    LEAST_RUNS,
    CheckedTable,
    check_table,
)
from taskmix.mixtures._reading._read import (
    read_mixtures,
)
from taskmix.mixtures._reading._repeats import (
    Repeats,
    describe_repeats,
    find_repeats,
)
from taskmix.mixtures._reading._study import (
    table_of_study,
)

__all__ = [
    "LEAST_RUNS",
    "CheckedTable",
    "Repeats",
    "check_table",
    "describe_repeats",
    "find_repeats",
    "read_mixtures",
    "table_of_study",
]

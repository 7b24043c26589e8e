"""From a table and a form to constants.

A table is checked and becomes columns of numbers (`_table.py`), its rows get weights from the
kind of their noise (`_noise.py`), and the constants of a form are fitted to them by least squares
(`_fit.py`).
"""

from taskmix.laws._fitting._fit import Fit, Observations, fit_constants, linear_places, start_cost
from taskmix.laws._fitting._noise import Noise, row_weights
from taskmix.laws._fitting._table import (
    LEAST_ROWS,
    as_columns,
    check_lengths,
    check_rows,
    read_table,
)

__all__ = [
    "LEAST_ROWS",
    "Fit",
    "Noise",
    "Observations",
    "as_columns",
    "check_lengths",
    "check_rows",
    "fit_constants",
    "linear_places",
    "read_table",
    "row_weights",
    "start_cost",
]

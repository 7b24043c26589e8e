"""From a table and a form to constants.

A table is checked and becomes columns of numbers (`_table.py`), its rows get weights from the
kind of their noise (`_noise.py`), rows that lie far off are kept from deciding (`_outliers.py`),
equal ones tell the noise (`_replicates.py`), and the constants of a form are fitted to them by least
squares (`_fit.py`).
"""

from taskmix.laws._fitting._fit import Fit, Observations, fit_constants, linear_places, start_cost
from taskmix.laws._fitting._noise import (
    Noise,
    check_noise,
    likeliest_noise,
    noise_sizes,
    noise_unit,
    row_weights,
)
from taskmix.laws._fitting._outliers import BEND, huber_bound, huber_weights
from taskmix.laws._fitting._replicates import LackOfFit, Replicates, lack_of_fit
from taskmix.laws._fitting._table import (
    LEAST_ROWS,
    as_columns,
    check_lengths,
    check_rows,
    read_table,
)

__all__ = [
    "BEND",
    "LEAST_ROWS",
    "Fit",
    "LackOfFit",
    "Noise",
    "Observations",
    "Replicates",
    "as_columns",
    "check_lengths",
    "check_noise",
    "check_rows",
    "fit_constants",
    "huber_bound",
    "huber_weights",
    "lack_of_fit",
    "likeliest_noise",
    "linear_places",
    "noise_sizes",
    "noise_unit",
    "read_table",
    "row_weights",
    "start_cost",
]

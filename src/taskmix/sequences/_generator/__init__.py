"""What a generator of sequences is, and what all kinds of them are written with.

`_contract` has the protocol with the shape of its answers, and what is done with parameters of any
kind; `_checks` what options should be; `_arrays` sums over sequences that lie end to end;
`_kernels` is where numba comes in, and whether there is numba at all. The kinds themselves have
rooms of their own above.
"""

from taskmix.sequences._generator._arrays import (
    normalised,
    prefix_rows,
    running_totals,
    safe_log,
    sums_by_sequence,
    weighted_log,
)
from taskmix.sequences._generator._checks import (
    check_amount,
    check_complete,
    check_fixed,
    check_observes,
    check_whole,
)
from taskmix.sequences._generator._contract import (
    SHARED,
    ExpectedStatistics,
    Floats,
    Generator,
    Next,
    Statistics,
    dense,
    keep_fixed,
    put_generators,
    take_generators,
    take_statistics,
)
from taskmix.sequences._generator._kernels import compiled, kernel

__all__ = [
    "SHARED",
    "ExpectedStatistics",
    "Floats",
    "Generator",
    "Next",
    "Statistics",
    "check_amount",
    "check_complete",
    "check_fixed",
    "check_observes",
    "check_whole",
    "compiled",
    "dense",
    "keep_fixed",
    "kernel",
    "normalised",
    "prefix_rows",
    "put_generators",
    "running_totals",
    "safe_log",
    "sums_by_sequence",
    "take_generators",
    "take_statistics",
    "weighted_log",
]

"""Which subsets of the sources to train, and how many.

`_subsets` draws them at random, balanced or all without one; `_design` is what a study asks for, in
blocks that a larger study has in it; `_precision` says before any run how well a number of subsets
will tell sources apart.
"""

from taskmix.transfer._designing._design import (
    SubsetDesign,
    draw_held_out,
    draw_subsets,
)
from taskmix.transfer._designing._precision import (
    anchored_error,
    contrast_error,
    seed_noise,
    subsets_for_error,
)
from taskmix.transfer._designing._subsets import (
    all_size_subsets,
    balanced_subsets,
    fixed_size_subsets,
    leave_one_out_subsets,
)

__all__ = [
    "SubsetDesign",
    "all_size_subsets",
    "anchored_error",
    "balanced_subsets",
    "contrast_error",
    "draw_held_out",
    "draw_subsets",
    "fixed_size_subsets",
    "leave_one_out_subsets",
    "seed_noise",
    "subsets_for_error",
]

"""Outcomes of subsets without training them: from the gradients of a model on all tasks.

`_linearised` makes every task linear in the shared parameters and solves for a subset's move. The
derivatives come from `_jacobian`; they are as long as the model, so `_projection` shortens them.
"""

from taskmix.transfer._estimating._linearised import (
    GradientOptions,
    LinearTask,
    linearise,
    solve_move,
)

__all__ = ["GradientOptions", "LinearTask", "linearise", "solve_move"]

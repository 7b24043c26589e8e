"""Outcomes of subsets without training them: from the gradients of a model on all tasks.

`_linearised` makes every task linear in the shared parameters and solves for a subset's move. The
derivatives come from `_jacobian`; they are as long as the model, so `_projection` shortens them.
"""

from taskmix.transfer._estimating._linearised import LinearTask, linearise, solve_move
from taskmix.transfer._estimating._moved import MovableModel, prepare_moves
from taskmix.transfer._estimating._options import GradientOptions

__all__ = ["GradientOptions", "LinearTask", "MovableModel", "linearise", "prepare_moves", "solve_move"]

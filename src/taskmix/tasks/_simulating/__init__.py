"""Worlds in which the truth is known.

Tasks that are related to a real one as much as one likes, a rare class with a task that helps and one
that harms, tasks of the digits whose relations follow from their definition, and bandits whose best
division of the budget can be computed.
"""

from taskmix.tasks._simulating._bandit import BanditOptimum, MultitaskBandit
from taskmix.tasks._simulating._digits import digits_tasks
from taskmix.tasks._simulating._imbalanced import simulate_imbalanced
from taskmix.tasks._simulating._related import Simulation, simulate_tasks

__all__ = [
    "BanditOptimum",
    "MultitaskBandit",
    "Simulation",
    "digits_tasks",
    "simulate_imbalanced",
    "simulate_tasks",
]

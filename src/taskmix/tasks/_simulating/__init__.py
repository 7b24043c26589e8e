"""Worlds in which the truth is known.

Tasks that are related to a real one as much as one likes, and tasks of the digits whose relations
follow from their definition.
"""

from taskmix.tasks._simulating._digits import digits_tasks
from taskmix.tasks._simulating._related import Simulation, simulate_tasks

__all__ = ["Simulation", "digits_tasks", "simulate_tasks"]

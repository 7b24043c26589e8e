"""Advice for models and data sets of one's own, from Python."""

from taskmix.own._advise import advise
from taskmix.own._advised import Advised
from taskmix.own._data import gather_tasks
from taskmix.own._module import OwnModule, own_module

__all__ = ["Advised", "OwnModule", "advise", "gather_tasks", "own_module"]

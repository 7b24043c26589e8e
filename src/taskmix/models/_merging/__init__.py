"""Models that were trained apart from one start, made into one without training."""

from taskmix.models._merging._contract import Merging
from taskmix.models._merging._dare import DARE
from taskmix.models._merging._merge import Merge, merge_states, task_vectors
from taskmix.models._merging._task_arithmetic import TaskArithmetic
from taskmix.models._merging._ties import TIES
from taskmix.models._merging._weight_average import WeightAverage

__all__ = [
    "DARE",
    "TIES",
    "Merge",
    "Merging",
    "TaskArithmetic",
    "WeightAverage",
    "merge_states",
    "task_vectors",
]

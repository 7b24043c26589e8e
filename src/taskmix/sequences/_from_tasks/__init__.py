"""From tasks that were read to a mixture that is kept: what `taskmix sequences` does, from Python.

`_splits` takes the sequences out of a task set, `_recipe` is what determines a mixture besides
them, and `_work` chooses, fits, keeps and compares in one folder. It is the room above all others.
"""

from taskmix.sequences._from_tasks._recipe import MixtureRecipe
from taskmix.sequences._from_tasks._splits import SequenceData, TaskSequences, split_sequences
from taskmix.sequences._from_tasks._work import CALIBRATION_FOLDS, MixtureWork

__all__ = [
    "CALIBRATION_FOLDS",
    "MixtureRecipe",
    "MixtureWork",
    "SequenceData",
    "TaskSequences",
    "split_sequences",
]

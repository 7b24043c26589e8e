"""From tasks that were read to a mixture that is kept: what `taskmix sequences` does, from Python.

`_splits` takes the sequences out of a task set, `_recipe` is what determines a mixture besides
them, and `_work` chooses, fits, keeps and compares in one folder. `_stream`, `_stream_files` and
`_stream_work` do the same for files that do not fit into memory. It is the room above all others.
"""

from taskmix.sequences._from_tasks._recipe import MixtureRecipe
from taskmix.sequences._from_tasks._splits import SequenceData, TaskSequences, split_sequences
from taskmix.sequences._from_tasks._stream import SequenceStream
from taskmix.sequences._from_tasks._stream_files import RowColumns
from taskmix.sequences._from_tasks._stream_work import StreamWork
from taskmix.sequences._from_tasks._work import CALIBRATION_FOLDS, MixtureWork

__all__ = [
    "CALIBRATION_FOLDS",
    "MixtureRecipe",
    "MixtureWork",
    "RowColumns",
    "SequenceData",
    "SequenceStream",
    "StreamWork",
    "TaskSequences",
    "split_sequences",
]

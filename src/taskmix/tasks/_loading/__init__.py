"""From a folder, a file or the name of a data set to tasks.

`_folder.py` has `load_tasks`; `_discover.py` finds which files make which tasks, `_settings.py` what
`task.toml` says of them, and `_build.py` makes them: every row gets its task and split (`_layout.py`,
`_splits.py`), its inputs (`_inputs.py`) and its target (`_targets.py`).
"""

from taskmix.tasks._loading._build import Origin, make_tasks
from taskmix.tasks._loading._folder import load_tasks
from taskmix.tasks._loading._in_memory import find_shapes, split_pairs
from taskmix.tasks._loading._inputs import InputPlan, build_inputs, remarks_on_cells
from taskmix.tasks._loading._missing import empty_texts
from taskmix.tasks._loading._multilabel import mark_labels, read_label_sets
from taskmix.tasks._loading._names import called
from taskmix.tasks._loading._notes import Notes
from taskmix.tasks._loading._sequence_file import SequenceRows, read_sequences
from taskmix.tasks._loading._sequences import cut_symbols
from taskmix.tasks._loading._settings import TaskSettings
from taskmix.tasks._loading._targets import Target, choose_metric, guess_kind
from taskmix.tasks._loading._wanted import Wanted
from taskmix.tasks._loading._watching import SeenFiles, watching

__all__ = [
    "InputPlan",
    "Notes",
    "Origin",
    "SeenFiles",
    "SequenceRows",
    "Target",
    "TaskSettings",
    "Wanted",
    "build_inputs",
    "called",
    "choose_metric",
    "cut_symbols",
    "empty_texts",
    "find_shapes",
    "guess_kind",
    "load_tasks",
    "make_tasks",
    "mark_labels",
    "read_label_sets",
    "read_sequences",
    "remarks_on_cells",
    "split_pairs",
    "watching",
]

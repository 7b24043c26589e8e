"""What in the data would spoil what is learned from it, found without training.

`look_at` finds what advice has to know; `_leaks.py` finds labels that stand in the inputs, `_between.py`
what two tasks have in common. Rows are compared by their keys (`_row_keys.py`).
"""

from taskmix.tasks._looking._finding import Finding, FindingKind
from taskmix.tasks._looking._labelled import labelled
from taskmix.tasks._looking._leaks import find_leak, tells_labels
from taskmix.tasks._looking._look import look_at
from taskmix.tasks._looking._row_keys import RowKeys

__all__ = [
    "Finding",
    "FindingKind",
    "RowKeys",
    "find_leak",
    "labelled",
    "look_at",
    "tells_labels",
]

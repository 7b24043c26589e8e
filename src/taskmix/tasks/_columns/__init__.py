"""What the columns of a task say, over all of its files.

`StackedFiles` are the files of a task one below the other, each column of one type. The others ask
them questions: which cells are the same label (`_spelling.py`), what each column is (`_roles.py`:
text, numbers, dates, names of rows, ...), and what `train` has never seen.
"""

from taskmix.tasks._columns._cells import cell_family
from taskmix.tasks._columns._dates import DateColumn, dates_of
from taskmix.tasks._columns._names import (
    USUAL_LABELS,
    USUAL_LABELS_OF_TEXTS,
    folded_name,
    match_column,
    usual_label,
)
from taskmix.tasks._columns._roles import (
    UNUSABLE,
    ColumnKind,
    ColumnRole,
    count_values,
    describe_role,
    role_of,
)
from taskmix.tasks._columns._sentences import as_pair
from taskmix.tasks._columns._spelling import SpelledColumn, normal, normal_cells, spell, words_of
from taskmix.tasks._columns._stack import StackedFiles
from taskmix.tasks._columns._unseen import unseen_categories

__all__ = [
    "UNUSABLE",
    "USUAL_LABELS",
    "USUAL_LABELS_OF_TEXTS",
    "ColumnKind",
    "ColumnRole",
    "DateColumn",
    "SpelledColumn",
    "StackedFiles",
    "as_pair",
    "cell_family",
    "count_values",
    "dates_of",
    "describe_role",
    "folded_name",
    "match_column",
    "normal",
    "normal_cells",
    "role_of",
    "spell",
    "unseen_categories",
    "usual_label",
    "words_of",
]

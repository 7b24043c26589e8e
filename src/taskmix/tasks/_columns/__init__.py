"""What the columns of a task say, over all of its files.

`StackedFiles` are the files of a task one below the other, each column of one type. The others ask
them questions: which cells are the same label (`_spelling.py`), whether a column only names its rows
(`_identifiers.py`), which one holds sentences, and what `train` has never seen.
"""

from taskmix.tasks._columns._cells import cell_family
from taskmix.tasks._columns._identifiers import identifies
from taskmix.tasks._columns._names import folded_name, match_column
from taskmix.tasks._columns._sentences import as_pair, holds_sentences
from taskmix.tasks._columns._spelling import SpelledColumn, normal, normal_cells, spell, words_of
from taskmix.tasks._columns._stack import StackedFiles
from taskmix.tasks._columns._unseen import unseen_categories

__all__ = [
    "SpelledColumn",
    "StackedFiles",
    "as_pair",
    "cell_family",
    "folded_name",
    "holds_sentences",
    "identifies",
    "match_column",
    "normal",
    "normal_cells",
    "spell",
    "unseen_categories",
    "words_of",
]

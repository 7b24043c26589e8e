"""What the columns of a task say, over all of its files.

A `Stack` holds the files of a task one below the other and gives each column one type. The others ask
it questions: which cells are the same label (`_spelling.py`), whether a column only names its rows
(`_identifiers.py`), which one holds sentences, and what `train` has never seen.
"""

from taskmix.tasks._columns._identifiers import identifies
from taskmix.tasks._columns._sentences import as_pair, holds_sentences
from taskmix.tasks._columns._spelling import Words, normal, normal_cells, spell, words_of
from taskmix.tasks._columns._stack import Stack, family
from taskmix.tasks._columns._unseen import unseen_categories

__all__ = [
    "Stack",
    "Words",
    "as_pair",
    "family",
    "holds_sentences",
    "identifies",
    "normal",
    "normal_cells",
    "spell",
    "unseen_categories",
    "words_of",
]

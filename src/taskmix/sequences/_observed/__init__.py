"""What was observed: ragged sequences as one flat array, and which task has which of them.

`_sequences` has the flat array and the alphabet that gives symbols their codes; `_corpus` tells
distinct sequences apart, so that what several tasks have is looked at once; `_source` is where
sequences come from that are not held. Nothing here knows of a model.
"""

from taskmix.sequences._observed._corpus import (
    Corpus,
    distinct_sequences,
    gather_corpus,
    number_tasks,
)
from taskmix.sequences._observed._sequences import (
    UNKNOWN,
    Alphabet,
    Observed,
    Sequences,
    flatten_sequences,
    learn_alphabet,
)
from taskmix.sequences._observed._source import SequenceSource, SourceWithSample

__all__ = [
    "UNKNOWN",
    "Alphabet",
    "Corpus",
    "Observed",
    "SequenceSource",
    "Sequences",
    "SourceWithSample",
    "distinct_sequences",
    "flatten_sequences",
    "gather_corpus",
    "learn_alphabet",
    "number_tasks",
]

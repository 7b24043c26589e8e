"""From the rows of tasks to tensors.

Five options objects, one a module (tables, words, windows, subwords, features of a pretrained
network), make `EncodedTasks` (`_encoded.py`) by the steps they share (`_assemble.py`), and find again
on disk what they made before (`_cache.py`). Vocabularies and word vectors belong here.
"""

from taskmix.tasks._encoding._assemble import Encoding, encoded_tasks, source_split
from taskmix.tasks._encoding._encoded import EncodedSplit, EncodedTask, EncodedTasks
from taskmix.tasks._encoding._features import FeatureEncoding, texts_of
from taskmix.tasks._encoding._frozen import usual_precision
from taskmix.tasks._encoding._inputs import (
    DenseInputs,
    Inputs,
    PaddedInputs,
    PairInputs,
    RaggedInputs,
    SubwordInputs,
    WindowInputs,
)
from taskmix.tasks._encoding._passages import PassageEncoding
from taskmix.tasks._encoding._pooling import Pooling, find_pooling, is_causal, pool
from taskmix.tasks._encoding._pretrained import (
    load_pretrained,
    outline_network,
    quiet_transformers,
    stamp_of,
)
from taskmix.tasks._encoding._subwords import SubwordEncoding
from taskmix.tasks._encoding._tables import TableEncoding, families_of
from taskmix.tasks._encoding._vectors import read_word_vectors, vectors_for
from taskmix.tasks._encoding._vocabulary import build_vocabulary, tokenize
from taskmix.tasks._encoding._windows import WindowEncoding
from taskmix.tasks._encoding._words import WordEncoding

__all__ = [
    "DenseInputs",
    "EncodedSplit",
    "EncodedTask",
    "EncodedTasks",
    "Encoding",
    "FeatureEncoding",
    "Inputs",
    "PaddedInputs",
    "PairInputs",
    "PassageEncoding",
    "Pooling",
    "RaggedInputs",
    "SubwordEncoding",
    "SubwordInputs",
    "TableEncoding",
    "WindowEncoding",
    "WindowInputs",
    "WordEncoding",
    "build_vocabulary",
    "encoded_tasks",
    "families_of",
    "find_pooling",
    "is_causal",
    "load_pretrained",
    "outline_network",
    "pool",
    "quiet_transformers",
    "read_word_vectors",
    "source_split",
    "stamp_of",
    "texts_of",
    "tokenize",
    "usual_precision",
    "vectors_for",
]

"""From the rows of tasks to tensors.

Five options objects, one a module (tables, words, windows, subwords, features of a pretrained
network), make `EncodedTasks` (`_encoded.py`) by the steps they share (`_assemble.py`), and find again
on disk what they made before (`_cache.py`). Vocabularies and word vectors belong here.
"""

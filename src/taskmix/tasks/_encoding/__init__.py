"""From the rows of tasks to tensors.

Options objects (tables, words and windows of them, subwords, passages, features of a pretrained
network) make `EncodedTasks` (`_inputs.py`) by the steps they share (`_assemble.py`), and find again
on disk what they made before (`_cache.py`). Vocabularies and word vectors belong here.
"""

"""The first layer of the word models."""

from __future__ import annotations

from torch import nn

from taskmix.tasks import EncodedTasks


def word_embedding(tasks: EncodedTasks, dimension: int, *, train: bool) -> nn.Embedding:
    """Word vectors from the file the encoding read, or fresh ones; id 0, padding, stays zero."""
    if tasks.vectors is None:
        return nn.Embedding(len(tasks.vocabulary), dimension, padding_idx=0)
    count, width = tasks.vectors.shape
    table = nn.Embedding(count, width, padding_idx=0, _weight=tasks.vectors.clone())
    table.weight.requires_grad = train
    return table

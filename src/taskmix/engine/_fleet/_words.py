"""Vectors of word ids: one frozen table for all members, or a table of each member that trains."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from taskmix.engine._fleet._perceptron import Parameters

KEY = "encoder.words.weight"


class StackedWords:
    """Ids [..., member, row] to vectors [..., member, row, dimension]."""

    def __init__(self, table: Tensor | None) -> None:
        self._table = table

    def __call__(self, parameters: Parameters, ids: Tensor) -> Tensor:
        if self._table is not None:
            return functional.embedding(ids, self._table)
        table = parameters[KEY]
        members, words, dimension = table.shape
        flat = ids + torch.arange(members, device=ids.device).unsqueeze(1) * words
        vectors = functional.embedding(flat, table.reshape(members * words, dimension))
        return vectors * (ids != 0).unsqueeze(-1)  # padding is zero, and does not train

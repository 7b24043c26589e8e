"""What batches cost, told without making them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor

from taskmix.tasks import DenseInputs, PairInputs, RaggedInputs, SubwordInputs, WindowInputs
from taskmix.training import batch_costs

OFFSETS = torch.tensor([0, 3, 4, 9, 9])  # rows of 3, 1, 5 and no tokens
TOKENS = torch.arange(1, 10)
ROWS = torch.tensor([[0, 1], [1, 3], [2, 0]])


@dataclass(frozen=True, eq=False)
class Own:
    """Inputs of one's own: how wide a batch is only the batch can tell."""

    def __len__(self) -> int:
        return 4

    def batch(self, rows: Tensor) -> Any:
        return (torch.zeros(len(rows), 2 + int(rows[0])), torch.zeros(3))

    def to(self, device: torch.device) -> Own:
        return self


@pytest.mark.parametrize(
    ("inputs", "wanted"),  # by hand: rows times the longest of them
    [
        (DenseInputs(torch.zeros(4, 6)), [12, 12, 12]),
        (RaggedInputs(TOKENS, OFFSETS), [6, 2, 10]),
        (RaggedInputs(TOKENS, OFFSETS, minimum=4), [8, 8, 10]),
        (
            PairInputs(RaggedInputs(TOKENS, OFFSETS, minimum=2), RaggedInputs(TOKENS, OFFSETS)),
            [6 + 6, 4 + 2, 10 + 10],
        ),
        (WindowInputs(torch.arange(10), torch.arange(2, 6), 2), [10, 10, 10]),
        (SubwordInputs(TOKENS, OFFSETS), [6, 2, 10]),
        (Own(), [2 * 2 + 3, 2 * 3 + 3, 2 * 4 + 3]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_the_costs_of_batches_are_the_numbers_in_them(inputs: Any, wanted: list[int]) -> None:
    assert batch_costs(inputs, ROWS).tolist() == wanted

"""Rows as tensors: what `batch(rows)` gives is what an encoder's `forward` takes.

Tasks that share their inputs hold the same object, so that a step can encode them once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, Self, runtime_checkable

import torch
from torch import Tensor


class Inputs(Protocol):
    """Rows that can be gathered into a batch for an encoder."""

    def __len__(self) -> int: ...

    def batch(self, rows: Tensor) -> Any:
        """What the encoder takes for these rows (a 1-d tensor of row numbers)."""
        ...

    def to(self, device: torch.device) -> Self: ...


@runtime_checkable
class PaddedInputs(Protocol):
    """Inputs whose rows differ in length: a batch is as wide as its longest, so like go with like."""

    @property
    def lengths(self) -> Tensor:
        """Places that each row takes [row]."""
        ...


def widened(values: Tensor) -> Tensor:
    """Halves as float32, which layers compute in; all else as it is."""
    return values.float() if values.dtype == torch.float16 else values


@dataclass(frozen=True, eq=False)
class DenseInputs:
    """One vector a row; the encoder takes a matrix, of float32 where the rows are kept as halves.

    >>> DenseInputs(torch.tensor([[1.0, 2.0], [3.0, 4.0]])).batch(torch.tensor([1])).tolist()
    [[3.0, 4.0]]
    """

    values: Tensor  # [row, feature]

    def __len__(self) -> int:
        return len(self.values)

    def batch(self, rows: Tensor) -> Tensor:
        return widened(self.values[rows])

    def to(self, device: torch.device) -> DenseInputs:
        return DenseInputs(self.values.to(device))


@dataclass(frozen=True, eq=False)
class RaggedInputs:
    """One list of token ids a row; the encoder takes a matrix padded to the longest of the batch.

    `minimum` columns are always there, because a convolution needs as many as its widest kernel.

    >>> inputs = RaggedInputs(torch.tensor([5, 6, 7]), offsets=torch.tensor([0, 2, 3]))
    >>> inputs.batch(torch.tensor([0, 1])).tolist(), inputs.lengths.tolist()
    ([[5, 6], [7, 0]], [2, 1])
    """

    ids: Tensor  # [token], of all rows one after another, never 0
    offsets: Tensor  # [row + 1]
    minimum: int = 1

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def batch(self, rows: Tensor) -> Tensor:
        starts = self.offsets[rows]
        lengths = self.offsets[rows + 1] - starts
        width = max(int(lengths.max()), self.minimum)
        columns = torch.arange(width, device=starts.device)
        inside = columns < lengths[:, None]
        places = (starts[:, None] + columns).clamp_(max=max(len(self.ids) - 1, 0))
        if len(self.ids) == 0:  # every row is empty
            return torch.zeros_like(places)
        return self.ids[places] * inside  # 0 is padding

    @property
    def lengths(self) -> Tensor:
        """[row], places that a row takes in a batch of its own."""
        return self.offsets.diff()

    def to(self, device: torch.device) -> RaggedInputs:
        return RaggedInputs(self.ids.to(device), self.offsets.to(device), self.minimum)


@dataclass(frozen=True, eq=False)
class PairInputs:
    """Two texts a row; the encoder takes a tuple of two batches.

    >>> first = RaggedInputs(torch.tensor([5, 6]), offsets=torch.tensor([0, 2]))
    >>> second = RaggedInputs(torch.tensor([7]), offsets=torch.tensor([0, 1]))
    >>> [part.tolist() for part in PairInputs(first, second).batch(torch.tensor([0]))]
    [[[5, 6]], [[7]]]
    """

    first: RaggedInputs
    second: RaggedInputs

    def __len__(self) -> int:
        return len(self.first)

    def batch(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        return self.first.batch(rows), self.second.batch(rows)

    @property
    def lengths(self) -> Tensor:
        """[row], places that both texts of a row take in a batch of its own."""
        return self.first.lengths + self.second.lengths

    def to(self, device: torch.device) -> PairInputs:
        return PairInputs(self.first.to(device), self.second.to(device))


@dataclass(frozen=True, eq=False)
class WindowInputs:
    """One row a token: the token with `width` neighbours on each side, padded at sentence ends.

    The sentences are stored once, `width` zeros between them, and windows are cut on demand.

    >>> sentence = torch.tensor([0, 5, 6, 0])  # two words, a zero on each side
    >>> inputs = WindowInputs(sentence, centres=torch.tensor([1, 2]), width=1)
    >>> inputs.batch(torch.tensor([0, 1])).tolist()
    [[0, 5, 6], [5, 6, 0]]
    """

    padded: Tensor  # [place], the ids of all sentences with `width` zeros around each
    centres: Tensor  # [row], the place of each token
    width: int

    def __len__(self) -> int:
        return len(self.centres)

    def batch(self, rows: Tensor) -> Tensor:
        around = torch.arange(-self.width, self.width + 1, device=rows.device)
        return self.padded[self.centres[rows][:, None] + around]

    def to(self, device: torch.device) -> WindowInputs:
        return WindowInputs(self.padded.to(device), self.centres.to(device), self.width)


@dataclass(frozen=True, eq=False)
class SubwordInputs:
    """One list of pieces a row, for a transformer; the encoder takes a dictionary.

    `input_ids` and `attention_mask` are padded to the longest row of the batch, and so is
    `token_type_ids` where the tokenizer gives types. Where rows are lists of words, `word_starts`
    [row, word] says at which piece each word begins, as wide as the targets and 0 beyond the last;
    in a batch only as wide as its rows need, where `places` says how many of them a row has.

    >>> inputs = SubwordInputs(torch.tensor([101, 7, 102, 101, 102]), offsets=torch.tensor([0, 3, 5]))
    >>> batch = inputs.batch(torch.tensor([0, 1]))
    >>> batch["input_ids"].tolist(), batch["attention_mask"].tolist()
    ([[101, 7, 102], [101, 102, 0]], [[1, 1, 1], [1, 1, 0]])
    """

    ids: Tensor  # [piece], of all rows one after another
    offsets: Tensor  # [row + 1]
    padding: int = 0
    types: Tensor | None = None  # [piece]
    word_starts: Tensor | None = None  # [row, word]
    places: Tensor | None = None  # [row], of `word_starts` that mean something

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def batch(self, rows: Tensor) -> dict[str, Tensor]:
        starts = self.offsets[rows]
        lengths = self.offsets[rows + 1] - starts
        columns = torch.arange(int(lengths.max()), device=starts.device)
        inside = columns < lengths[:, None]
        places = (starts[:, None] + columns).clamp_(max=len(self.ids) - 1)
        result = {
            "input_ids": self.ids[places].masked_fill_(~inside, self.padding),
            "attention_mask": inside.long(),
        }
        if self.types is not None:
            result["token_type_ids"] = self.types[places] * inside
        if self.word_starts is not None:
            width = None if self.places is None else int(self.places[rows].max())
            result["word_starts"] = self.word_starts[rows, :width]
        return result

    @property
    def lengths(self) -> Tensor:
        """[row], places that a row takes in a batch of its own."""
        return self.offsets.diff()

    def to(self, device: torch.device) -> SubwordInputs:
        return SubwordInputs(
            self.ids.to(device),
            self.offsets.to(device),
            self.padding,
            None if self.types is None else self.types.to(device),
            None if self.word_starts is None else self.word_starts.to(device),
            None if self.places is None else self.places.to(device),
        )

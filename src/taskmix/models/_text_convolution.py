"""Text convolution: kernels of several widths side by side, then the largest answer of each filter.

    Kim, "Convolutional Neural Networks for Sentence Classification", EMNLP 2014; with the widths
    3, 5, 7 and the dropout of 0.5 in the heads of Mao et al., "BanditMTL", ACL 2021, section 5.3.

A pair of texts is encoded text by text and joined as [u, v, |u - v|, u * v] (Conneau et al., 2017).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from taskmix.errors import OptionError
from taskmix.models._sharing import HardSharing, make_head
from taskmix.tasks import EncodedTasks, PairInputs, WordEncoding


def word_embedding(tasks: EncodedTasks, dimension: int, *, train: bool) -> nn.Embedding:
    """Word vectors from the file the encoding read, or fresh ones; id 0, padding, stays zero."""
    if tasks.vectors is None:
        return nn.Embedding(len(tasks.vocabulary), dimension, padding_idx=0)
    count, width = tasks.vectors.shape
    table = nn.Embedding(count, width, padding_idx=0, _weight=tasks.vectors.clone())
    table.weight.requires_grad = train
    return table


class TextConvolutionEncoder(nn.Module):
    """Token ids [row, place], 0 for padding, to [row, len(kernels) * filters].

    >>> encoder = TextConvolutionEncoder(torch.nn.Embedding(20, 8, padding_idx=0), 10, (3, 5))
    >>> codes = encoder(torch.tensor([[4, 2, 7, 0, 0], [3, 0, 0, 0, 0]]))
    >>> tuple(codes.shape)  # 10 filters of 2 widths
    (2, 20)
    """

    def __init__(self, words: nn.Embedding, filters: int, kernels: tuple[int, ...]) -> None:
        super().__init__()
        self.words = words
        self.convolutions = nn.ModuleList(
            nn.Conv1d(words.embedding_dim, filters, width, padding=width // 2) for width in kernels
        )
        self.features = filters * len(kernels)

    @property
    def last_layer(self) -> nn.Module:
        """The layer all tasks train last: kernels of all widths, since they lie side by side."""
        return self.convolutions

    def forward(self, batch: Tensor | tuple[Tensor, Tensor]) -> Tensor:
        if isinstance(batch, tuple):
            first, second = self._encode(batch[0]), self._encode(batch[1])
            return torch.cat([first, second, (first - second).abs(), first * second], dim=1)
        return self._encode(batch)

    def _encode(self, ids: Tensor) -> Tensor:
        vectors = self.words(ids)
        if ids.is_cuda and torch.is_autocast_enabled("cuda") and not vectors.requires_grad:
            return self.encode_windows(ids, vectors.to(torch.get_autocast_dtype("cuda")))
        vectors = vectors.transpose(1, 2)
        # After the ReLU nothing is below 0, so a product with the mask takes padding out of the
        # maximum: a row's code does not depend on how long its neighbours in the batch are.
        inside = (ids != 0).unsqueeze(1)
        found = [(conv(vectors).relu_() * inside).amax(dim=2) for conv in self.convolutions]
        return torch.cat(found, dim=1)

    def encode_windows(self, ids: Tensor, vectors: Tensor) -> Tensor:
        """The same as one product of all windows with all kernels.

        In half precision a GPU takes half the time for it, in spite of the narrow kernels' zeros; sizes
        are rounded up to the multiples of 8 its matrix units want. Nothing flows back to the vectors.
        """
        layers = [cast("nn.Conv1d", conv) for conv in self.convolutions]
        kernels = [conv.weight for conv in layers]
        widest = max(kernel.shape[2] for kernel in kernels)
        more, side = -vectors.shape[2] % 8, widest // 2
        vectors = pad(vectors, (0, more, side, side))
        rows, places, width = len(ids), ids.shape[1], vectors.shape[2]
        strides = (vectors.stride(0), vectors.stride(1), 1)
        windows = vectors.as_strided((rows, places, widest * width), strides)
        centred = [
            pad(kernel, 2 * ((widest - kernel.shape[2]) // 2,) + (0, more)) for kernel in kernels
        ]
        matrix = torch.cat(centred).permute(2, 1, 0).reshape(widest * width, self.features)
        answers = windows @ pad(matrix, (0, -self.features % 8)).to(vectors.dtype)
        answers = answers.masked_fill((ids == 0).unsqueeze(2), -torch.inf)
        bias = torch.cat([cast("Tensor", conv.bias) for conv in layers])
        return (answers.amax(dim=1)[:, : self.features] + bias).relu()


@dataclass(frozen=True, kw_only=True)
class TextConvolution:
    """Options of the text convolution; word vectors come from a file or are learned.

    >>> architecture = TextConvolution(filters=10, dimension=8)
    >>> architecture.encoding.max_length, architecture.encoding.min_count
    (500, 2)
    >>> TextConvolution(kernels=(2, 4))
    Traceback (most recent call last):
        ...
    taskmix.errors.OptionError: `kernels` should be odd widths, so that a filter ...
    """

    filters: int = 100
    kernels: tuple[int, ...] = (3, 5, 7)
    head_dropout: float = 0.5
    dimension: int = 100  # of learned word vectors; a file brings its own
    vectors: Path | None = None
    train_vectors: bool = False  # vectors from a file stay as they are; learned ones always train
    max_length: int = 500
    max_words: int = 50_000
    min_count: int = 2

    def __post_init__(self) -> None:
        if not self.kernels or any(width < 1 or width % 2 == 0 for width in self.kernels):
            raise OptionError(
                f"`kernels` should be odd widths, so that a filter has a centre. Found "
                f"{self.kernels}. Give for instance (3, 5, 7)."
            )

    @property
    def encoding(self) -> WordEncoding:
        return WordEncoding(
            max_length=self.max_length,
            max_words=self.max_words,
            min_count=self.min_count,
            vectors=self.vectors,
        )

    def build(self, tasks: EncodedTasks) -> HardSharing:
        words = word_embedding(tasks, self.dimension, train=self.train_vectors)
        encoder = TextConvolutionEncoder(words, self.filters, self.kernels)
        heads = []
        for task in tasks:
            split = next(iter(task.splits.values()))
            pairs = isinstance(split.inputs, PairInputs)
            features = 4 * encoder.features if pairs else encoder.features
            heads.append(make_head(tasks, task, features, dropout=self.head_dropout))
        return HardSharing(encoder, heads, tasks.names)

"""Which stacked encoder stands for which architecture."""

from __future__ import annotations

import torch

from taskmix.engine._fleet._adapters import AdapterStack, WritingStack
from taskmix.engine._fleet._causal import CausalStack
from taskmix.engine._fleet._perceptron import Encoder, PerceptronStack
from taskmix.engine._fleet._pool import (
    DensePool,
    Numbering,
    WindowPool,
    WordTables,
    text_pools,
)
from taskmix.engine._fleet._words import StackedWords, TextConvolutionStack, WindowBiLSTMStack
from taskmix.errors import OptionError
from taskmix.models import (
    Architecture,
    CausalTransformer,
    Perceptron,
    TextConvolution,
    Transformer,
    WindowBiLSTM,
)
from taskmix.tasks import WRITTEN

STACKABLE = (Perceptron, TextConvolution, WindowBiLSTM, CausalTransformer, Transformer)


def build_encoder(
    options: Architecture,
    numbering: Numbering,
    device: torch.device,
    precision: torch.dtype,
    steps: int,  # to come
    *,
    compiled: bool,  # where there is a choice
) -> Encoder:
    """The stacked encoder over the rows of all members."""
    if isinstance(options, Perceptron):
        return PerceptronStack(options, DensePool(numbering, device))
    if isinstance(options, CausalTransformer):
        pool, outputs = DensePool(numbering, device), numbering.encodings[0][0].outputs
        return CausalStack(options, pool, outputs, precision, steps)
    if isinstance(options, TextConvolution | WindowBiLSTM):
        frozen = not options.train_vectors and numbering.encodings[0].vectors is not None
        tables = WordTables(numbering.encodings, frozen=frozen)
        words = StackedWords(None if tables.table is None else tables.table.to(device))
        if isinstance(options, TextConvolution):
            return TextConvolutionStack(options, *text_pools(numbering, tables, device), words)
        return WindowBiLSTMStack(options, WindowPool(numbering, tables, device), words)
    if isinstance(options, Transformer):
        kind = WritingStack if numbering.encodings[0][0].kind in WRITTEN else AdapterStack
        return kind(options, numbering, device, precision, compiled=compiled)
    raise OptionError(
        f"A fleet should be of {', '.join(kind.__name__ for kind in STACKABLE)}. Found "
        f'{type(options).__name__}. Run it with engine="here".'
    )

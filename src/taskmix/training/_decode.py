"""Text that a model writes by itself: always the likeliest next piece, many rows at once.

What was read is kept (keys and values of every layer), so a new piece costs one piece and not the
whole text. Rows end on the same side (padding stands on the left), and are read on together until
each has written its end or as many pieces as it may.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor

from taskmix.errors import InputError
from taskmix.models import HardSharing
from taskmix.tasks import EncodedSplit, SubwordInputs

PIECES_AT_ONCE = 1 << 14  # of the prompts in a batch, padding included: bounds what is kept of them


@runtime_checkable
class WritesText(Protocol):
    """An encoder that can continue a text.

    >>> class Counting:  # the code of a piece is the piece after it
    ...     def read_on(self, pieces, cache):
    ...         return torch.eye(9)[pieces["input_ids"][:, -1] + 1], None
    >>> isinstance(Counting(), WritesText), isinstance(torch.nn.Linear(1, 1), WritesText)
    (True, False)
    """

    def read_on(self, pieces: Mapping[str, Tensor], cache: Any) -> tuple[Tensor, Any]:
        """Reads `input_ids` [row, piece] after what is in the cache, None at the beginning.

        `attention_mask` covers all that was read, and `position_ids` the new pieces. Gives the code
        of each row's last piece, [row, feature], and the cache to go on from.
        """
        ...


@dataclass(frozen=True)
class Written:
    """What a model wrote for one row."""

    pieces: tuple[int, ...]  # without the end
    log_probability: float  # the mean over its pieces, the end included where it came


def write_answers(
    model: HardSharing,
    head: int,
    data: EncodedSplit,
    *,
    most: int,  # pieces to write, the end included
    end: int,
    context: int | None = None,  # pieces that the model can read
    precision: torch.dtype = torch.float32,
) -> list[Written]:
    """What a model writes after the prompts of a split, in the order of its rows."""
    encoder, inputs = model.encoder, data.inputs
    if not isinstance(encoder, WritesText) or not isinstance(inputs, SubwordInputs):
        raise InputError(
            "Answers should be written by a causal language model. Found "
            f"{type(encoder).__name__}, which cannot continue a text. Choose another model, or a "
            "metric of pieces such as exact_match."
        )
    assert inputs.word_starts is not None
    device = data.targets.device
    starts, lengths = inputs.offsets[:-1].cpu(), inputs.word_starts[:, 0].cpu() + 1
    found: list[Written | None] = [None] * len(data)
    autocast = torch.autocast(device.type, precision, enabled=precision != torch.float32)
    with torch.inference_mode(), autocast:
        for rows in _prompt_batches(lengths):
            width = int(lengths[rows].max())
            before = torch.arange(width) - (
                width - lengths[rows, None]
            )  # [row, place], below 0: padding
            places = (starts[rows, None] + before.clamp(min=0)).to(device)
            mask = (before >= 0).long().to(device)
            ids = inputs.ids[places].masked_fill(mask == 0, inputs.padding)
            room = most if context is None else min(most, context + 1 - width)
            written = _write(encoder, model.heads[head], ids, mask, max(room, 1), end)
            for row, each in zip(rows.tolist(), written, strict=True):
                found[row] = each
    return [each for each in found if each is not None]


def _write(
    encoder: WritesText, head: torch.nn.Module, ids: Tensor, mask: Tensor, most: int, end: int
) -> list[Written]:
    cache: Any = None
    positions = (mask.cumsum(dim=1) - 1).clamp(min=0)
    going = torch.ones(len(ids), dtype=torch.bool, device=ids.device)
    totals = torch.zeros(len(ids), device=ids.device)
    columns: list[Tensor] = []
    for _ in range(most):
        batch = {"input_ids": ids, "attention_mask": mask, "position_ids": positions}
        codes, cache = encoder.read_on(batch, cache)
        scores = torch.log_softmax(head(codes).float(), dim=-1)
        best, pieces = scores.max(dim=-1)
        totals += torch.where(going, best, 0.0)
        columns.append(torch.where(going, pieces, -1))  # nothing comes after the end
        going = going & (pieces != end)
        if not going.any():
            break
        ids, positions = pieces[:, None], positions[:, -1:] + 1
        mask = torch.cat([mask, torch.ones_like(mask[:, :1])], dim=1)
    rows = torch.stack(columns, dim=1).tolist()
    found = []
    for row, total in zip(rows, totals.tolist(), strict=True):
        kept = [piece for piece in row if piece >= 0]
        text = kept[:-1] if kept[-1] == end else kept
        found.append(Written(tuple(text), total / len(kept)))
    return found


def _prompt_batches(lengths: Tensor) -> Sequence[Tensor]:
    """Rows of like length together, so that little is padding."""
    order = torch.argsort(lengths, stable=True)
    batches, begin = [], 0
    for place, length in enumerate(lengths[order].tolist()):
        if place > begin and (place + 1 - begin) * length > PIECES_AT_ONCE:
            batches.append(order[begin:place])
            begin = place
    return [*batches, order[begin:]]

"""A frozen base reads the rows of all members at once.

Its attention, which must not look from one row into another, is put in place of the network's own while
it reads; everything else of a transformer treats every piece alike.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from taskmix.engine._fleet._attention import kernel_for
from taskmix.engine._fleet._pieces import Layout, packed_rows, padded_rows
from taskmix.models import FrozenBase

LONG_ROW = 256  # beyond, padding costs attention more than the kernel for rows of any length does
MOST_ROWS = 1 << 15  # that a kernel of attention is given at once: it cannot number twice as many
PACKED = "taskmix_packed"  # the name of our attention among those of transformers


def states_of(base: FrozenBase, layout: Layout) -> Tensor:
    """The last states of a base, [piece, feature]."""
    network: Any = base.network
    given: dict[str, Any] = {"use_cache": False} if base.causal else {}
    if layout.row_of_piece is None:
        shape = (len(layout.starts), layout.longest)
        given |= {
            "input_ids": layout.ids.view(shape),
            "attention_mask": layout.inside().long(),
        }
        if layout.types is not None:
            given["token_type_ids"] = layout.types.view(shape)
        found: Tensor = network(**given).last_hidden_state
        return found.flatten(0, 1)
    given |= {
        "input_ids": layout.ids[None],
        "position_ids": layout.positions[None] + layout.first_position,
    }
    if layout.types is not None:
        given["token_type_ids"] = layout.types[None]
    with _attending(base, layout):
        packed: Tensor = network(**given).last_hidden_state
    return packed.squeeze(0)


class _Attending:
    """The layout that our attention reads by, for the length of a forward pass."""

    layout: Layout | None = None
    causal = False


_now = _Attending()


@contextmanager
def _attending(base: FrozenBase, layout: Layout) -> Iterator[None]:
    from transformers import AttentionInterface

    AttentionInterface.register(PACKED, _attention)
    before = base.config._attn_implementation
    base.config._attn_implementation = PACKED
    _now.layout, _now.causal = layout, base.causal
    try:
        yield
    finally:
        base.config._attn_implementation = before
        _now.layout = None


def _attention(
    module: Any,
    query: Tensor,  # [1, head, piece, feature]
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    **more: Any,
) -> tuple[Tensor, None]:
    """Attention within rows; what transformers calls in place of its own."""
    layout = _now.layout
    assert layout is not None
    assert layout.row_of_piece is not None
    window = more.get("sliding_window")
    if more.get("softcap") is not None or (window is not None and window < layout.longest):
        raise TypeError("this kind of attention")
    groups = query.shape[1] // key.shape[1]
    if groups > 1:
        key = key.repeat_interleave(groups, dim=1)
        value = value.repeat_interleave(groups, dim=1)
    query, key, value = (each[0].transpose(0, 1) for each in (query, key, value))
    if not layout.even and layout.longest > LONG_ROW and can_flash(query):
        return _flash(query, key, value, layout, scaling).unsqueeze(0), None
    shape = (len(layout.starts), layout.longest, *query.shape[1:])
    rows = [padded_rows(each, layout).view(shape).transpose(1, 2) for each in (query, key, value)]
    # After the end of a row come its gaps, which a causal model does not look at.
    mask = None if _now.causal or layout.even else layout.inside()[:, None, None, :]
    parts = [torch.split(each, MOST_ROWS) for each in rows]
    masks = [None] * len(parts[0]) if mask is None else torch.split(mask, MOST_ROWS)
    with kernel_for(layout.longest, query.device):
        some = [
            functional.scaled_dot_product_attention(
                q, k, v, attn_mask=own, is_causal=_now.causal, scale=scaling
            )
            for q, k, v, own in zip(*parts, masks, strict=True)
        ]
    found = (some[0] if len(some) == 1 else torch.cat(some)).transpose(1, 2).flatten(0, 1)
    return packed_rows(found, layout).unsqueeze(0), None


def can_flash(query: Tensor) -> bool:
    """Whether the kernel for rows of any length takes these."""
    return query.is_cuda and query.dtype in (torch.float16, torch.bfloat16)


def _flash(
    query: Tensor, key: Tensor, value: Tensor, layout: Layout, scaling: float | None
) -> Tensor:
    """Attention over rows of any length, by the kernel that is made for that."""
    from torch.nn.attention.varlen import varlen_attn

    assert layout.bounds is not None
    known = inspect.signature(varlen_attn).parameters  # it has changed since PyTorch 2.10
    options: dict[str, Any] = {}
    if "window_size" in known:
        options["window_size"] = (-1, 0) if _now.causal else (-1, -1)
    else:
        options["is_causal"] = _now.causal
    if scaling is not None:
        if "scale" in known:
            options["scale"] = scaling
        else:
            query = query * (scaling * math.sqrt(query.shape[-1]))
    bounds, longest = layout.bounds, layout.longest
    found: Any = varlen_attn(query, key, value, bounds, bounds, longest, longest, **options)
    return found  # type: ignore[no-any-return]

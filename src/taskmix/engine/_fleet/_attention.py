"""Attention over short rows as one kernel each way.

Where a head's scores fit a processor's registers, turning queries and keys, attending and all of the way
back need to read and write the projected states once. A general kernel turns them in another pass and
adds up parts of the gradients in float32 in memory. The kernels are compared with plain attention
before they are used.

A frozen base reads the rows of all members at once. Its attention, which must not look from one row into
another, is put in place of the network's own while it reads; everything else of a transformer treats
every piece alike.
"""

from __future__ import annotations

import inspect
import math
import os
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from importlib import import_module
from typing import Any, cast

import torch
from torch import Tensor
from torch.nn import functional

from taskmix.engine._fleet._compiled import SWITCH
from taskmix.engine._fleet._pieces import Layout, packed_rows, padded_rows
from taskmix.errors import TaskmixWarning
from taskmix.models import FrozenBase, attend, rotary_table

Attend = Callable[[Tensor, Tensor], Tensor]

KERNELS = f"{__package__}._attention_kernels"  # there is no Triton to import it with everywhere
LONGEST = 128  # places whose scores fit the registers
WIDTHS = (32, 64, 128)  # of a head, whose halves a product of the device takes
TRIED_ROWS = 2048  # enough to keep a device busy: the kernels time their variants on them, too
WORTH = 1.5  # times PyTorch's kernel, which needs about as long again to turn queries and keys
AGREES = 0.03  # of the root mean square: what bfloat16 rounds off, and no mistake


def attention_for(
    places: int, heads: int, width: int, precision: torch.dtype, device: torch.device
) -> Attend:
    """The fastest attention that is known to be right for rows of these sizes."""
    short = device.type == "cuda" and places <= LONGEST and width in WIDTHS
    if not short or precision == torch.float32 or os.environ.get(SWITCH) in ("0", "step"):
        return attend
    try:
        off = largest_error(places, heads, width, precision, device, rows=TRIED_ROWS)
        share = share_of_plain_time(places, heads, width, precision, device)
    except Exception as error:  # no compiler, another version of it: what is plain does as well
        words = f"{type(error).__name__}: {error}".splitlines()[0]
    else:
        if off < AGREES:
            return attend_short_rows if share < WORTH else attend
        words = f"its results were off by {off:.2g}"
    warnings.warn(f"Attention is not fused, and slower: {words}", TaskmixWarning, stacklevel=2)
    return attend


def kernel_for(places: int, device: torch.device) -> AbstractContextManager[object]:
    """For short rows PyTorch's second kernel is twice as fast as the one that it takes first."""
    if device.type != "cuda" or places > LONGEST:
        return nullcontext()
    from torch.nn.attention import SDPBackend, sdpa_kernel

    return sdpa_kernel([SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH])


def largest_error(
    places: int,
    heads: int,
    width: int,
    precision: torch.dtype,
    device: torch.device,
    *,
    rows: int = 3,
) -> float:
    """Of the kernels' results and gradients against plain attention, by root mean squares."""
    import_module(KERNELS)
    draw = partial(torch.randn, generator=torch.Generator(device).manual_seed(0), device=device)
    drawn = draw((rows, places, 3 * heads, width)).to(precision)
    weights = draw((rows, places, heads, width)).to(precision)
    table = rotary_table(places, width, device)
    results = []
    for function, kind in ((attend_short_rows, precision), (attend, torch.float32)):
        given = drawn.to(kind).requires_grad_()
        with torch.enable_grad():
            found = function(given, table)
        (back,) = torch.autograd.grad(found, given, weights.to(kind))
        results.append((found.detach().float(), back.float()))
    errors = [(mine - right).norm() / right.norm() for mine, right in zip(*results, strict=True)]
    return float(torch.stack(errors).max())


def share_of_plain_time(
    places: int, heads: int, width: int, precision: torch.dtype, device: torch.device
) -> float:
    """The time of the kernels over that of PyTorch's own, which turns nothing; both ways."""
    shape = (TRIED_ROWS, places, 3 * heads, width)
    given = torch.zeros(shape, device=device, dtype=precision, requires_grad=True)
    weights = torch.zeros(*shape[:2], heads, width, device=device, dtype=precision)
    table = rotary_table(places, width, device)

    def plain(projected: Tensor, _: Tensor) -> Tensor:
        queries, keys, values = projected.transpose(1, 2).chunk(3, dim=1)
        found = functional.scaled_dot_product_attention(queries, keys, values, is_causal=True)
        return found.transpose(1, 2)

    times = []
    for function in (attend_short_rows, plain):
        for count in (3, 20):  # the first ones are slower
            torch.cuda.synchronize(device)
            begin = time.perf_counter()
            for _ in range(count):
                with torch.enable_grad(), kernel_for(places, device):
                    found = function(given, table)
                torch.autograd.grad(found, given, weights)
            torch.cuda.synchronize(device)
            seconds = time.perf_counter() - begin
        times.append(seconds)
    return times[0] / times[1]


def attend_short_rows(projected: Tensor, table: Tensor) -> Tensor:
    """What `attend` gives, by the kernels, which have to be imported."""
    return cast("Tensor", _Attention.apply(projected, table))  # type: ignore[no-untyped-call]


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, projected: Tensor, table: Tensor) -> Tensor:
        projected, table = projected.contiguous(), table.contiguous()
        ctx.save_for_backward(projected, table)
        return cast("Tensor", torch.ops.taskmix.attend_short(projected, table))

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        projected, table = ctx.saved_tensors
        back = torch.ops.taskmix.attend_short_back
        return back(gradient.contiguous(), projected, table), None


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

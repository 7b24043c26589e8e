# mypy: disable-error-code="no-untyped-def, untyped-decorator"
"""Kernels of `_attention.py`, one program for each head of each row. Imported only where Triton is."""

import torch
import triton
import triton.language as tl
from torch import Tensor

# What a row is read from: [row, place, 3 * head, width], queries, then keys, then values. The two
# halves of queries and keys are the axes that a place turns.


def _fastest(*warps: int):
    """Tries some numbers of warps on the first call; with few registers more programs run at once."""
    configs = [triton.Config({}, num_warps=count) for count in warps]
    configs.append(triton.Config({}, num_warps=8, maxnreg=128))
    if triton.knobs.runtime.interpret:  # nothing to time
        configs = configs[:1]
    return triton.autotune(configs, key=["length", "HEADS", "HALF"])


@triton.jit
def _read_turned(source, cosine, sine, step, half, inside):
    places = tl.arange(0, cosine.shape[0])
    columns = tl.arange(0, cosine.shape[1])
    place = source + places[:, None] * step + columns[None, :]
    first = tl.load(place, mask=inside, other=0.0)
    second = tl.load(place + half, mask=inside, other=0.0)
    kind = first.dtype
    first, second = first.to(tl.float32), second.to(tl.float32)
    turned = first * cosine - second * sine
    return turned.to(kind), (second * cosine + first * sine).to(kind)


@triton.jit
def _write_turned_back(target, first, second, cosine, sine, step, half, inside):
    places = tl.arange(0, cosine.shape[0])
    columns = tl.arange(0, cosine.shape[1])
    place = target + places[:, None] * step + columns[None, :]
    tl.store(place, (first * cosine + second * sine).to(target.dtype.element_ty), mask=inside)
    turned = second * cosine - first * sine
    tl.store(place + half, turned.to(target.dtype.element_ty), mask=inside)


@triton.jit
def _weights(query, query2, key, key2, scale):
    scores = tl.dot(query, tl.trans(key))
    scores = tl.dot(query2, tl.trans(key2), scores) * scale
    places = tl.arange(0, query.shape[0])
    scores = tl.where(places[None, :] <= places[:, None], scores, float("-inf"))
    weights = tl.exp(scores - tl.max(scores, 1)[:, None])
    return weights / tl.sum(weights, 1)[:, None]


@_fastest(4, 8)
@triton.jit
def _attend(
    projected, table, attended, length, scale,
    HEADS: tl.constexpr, PLACES: tl.constexpr, HALF: tl.constexpr,
):  # fmt: skip
    row, head = tl.program_id(0) // HEADS, tl.program_id(0) % HEADS
    places, columns = tl.arange(0, PLACES), tl.arange(0, 2 * HALF)
    halves = tl.arange(0, HALF)
    inside = places[:, None] < length
    angles = table + places[:, None] * HALF + halves[None, :]
    cosine = tl.load(angles, mask=inside, other=1.0)
    sine = tl.load(angles + length * HALF, mask=inside, other=0.0)
    step = 3 * HEADS * 2 * HALF
    source = projected + row.to(tl.int64) * length * step + head * 2 * HALF
    query, query2 = _read_turned(source, cosine, sine, step, HALF, inside)
    key, key2 = _read_turned(source + HEADS * 2 * HALF, cosine, sine, step, HALF, inside)
    values = source + 2 * HEADS * 2 * HALF + places[:, None] * step + columns[None, :]
    value = tl.load(values, mask=inside, other=0.0)
    found = tl.dot(_weights(query, query2, key, key2, scale).to(value.dtype), value)
    target = attended + row.to(tl.int64) * length * HEADS * 2 * HALF + head * 2 * HALF
    target += places[:, None] * (HEADS * 2 * HALF) + columns[None, :]
    tl.store(target, found.to(value.dtype), mask=inside)


@_fastest(8, 4)
@triton.jit
def _attend_back(
    gradient, projected, table, back, length, scale,
    HEADS: tl.constexpr, PLACES: tl.constexpr, HALF: tl.constexpr,
):  # fmt: skip
    row, head = tl.program_id(0) // HEADS, tl.program_id(0) % HEADS
    places, columns = tl.arange(0, PLACES), tl.arange(0, 2 * HALF)
    halves = tl.arange(0, HALF)
    inside = places[:, None] < length
    angles = table + places[:, None] * HALF + halves[None, :]
    cosine = tl.load(angles, mask=inside, other=1.0)
    sine = tl.load(angles + length * HALF, mask=inside, other=0.0)
    step = 3 * HEADS * 2 * HALF
    keys = HEADS * 2 * HALF
    begin = row.to(tl.int64) * length * step + head * 2 * HALF
    source, target = projected + begin, back + begin
    query, query2 = _read_turned(source, cosine, sine, step, HALF, inside)
    key, key2 = _read_turned(source + keys, cosine, sine, step, HALF, inside)
    value_places = 2 * keys + places[:, None] * step + columns[None, :]
    value = tl.load(source + value_places, mask=inside, other=0.0)
    given = gradient + row.to(tl.int64) * length * keys + head * 2 * HALF
    given += places[:, None] * keys + columns[None, :]
    of_found = tl.load(given, mask=inside, other=0.0)
    weights = _weights(query, query2, key, key2, scale)
    of_value = tl.dot(tl.trans(weights.to(value.dtype)), of_found)
    tl.store(target + value_places, of_value.to(value.dtype), mask=inside)
    of_weights = tl.dot(of_found, tl.trans(value))
    mean = tl.sum(weights * of_weights, 1)
    of_scores = (weights * (of_weights - mean[:, None]) * scale).to(value.dtype)
    _write_turned_back(
        target, tl.dot(of_scores, key), tl.dot(of_scores, key2), cosine, sine, step, HALF, inside
    )
    turned = tl.trans(of_scores)
    _write_turned_back(
        target + keys, tl.dot(turned, query), tl.dot(turned, query2),
        cosine, sine, step, HALF, inside,
    )  # fmt: skip


def _sizes(projected: Tensor) -> tuple[int, int, int, int, float]:
    """Heads, places rounded up, half a head's width, all programs, and the scale of scores."""
    rows, length, heads, width = projected.shape
    places = max(16, triton.next_power_of_2(length))
    return heads // 3, places, width // 2, rows * heads // 3, width**-0.5


@torch.library.custom_op("taskmix::attend_short", mutates_args=())
def attend_short(projected: Tensor, table: Tensor) -> Tensor:
    heads, places, half, programs, scale = _sizes(projected)
    rows, length, _, width = projected.shape
    attended = projected.new_empty(rows, length, heads, width)
    _attend[(programs,)](projected, table, attended, length, scale, heads, places, half)
    return attended


@torch.library.custom_op("taskmix::attend_short_back", mutates_args=())
def attend_short_back(gradient: Tensor, projected: Tensor, table: Tensor) -> Tensor:
    heads, places, half, programs, scale = _sizes(projected)
    back = torch.empty_like(projected)
    _attend_back[(programs,)](
        gradient, projected, table, back, projected.shape[1], scale, heads, places, half
    )
    return back


@attend_short.register_fake
def _(projected: Tensor, table: Tensor) -> Tensor:
    rows, length, heads, width = projected.shape
    return projected.new_empty(rows, length, heads // 3, width)


@attend_short_back.register_fake
def _(gradient: Tensor, projected: Tensor, table: Tensor) -> Tensor:
    return torch.empty_like(projected)

"""The pieces of all members' rows, one after another, with hardly any padding between them.

A transformer treats every piece alike, except in its attention, which must not look from one row into
another. So the rows of a step are laid end to end. A member's pieces fill whole tiles, so that a
tile's pieces belong to one member and its adapters can be applied by one batched product over tiles.
What attention needs is where each row begins and how long it is.

A network whose attention cannot be replaced reads padded rows instead, as it would alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from taskmix.engine._fleet._pool import Numbering
from taskmix.models import FrozenBase
from taskmix.tasks import Pooling, SubwordInputs, pool

TILE = 64  # pieces: of a smaller one the adapters' products are too thin, a larger one pads more
PACKED = "taskmix_packed"  # the name of our attention among those of transformers


@dataclass(frozen=True)
class Way:
    """How a network is given its rows."""

    packed: bool  # end to end, or else padded
    first_position: int = 0  # of a row: RoBERTa counts from the number after that of its padding


PADDED = Way(packed=False)


@dataclass(frozen=True)
class Layout:
    """Where the rows of a step lie among its pieces."""

    ids: Tensor  # [piece]
    positions: Tensor  # [piece], within its row
    first_position: int  # that the network counts from
    types: Tensor | None  # [piece]
    starts: Tensor  # [row], the first piece
    sizes: Tensor  # [row]
    longest: int  # no row is longer
    member_of_tile: Tensor  # [tile]
    tiles_of_member: Tensor  # [member]; all tiles belong to one
    row_of_piece: Tensor | None  # [piece]; None where rows are padded
    bounds: (
        Tensor | None
    )  # [sequence + 1]: rows, and the gaps between them, as attention reads them

    @property
    def tiles(self) -> int:
        return len(self.member_of_tile)

    def places(self) -> Tensor:
        """[row, place], the piece at each place of a row; the last one beyond its end."""
        steps = torch.arange(self.longest, device=self.starts.device)
        return self.starts[:, None] + torch.minimum(steps, self.sizes[:, None] - 1)

    def inside(self) -> Tensor:
        """[row, place], which places a row has."""
        steps = torch.arange(self.longest, device=self.starts.device)
        return steps < self.sizes[:, None]


class PiecePool:
    """The pieces of all rows of a fleet."""

    def __init__(self, numbering: Numbering, device: torch.device) -> None:
        parts: list[Any] = numbering.inputs
        assert all(isinstance(part, SubwordInputs) for part in parts)
        begin, starts, types = 0, [], []
        for part in parts:
            starts.append(part.offsets[:-1] + begin)
            begin += len(part.ids)
            types.append(torch.zeros_like(part.ids) if part.types is None else part.types)
        self._ids = torch.cat([part.ids for part in parts]).to(device)
        self._starts = torch.cat(starts).to(device)
        self._sizes = torch.cat([part.lengths for part in parts]).to(device)
        typed = any(part.types is not None for part in parts)
        self._types = torch.cat(types).to(device) if typed else None
        self._words = _word_starts(parts, device)

    def room(self, rows: Tensor, words: int, way: Way) -> tuple[int, int, int]:
        """Tiles, the longest row and words a row, for rows [step, member, ...]."""
        sizes = self._sizes[rows.flatten(2)]
        longest = -(-int(sizes.max()) // 16) * 16
        if not way.packed:
            return rows.shape[1], longest, words
        tiles = int((-(-sizes.sum(dim=2) // TILE)).sum(dim=1).max())
        grain = max(1, 1 << (tiles.bit_length() - 4))  # a graph for each: not one for every number
        return -(-tiles // grain) * grain, longest, words

    def probe(self) -> Tensor:
        """A few rows [member, row] of different lengths, to try a network on."""
        order = torch.argsort(self._sizes, stable=True)
        places = torch.linspace(0, len(order) - 1, 4, device=order.device).long()
        return order[places].view(2, 2)

    def lay_out(self, rows: Tensor, room: tuple[int, int, int], way: Way) -> Layout:
        """Rows [member, row], without asking the host."""
        return self._packed(rows, room, way) if way.packed else self._padded(rows, room)

    def _packed(self, rows: Tensor, room: tuple[int, int, int], way: Way) -> Layout:
        tiles, longest, _ = room
        device = rows.device
        sizes = self._sizes[rows]
        own = -(-sizes.sum(dim=1) // TILE)
        ends = own.cumsum(0)
        starts = (ends - own).unsqueeze(1) * TILE + sizes.cumsum(dim=1) - sizes
        gaps = own * TILE - sizes.sum(dim=1)
        flat_starts, flat_sizes = starts.flatten(), sizes.flatten()
        pieces = torch.arange(tiles * TILE, device=device)
        row = torch.searchsorted(flat_starts, pieces, right=True) - 1
        within = pieces - flat_starts[row]
        inside = within < flat_sizes[row]
        source = torch.where(inside, self._starts[rows].flatten()[row] + within, 0)
        numbers = torch.arange(tiles, device=device)
        member = torch.searchsorted(ends, numbers, right=True).clamp_(max=len(rows) - 1)
        spare = torch.zeros_like(own)
        spare[-1:] = tiles - ends[-1:]  # tiles that no member needs in this step
        # Attention reads every piece, those in the gaps too: as rows of their own.
        lengths = torch.cat([sizes, gaps.unsqueeze(1)], dim=1).flatten().cumsum(0)
        rest = torch.arange(1, tiles * TILE // longest + 2, device=device) * longest
        rest = (rest + ends[-1] * TILE).clamp_(max=tiles * TILE)
        bounds = torch.cat([lengths.new_zeros(1), lengths, rest]).int()
        return Layout(
            ids=self._ids[source],
            positions=torch.where(inside, within, 0),
            first_position=way.first_position,
            types=None if self._types is None else self._types[source],
            starts=flat_starts,
            sizes=flat_sizes,
            longest=longest,
            member_of_tile=member,
            tiles_of_member=own + spare,
            row_of_piece=row,
            bounds=bounds,
        )

    def _padded(self, rows: Tensor, room: tuple[int, int, int]) -> Layout:
        _, longest, _ = room
        members, device = len(rows), rows.device
        sizes = self._sizes[rows].flatten()
        places = torch.arange(longest, device=device)
        source = torch.minimum(places, sizes[:, None] - 1) + self._starts[rows].view(-1, 1)
        return Layout(
            ids=self._ids[source].flatten(),
            positions=places.repeat(len(sizes)),
            first_position=0,
            types=None if self._types is None else self._types[source].flatten(),
            starts=torch.arange(len(sizes), device=device) * longest,
            sizes=sizes,
            longest=longest,
            member_of_tile=torch.arange(members, device=device),
            tiles_of_member=torch.ones(members, dtype=torch.long, device=device),
            row_of_piece=None,
            bounds=None,
        )

    def read(
        self, states: Tensor, layout: Layout, rows: Tensor, words: int, pooling: Pooling
    ) -> Tensor:
        """From states [piece, feature] to codes [row * word, feature]."""
        if self._words is None:
            if pooling == "first":
                return states.index_select(0, layout.starts)
            if pooling == "last":
                return states.index_select(0, layout.starts + layout.sizes - 1)
            wide = states.index_select(0, layout.places().flatten())
            wide = wide.view(len(layout.starts), layout.longest, -1)
            return pool(wide, layout.inside().long(), pooling)
        places = self._words[rows.flatten()]
        more = words - places.shape[1]
        places = functional.pad(places, (0, more)) if more > 0 else places[:, :words]
        return states.index_select(0, (layout.starts[:, None] + places).flatten())


def _word_starts(parts: Sequence[Any], device: torch.device) -> Tensor | None:
    """[row, word], as wide as the longest sentence; None where rows are not read word by word."""
    tagged = [part.word_starts for part in parts if part.word_starts is not None]
    if not tagged:
        return None
    width = max(each.shape[1] for each in tagged)
    found = []
    for part in parts:
        starts = part.word_starts
        if starts is None:
            starts = torch.zeros(len(part), 1, dtype=torch.long)
        found.append(functional.pad(starts, (0, width - starts.shape[1])))
    return torch.cat(found).to(device)


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
    if query.is_cuda and query.dtype in (torch.float16, torch.bfloat16):
        return _flash(query, key, value, layout, scaling).unsqueeze(0), None
    places = layout.places().flatten()
    shape = (len(layout.starts), layout.longest, *query.shape[1:])
    wide = (
        each.index_select(0, places).view(shape).transpose(1, 2) for each in (query, key, value)
    )
    mask = None if _now.causal else layout.inside()[:, None, None, :]
    found = functional.scaled_dot_product_attention(
        *wide, attn_mask=mask, is_causal=_now.causal, scale=scaling
    )
    found = found.transpose(1, 2).flatten(0, 1)
    within = layout.row_of_piece * layout.longest + layout.positions
    return found.index_select(0, within).unsqueeze(0), None


def _flash(
    query: Tensor, key: Tensor, value: Tensor, layout: Layout, scaling: float | None
) -> Tensor:
    from torch.nn.attention.varlen import varlen_attn

    assert layout.bounds is not None
    found: Any = varlen_attn(
        query,
        key,
        value,
        layout.bounds,
        layout.bounds,
        layout.longest,
        layout.longest,
        scale=scaling,
        window_size=(-1, 0) if _now.causal else (-1, -1),
    )
    return found  # type: ignore[no-any-return]

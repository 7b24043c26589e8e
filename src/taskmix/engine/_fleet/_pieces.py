"""The pieces of all members' rows, one after another, with hardly any padding between them.

A transformer treats every piece alike, except in its attention, which must not look from one row into
another. So the rows of a step are laid end to end. A member's pieces fill whole tiles, so that a
tile's pieces belong to one member and its adapters can be applied by one batched product over tiles.
What attention needs is where each row begins and how long it is.

A network whose attention cannot be replaced reads padded rows instead, as it would alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from taskmix.engine._fleet._pool import Numbering
from taskmix.tasks import Pooling, SubwordInputs, pool

TILE = 64  # pieces: of a smaller one the adapters' products are too thin, a larger one pads more


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
    is_read: Tensor  # [piece], whether it belongs to its row, and not to the gap after it
    bounds: Tensor | None  # [sequence + 1], where rows and the gaps between them begin
    even: bool = False  # whether all rows have `longest` pieces, and nothing lies between them

    @property
    def tiles(self) -> int:
        return len(self.member_of_tile)

    def places(self) -> Tensor:
        """[row, place], the piece at each place of a row; the last one beyond its end."""
        steps = torch.arange(self.longest, device=self.starts.device)
        return self.starts[:, None] + torch.minimum(steps, self.sizes[:, None] - 1)

    def place_of_piece(self) -> Tensor:
        """[piece], its number among the places of all rows."""
        assert self.row_of_piece is not None
        return self.row_of_piece * self.longest + self.positions

    def inside(self) -> Tensor:
        """[row, place], which places a row has."""
        steps = torch.arange(self.longest, device=self.starts.device)
        return steps < self.sizes[:, None]


class Room(NamedTuple):
    """The sizes of a step's tensors."""

    tiles: int
    longest: int  # row
    words: int  # of a row
    spare: int = 0  # sequences that the tiles which no member needs are cut into
    even: bool = False  # whether all rows are as long, and nothing lies between them


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
        self._whole = _whole_rows(parts, device)
        self._tiles: dict[
            torch.Size, int
        ] = {}  # that steps of members and rows of these numbers had

    def room(self, rows: Tensor, words: int, way: Way) -> Room:
        """What rows [step, member, ...] need."""
        sizes = self._sizes[rows.flatten(2)]
        longest = -(-int(sizes.max()) // 16) * 16
        if not way.packed:
            return Room(rows.shape[1], longest, words)
        needed = (-(-sizes.sum(dim=2) // TILE)).sum(dim=1)
        least, tiles = int(needed.min()), int(needed.max())
        grain = 1 << max(0, tiles.bit_length() - 4)  # a graph for each: not one for every number
        even = bool((sizes == longest).all()) and sizes[0, 0].numel() * longest % TILE == 0
        if even:
            return Room(tiles, longest, words, 0, even=True)
        tiles = -(-tiles // grain) * grain
        # The steps before had about as many: one graph, compiled once, serves them all.
        known = self._tiles.get(rows.shape[1:], 0)
        if 3 * known >= 4 * tiles or tiles > known:
            self._tiles[rows.shape[1:]] = known = tiles
        tiles = known
        spare = -(-(tiles - least) * TILE // longest)
        return Room(tiles, longest, words, 1 << spare.bit_length())

    def probe(self) -> Tensor:
        """A few rows [member, row] of different lengths, to try a network on."""
        order = torch.argsort(self._sizes, stable=True)
        places = torch.linspace(0, len(order) - 1, 4, device=order.device).long()
        return order[places].view(2, 2)

    def lay_out(self, rows: Tensor, room: Room, way: Way) -> Layout:
        """Rows [member, row], without asking the host."""
        return self._packed(rows, room, way) if way.packed else self._padded(rows, room)

    def _packed(self, rows: Tensor, room: Room, way: Way) -> Layout:
        tiles, longest = room.tiles, room.longest
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
        rest = torch.arange(1, room.spare + 1, device=device) * longest
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
            is_read=inside,
            bounds=bounds,
            even=room.even,
        )

    def _padded(self, rows: Tensor, room: Room) -> Layout:
        longest = room.longest
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
            is_read=(places < sizes[:, None]).flatten(),
            bounds=None,
        )

    def read(
        self, states: Tensor, layout: Layout, rows: Tensor, words: int, pooling: Pooling
    ) -> Tensor:
        """From states [piece, feature] to codes [row * word, feature]."""
        if self._words is None:
            return _pooled(states, layout, pooling)
        places = self._words[rows.flatten()]
        more = words - places.shape[1]
        places = functional.pad(places, (0, more)) if more > 0 else places[:, :words]
        codes = states.index_select(0, (layout.starts[:, None] + places).flatten())
        if self._whole is None:
            return codes
        # Beside sentences, a row that is read as a whole has its code in the place of the first word.
        codes = codes.view(len(places), words, -1)
        whole = self._whole[rows.flatten()].view(-1, 1, 1)
        first = torch.where(whole, _pooled(states, layout, pooling).unsqueeze(1), codes[:, :1])
        return torch.cat([first, codes[:, 1:]], dim=1).flatten(0, 1)


def _pooled(states: Tensor, layout: Layout, pooling: Pooling) -> Tensor:
    """From states [piece, feature] to one code a row."""
    if pooling == "first":
        return states.index_select(0, layout.starts)
    if pooling == "last":
        return states.index_select(0, layout.starts + layout.sizes - 1)
    wide = states if layout.row_of_piece is None else padded_rows(states, layout)
    wide = wide.view(len(layout.starts), layout.longest, -1)
    return pool(wide, layout.inside().long(), pooling)


def _whole_rows(parts: Sequence[Any], device: torch.device) -> Tensor | None:
    """[row], whether it is read as a whole; None where all are, or none is."""
    whole = [torch.full((len(part),), part.word_starts is None) for part in parts]
    found = torch.cat(whole)
    return found.to(device) if 0 < int(found.sum()) < len(found) else None


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


def padded_rows(pieces: Tensor, layout: Layout) -> Tensor:
    """[piece, ...] to [row * place, ...]."""
    if layout.even:
        return pieces
    return _looked_up(pieces, layout.places().flatten(), layout.place_of_piece(), layout.is_read)


def packed_rows(rows: Tensor, layout: Layout) -> Tensor:
    """[row * place, ...] to [piece, ...]."""
    if layout.even:
        return rows
    return _looked_up(
        rows, layout.place_of_piece(), layout.places().flatten(), layout.inside().flatten()
    )


def _looked_up(values: Tensor, places: Tensor, back: Tensor, is_there: Tensor) -> Tensor:
    found: Tensor = _LookUp.apply(values, places, back, is_there)  # type: ignore[no-untyped-call]
    return found


class _LookUp(torch.autograd.Function):
    """`values[places]`, whose gradient is looked up at `back` too: it has no sums over places."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, places: Tensor, back: Tensor, is_there: Tensor) -> Tensor:
        ctx.save_for_backward(back, is_there)
        return values.index_select(0, places)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None, None]:
        back, is_there = ctx.saved_tensors
        found = gradient.index_select(0, back)
        return found * is_there.view(-1, *[1] * (found.dim() - 1)), None, None, None

"""Adapters of many members over one frozen base.

The base's linear modules see the pieces of all members as one product, and each module's adapters
are two batched products over tiles of pieces, of which each belongs to one member. Nothing here
knows an architecture: whatever network takes packed rows, or at least padded ones, is taken, which is
tried on a few rows before anything is trained.

Members may write text by the output layer of the base that they share. That layer has a row for each
piece of the vocabulary, so its scores at all places of a step would take more memory than the rest of
it. They are found some places at a time, and what is kept of them is the loss and its gradient at the
code: nothing of the layer itself is trained.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any, cast

import torch
from torch import Tensor
from torch.nn import functional

from taskmix.engine._fleet._attention import states_of
from taskmix.engine._fleet._compiled import SWITCH
from taskmix.engine._fleet._perceptron import Masks, Parameters
from taskmix.engine._fleet._pieces import PADDED, Layout, PiecePool, Room, Way
from taskmix.engine._fleet._pool import Numbering
from taskmix.errors import TaskmixWarning
from taskmix.models import (
    AddTo,
    FrozenBase,
    Transformer,
    adapter_key,
    frozen_base,
    outline_of,
)
from taskmix.tasks import find_pooling

# By how much packed rows may differ from padded ones, in root mean squares: what the type rounds off.
AGREES = {torch.float32: 1e-4, torch.bfloat16: 0.1, torch.float16: 0.02}


class AdapterStack:
    """Codes of rows by a frozen base with each member's own adapters."""

    widths: tuple[int, ...] = ()

    def __init__(
        self,
        options: Transformer,
        numbering: Numbering,
        device: torch.device,
        precision: torch.dtype,
        *,
        compiled: bool,
    ) -> None:
        self._base = frozen_base(options.path, device, precision)
        self._pool = PiecePool(numbering, device)
        self._pooling = options.pooling or find_pooling(options.path)
        self._names = tuple(outline_of(options.path).shapes(options.adapters.targets))
        self._scale = options.adapters.scale
        self._way = find_way(self._base, self._pool, precision)
        wanted = os.environ.get(SWITCH, "1")
        self._compiled = wanted == "always" or (compiled and wanted != "0")
        self._tried = False

    def room(self, rows: Tensor, words: int) -> Room:
        return self._pool.room(rows, words, self._way)

    def __call__(self, parameters: Parameters, rows: Tensor, masks: Masks, room: Room) -> Tensor:
        rows = rows.flatten(1)
        layout = self._pool.lay_out(rows, room, self._way)
        added = {
            name: TiledAdapters(
                parameters[f"{adapter_key(name)}.lora_A"],
                parameters[f"{adapter_key(name)}.lora_B"],
                self._scale,
                layout,
            )
            for name in self._names
        }
        # Evaluation has batches of many sizes, and a compiler would be asked about each.
        compiled = self._compiled and torch.is_grad_enabled()
        if compiled and not self._tried:
            self._tried = True
            compiled = self._compiled = self._try(added, layout)
        with (
            torch.autocast(rows.device.type, enabled=False),
            self._base.adding(added),
            self._base.compiled() if compiled else nullcontext(),
        ):
            states = states_of(self._base, layout)
            codes = self._pool.read(states, layout, rows, room.words, self._pooling)
        return codes.view(len(rows), -1, codes.shape[-1])

    def _try(self, added: Mapping[str, TiledAdapters], layout: Layout) -> bool:
        """Whether the base can be compiled, there and back: the plain one is as right."""
        trained = [each for adapters in added.values() for each in adapters.trained]
        try:
            with (
                torch.autocast(layout.ids.device.type, enabled=False),
                self._base.adding(added),
                self._base.compiled(),
            ):
                states = states_of(self._base, layout)
                torch.autograd.grad(states.sum(), trained, allow_unused=True)
        except torch.OutOfMemoryError:
            raise
        except Exception as error:  # no compiler, or one that fails in its own way
            first = (str(error).strip().splitlines() or [type(error).__name__])[0]
            words = f"Steps are not compiled, and slower: {first}"
            warnings.warn(words, TaskmixWarning, stacklevel=5)
            return False
        return True


def find_way(base: FrozenBase, pool: PiecePool, precision: torch.dtype) -> Way:
    """Packed rows where the network answers to them as to padded ones, else padded rows."""
    rows = pool.probe()
    padded = _read(base, pool, rows, PADDED)
    size = float(padded.square().mean().sqrt())
    for first in (0, 1 + (getattr(base.config, "pad_token_id", None) or 0)):
        way = Way(packed=True, first_position=first)
        packed = _read(base, pool, rows, way)
        if packed is None:
            break
        if float((packed - padded).square().mean().sqrt()) <= AGREES[precision] * size:
            return way
    return PADDED


@torch.no_grad()
def _read(base: FrozenBase, pool: PiecePool, rows: Tensor, way: Way) -> Any:
    """The states of all pieces; None where the network does not take rows that way."""
    layout = pool.lay_out(rows, pool.room(rows.unsqueeze(0), 1, way), way)
    try:
        states = states_of(base, layout)
    except torch.OutOfMemoryError:
        raise
    except (TypeError, ValueError, LookupError, RuntimeError, ImportError, AttributeError):
        if not way.packed:
            raise
        return None  # attention of its own kind, or positions that it wants to find itself
    return states.index_select(0, layout.places()[layout.inside()]).float()


class TiledAdapters(AddTo):
    """The adapters of one module, for all members."""

    def __init__(
        self,
        first: Tensor,  # [member, rank, in]
        second: Tensor,  # [member, out, rank]
        scale: float,
        layout: Layout,
    ) -> None:
        self._first, self._second = first, second
        self.trained = (first, second)
        self._scale, self._layout = scale, layout

    def __call__(self, inputs: Tensor, outputs: Tensor) -> Tensor:
        tiles = self._layout.tiles
        found: Tensor = _Tiled.apply(  # type: ignore[no-untyped-call]
            inputs.reshape(tiles, -1, inputs.shape[-1]),
            outputs.reshape(tiles, -1, outputs.shape[-1]),
            self._first,
            self._second,
            self._scale,
            self._layout.member_of_tile,
            self._layout.tiles_of_member,
        )
        return found.view(outputs.shape)


class _Tiled(torch.autograd.Function):
    """outputs + scale * B (A inputs), each tile with its member's A and B.

    The gradients of a member's A and B are sums over its tiles, taken in float32 and in order, so
    that they do not depend on which thread comes first.
    """

    @staticmethod
    def forward(
        ctx: Any,
        inputs: Tensor,  # [tile, piece, in]
        outputs: Tensor,  # [tile, piece, out]
        first: Tensor,
        second: Tensor,
        scale: float,
        member: Tensor,  # [tile]
        counts: Tensor,  # [member]
    ) -> Tensor:
        kind = inputs.dtype
        down = first.to(kind).index_select(0, member)
        up = (second * scale).to(kind).index_select(0, member)
        low = torch.bmm(inputs, down.transpose(1, 2))
        ctx.save_for_backward(inputs, low, first, second, member, counts)
        ctx.scale = scale
        return torch.baddbmm(outputs, low, up.transpose(1, 2))

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        inputs, low, first, second, member, counts = ctx.saved_tensors
        kind = inputs.dtype
        up = (second * ctx.scale).to(kind).index_select(0, member)
        of_low = torch.bmm(gradient, up)
        of_second = _by_member(torch.bmm(gradient.transpose(1, 2), low), counts) * ctx.scale
        of_first = _by_member(torch.bmm(of_low.transpose(1, 2), inputs), counts)
        of_inputs = None
        if ctx.needs_input_grad[0]:
            of_inputs = torch.bmm(of_low, first.to(kind).index_select(0, member))
        of_outputs = gradient if ctx.needs_input_grad[1] else None
        return of_inputs, of_outputs, of_first, of_second, None, None, None


def _by_member(tiles: Tensor, counts: Tensor) -> Tensor:
    """[tile, ...] to [member, ...], the sum over each member's tiles."""
    if len(tiles) == len(counts):  # rows are padded: a tile is a member
        return tiles.float()
    flat = tiles.float().flatten(1)
    found = torch.segment_reduce(flat, "sum", lengths=counts, unsafe=True)
    return found.view(len(counts), *tiles.shape[1:])


SCORES_AT_ONCE = 1 << 27  # half a gigabyte in float32


class WritingStack(AdapterStack):
    """Scores of the next piece at each place that is read, and their losses."""

    def __call__(self, parameters: Parameters, rows: Tensor, masks: Masks, room: Room) -> Tensor:
        """Scores [member, group * row * place, piece]."""
        codes = super().__call__(parameters, rows, masks, room)
        with torch.autocast(rows.device.type, enabled=False):
            return self._base.logits(codes)

    def losses(
        self,
        parameters: Parameters,
        rows: Tensor,  # [member, group, row]
        classes: Tensor,  # [member * slot, row * place]
        shares: Tensor,  # [member * slot, row * place]
        code_of: Tensor | None,  # [member * slot], which of the [member * group] a slot reads
        room: Room,
    ) -> Tensor:
        """The mean loss of each slot's places, [member * slot]."""
        codes = super().__call__(parameters, rows, (), room)
        codes = codes.view(-1, classes.shape[1], codes.shape[-1])
        if code_of is not None:
            codes = codes.index_select(0, code_of)
        with torch.autocast(rows.device.type, enabled=False):
            found = _PieceLosses.apply(codes.flatten(0, 1), classes.flatten(), self._base)  # type: ignore[no-untyped-call]
        return (cast("Tensor", found).view(classes.shape) * shares).sum(dim=1)


class _PieceLosses(torch.autograd.Function):
    """The cross-entropy at each place, [place], from codes [place, feature]."""

    @staticmethod
    def forward(ctx: Any, codes: Tensor, classes: Tensor, base: FrozenBase) -> Tensor:
        size = max(SCORES_AT_ONCE // int(base.config.vocab_size), 1)
        losses, gradients = [], []
        for some, wanted in zip(torch.split(codes, size), torch.split(classes, size), strict=True):
            leaf = some.detach().requires_grad_()
            with torch.enable_grad():
                scores = base.logits(leaf).float()
                each = functional.cross_entropy(scores, wanted, reduction="none")
                gradients.append(torch.autograd.grad(each.sum(), leaf)[0])
            losses.append(each.detach())
        ctx.save_for_backward(torch.cat(gradients))
        return torch.cat(losses)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        (of_codes,) = ctx.saved_tensors
        return of_codes * gradient.unsqueeze(1).to(of_codes.dtype), None, None

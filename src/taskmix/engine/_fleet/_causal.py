"""The causal transformer for all members at once.

Places of all rows of a member lie one after another, [member, row * place, feature], so that every
layer is one product a member, and all members' are one batched product. Attention sees each row of
each member as a row of its own. Where the precision is lower than float32, each weight is lowered once
a step, everything between the layers stays in that type, and the gradients of weights come out of their
products in float32, as the optimiser wants them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import torch
from torch import Tensor
from torch.nn import functional

from taskmix.engine._fleet._attention import attend_short_rows, attention_for, kernel_for
from taskmix.engine._fleet._compiled import Compiled
from taskmix.engine._fleet._perceptron import Masks, Parameters, Room
from taskmix.engine._fleet._pool import DensePool
from taskmix.models import CausalTransformer, rms_normed, rotary_table

IDS = "encoder.ids.weight"
OUTPUT = "encoder.output.weight"
WIDE_SUMS = hasattr(torch.ops.aten.bmm, "dtype")  # torch before 2.8 cannot give them
# The gradient of a table of so few ids is a product with indicators: in the same order every time.
FEW_IDS = 1024
# Rows that attention is given at once: its kernels cannot number more than twice as many.
MOST_ROWS = 1 << 15
COMPILED_STEPS = 1000  # fewer are done before a compiler is


class CausalStack:
    """Scores of what comes next at each place of each row, and their losses."""

    widths: tuple[int, ...] = ()

    def __init__(
        self,
        options: CausalTransformer,
        pool: DensePool,
        outputs: int,
        precision: torch.dtype,  # of products and of all between them
        steps: int,  # to come
    ) -> None:
        device = pool.values.device
        self._pool = pool
        self._outputs = outputs
        self._layers = options.layers
        self._heads = options.attention_heads
        width = options.width // self._heads
        self._table = rotary_table(options.context, width, device)
        self._attend = attention_for(options.context, self._heads, width, precision, device)
        self._precision = precision
        compiling = device.type == "cuda" and steps >= COMPILED_STEPS
        self._step = Compiled(self._losses) if compiling else self._losses

    @property
    def is_compiled(self) -> bool:
        """Whether what lies between products is fused, as far as is known."""
        return isinstance(self._step, Compiled) and self._step.works

    @property
    def has_own_attention(self) -> bool:
        """Whether attention is by own kernels."""
        return self._attend is attend_short_rows

    def room(self, rows: Tensor, words: int) -> Room:
        return 0

    def __call__(self, parameters: Parameters, rows: Tensor, masks: Masks, room: Room) -> Tensor:
        """Scores [member, group * row * place, output]."""
        ids = self._pool.gather(rows.flatten(1))
        with self._as_chosen():
            return self._scores(dict(parameters), ids)

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
        ids = self._pool.gather(rows.flatten(1))
        with self._as_chosen():
            return self._step(dict(parameters), ids, classes, shares, code_of)

    @contextmanager
    def _as_chosen(self) -> Iterator[None]:
        """In the types that are chosen here, and by the kernel of attention that is fast for rows."""
        device = self._table.device
        with torch.autocast(device.type, enabled=False), kernel_for(self._table.shape[1], device):
            yield

    def _losses(
        self,
        weights: dict[str, Tensor],
        ids: Tensor,
        classes: Tensor,
        shares: Tensor,
        code_of: Tensor | None,
    ) -> Tensor:
        scores = self._scores(weights, ids)
        if code_of is None:
            scores = scores.view(*classes.shape, -1)
        else:
            scores = scores.view(-1, classes.shape[1], scores.shape[-1]).index_select(0, code_of)
        return (place_losses(scores, classes) * shares).sum(dim=1)

    def _scores(self, weights: dict[str, Tensor], ids: Tensor) -> Tensor:
        """Of ids [member, row, place] the scores [member, row * place, output]."""
        members, rows, places = ids.shape
        table = self._table[:, :places]
        states = look_up(weights[IDS], ids.flatten(1), self._precision)
        for layer in range(self._layers):
            name = f"encoder.blocks.{layer}."
            projected = product(rms_normed(states), weights[name + "attention_in.weight"])
            heads = projected.view(members * rows, places, 3 * self._heads, -1)
            parts = [self._attend(part, table) for part in torch.split(heads, MOST_ROWS)]
            attended = parts[0] if len(parts) == 1 else torch.cat(parts)
            attended = attended.reshape(members, rows * places, -1)
            states = states + product(attended, weights[name + "attention_out.weight"])
            inner = product(rms_normed(states), weights[name + "forward_in.weight"])
            gates, passed = inner.chunk(2, dim=-1)
            passed = functional.silu(gates) * passed
            states = states + product(passed, weights[name + "forward_out.weight"])
        last = weights[OUTPUT] if OUTPUT in weights else weights[IDS][:, : self._outputs]
        return product(rms_normed(states), last)


def place_losses(scores: Tensor, classes: Tensor) -> Tensor:
    """The cross-entropy at each place, [slot, place], of scores [slot, place, class]."""
    return cast("Tensor", _PlaceLosses.apply(scores, classes))  # type: ignore[no-untyped-call]


class _PlaceLosses(torch.autograd.Function):
    """Keeps the scores as they are, of whatever type, and no other tensor of their size."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor, classes: Tensor) -> Tensor:
        wide = scores.float()
        sums = wide.logsumexp(dim=-1)
        ctx.save_for_backward(scores, classes, sums)
        return sums - wide.gather(-1, classes.unsqueeze(-1)).squeeze(-1)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        scores, classes, sums = ctx.saved_tensors
        numbers = torch.arange(scores.shape[-1], device=scores.device)
        shares = (scores.float() - sums.unsqueeze(-1)).exp()
        right = numbers == classes.unsqueeze(-1)
        return ((shares - right.float()) * gradient.unsqueeze(-1)).to(scores.dtype), None


def product(inputs: Tensor, weight: Tensor) -> Tensor:
    """Each member's own linear map: [member, place, in] by [member, out, in] to [member, place, out]."""
    return cast("Tensor", _Product.apply(inputs, weight))  # type: ignore[no-untyped-call]


class _Product(torch.autograd.Function):
    """In the type of the inputs; the gradient of the weight is in the weight's type and layout."""

    @staticmethod
    def forward(ctx: Any, inputs: Tensor, weight: Tensor) -> Tensor:
        lowered = weight.to(inputs.dtype)
        ctx.save_for_backward(inputs, lowered)
        ctx.kind = weight.dtype
        return torch.bmm(inputs, lowered.transpose(1, 2))

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor]:
        inputs, weight = ctx.saved_tensors
        of_weight = _wide_product(gradient.transpose(1, 2), inputs, ctx.kind)
        return torch.bmm(gradient, weight), of_weight


def look_up(table: Tensor, ids: Tensor, kind: torch.dtype) -> Tensor:
    """Each member's own vectors of ids [member, place], in another type."""
    return cast("Tensor", _LookUp.apply(table, ids, kind))  # type: ignore[no-untyped-call]


class _LookUp(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, table: Tensor, ids: Tensor, kind: torch.dtype) -> Tensor:
        ctx.save_for_backward(ids)
        ctx.kind, ctx.count = table.dtype, table.shape[1]
        flat = ids + torch.arange(len(ids), device=ids.device).unsqueeze(1) * table.shape[1]
        return functional.embedding(flat, table.flatten(0, 1)).to(kind)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        (ids,) = ctx.saved_tensors
        members, count, width = len(ids), ctx.count, gradient.shape[-1]
        if gradient.is_cuda and count <= FEW_IDS:
            return sums_by_id(ids, gradient, count, ctx.kind), None, None
        flat = ids + torch.arange(members, device=ids.device).unsqueeze(1) * count
        found = torch.zeros(members * count, width, dtype=ctx.kind, device=ids.device)
        found.index_add_(0, flat.flatten(), gradient.flatten(0, 1).to(ctx.kind))
        return found.view(members, count, width), None, None


def sums_by_id(ids: Tensor, vectors: Tensor, count: int, kind: torch.dtype) -> Tensor:
    """Of vectors [member, place, feature] the sum over the places of each id, [member, id, feature]."""
    numbers = torch.arange(count + -count % 8, device=ids.device)  # eights are what products want
    indicators = (ids.unsqueeze(1) == numbers.unsqueeze(1)).to(vectors.dtype)
    return _wide_product(indicators, vectors, kind)[:, :count]


def _wide_product(first: Tensor, second: Tensor, kind: torch.dtype) -> Tensor:
    """A batched product of lower types whose sums are not lowered, where the device can do that."""
    if first.dtype == kind:
        return torch.bmm(first, second)
    if first.is_cuda and WIDE_SUMS:
        return torch.bmm(first, second, out_dtype=kind)
    return torch.bmm(first, second).to(kind)

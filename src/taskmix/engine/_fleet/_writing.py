"""Members that write text by the output layer of the base that they share.

That layer has a row for each piece of the vocabulary, so its scores at all places of a step would take
more memory than the rest of it. They are found some places at a time, and what is kept of them is the
loss and its gradient at the code: nothing of the layer itself is trained.
"""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor
from torch.nn import functional

from taskmix.engine._fleet._adapters import AdapterStack
from taskmix.engine._fleet._perceptron import Masks, Parameters
from taskmix.engine._fleet._pieces import Room
from taskmix.models import FrozenBase

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

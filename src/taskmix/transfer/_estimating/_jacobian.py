"""Rows of a task as a model sees them near its parameters: outputs, and their derivatives.

The Jacobian J is that of the outputs by the encoder's parameters, without embeddings, whose
gradients would be as long as the vocabulary. It is computed for all rows at once where the
encoder can be batched so, and row by row where not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from taskmix.errors import InputError
from taskmix.models import HardSharing
from taskmix.tasks import MISSING, EncodedTask
from taskmix.transfer._estimating._projection import SparseProjection

LARGEST_JACOBIAN = 1 << 25  # numbers held at once, before projection; more need more memory only


@dataclass(frozen=True, kw_only=True)
class LinearRows:
    """Rows of a task whose outputs are linear in the move of the shared parameters."""

    outputs: Tensor  # [row, output]
    jacobian: Tensor  # [row, output, dimension]
    targets: Tensor  # [row], or [row, label]

    def moved(self, move: Tensor) -> Tensor:
        """The outputs after a move [dimension]."""
        return self.outputs + self.jacobian @ move


def linearise_rows(
    model: HardSharing,
    task: EncodedTask,
    position: int,
    split: str,
    projection: SparseProjection,
    most: int,
    generator: np.random.Generator,
) -> LinearRows | None:
    """At most so many rows of a split about the model; None where none has a target."""
    if split not in task.splits:
        return None
    data = task.splits[split]
    if data.targets.dim() > 1 and task.kind != "multilabel":
        raise InputError(
            "The gradient-based estimate should have one output a row. Found whole sentences in "
            f"`{task.name}`. Train the subsets, or use a model that reads windows, `model` bilstm.",
            arguments=("model",),
        )
    known = ~data.targets.isnan() if task.kind == "regression" else data.targets != MISSING
    known = known.any(dim=1) if known.dim() > 1 else known
    places = known.nonzero().flatten().cpu().numpy()
    if len(places) == 0:
        return None
    drawn = np.sort(generator.permutation(places)[:most])
    rows = torch.from_numpy(drawn).to(data.targets.device)
    outputs, parts = [], []
    for chunk in torch.split(rows, _rows_at_once(model.encoder, task.outputs)):
        found, jacobian = _jacobian(model, position, data.inputs, chunk)
        flat = [part.flatten(2).flatten(0, 1) for part in jacobian]
        outputs.append(found)
        parts.append(projection([part.detach() for part in flat]).reshape(*found.shape, -1))
    return LinearRows(
        outputs=torch.cat(outputs), jacobian=torch.cat(parts), targets=data.targets[rows]
    )


def _jacobian(
    model: HardSharing, position: int, inputs: Any, rows: Tensor
) -> tuple[Tensor, list[Tensor]]:
    """Outputs [row, output], and their derivatives by each parameter, [row, output, ...]."""
    parameters = _shared(model.encoder)
    head = model.heads[position]

    def forward(values: dict[str, Tensor], batch: Any) -> Tensor:
        out: Tensor = head(torch.func.functional_call(model.encoder, values, (batch,)))
        return out if out.dim() > 1 else out.unsqueeze(-1)

    batch = inputs.batch(rows)
    fixed = {name: parameter.detach() for name, parameter in parameters.items()}
    with torch.no_grad():
        outputs = forward(fixed, batch)
    if isinstance(batch, Tensor):

        def one(values: dict[str, Tensor], row: Tensor) -> Tensor:
            return forward(values, row.unsqueeze(0)).squeeze(0)

        try:
            found = torch.func.vmap(torch.func.jacrev(one), (None, 0))(fixed, batch)
        except RuntimeError:  # an operation that cannot be batched, such as that of an LSTM
            pass
        else:
            return outputs, list(found.values())
    return outputs, _row_by_row(forward, parameters, inputs, rows)


def _row_by_row(
    forward: Callable[[dict[str, Tensor], Any], Tensor],
    parameters: dict[str, nn.Parameter],
    inputs: Any,
    rows: Tensor,
) -> list[Tensor]:
    values: dict[str, Tensor] = dict(parameters)
    every: list[list[Tensor]] = [[] for _ in parameters]
    for row in rows.unsqueeze(1):
        output = forward(values, inputs.batch(row)).squeeze(0)
        grads = [
            torch.autograd.grad(
                one, list(values.values()), retain_graph=True, materialize_grads=True
            )
            for one in output
        ]
        for place, gathered in enumerate(every):
            gathered.append(torch.stack([gradient[place] for gradient in grads]))
    return [torch.stack(gathered) for gathered in every]


def _shared(encoder: nn.Module) -> dict[str, nn.Parameter]:
    """The encoder's parameters that train, without embeddings."""
    embedded = {
        id(parameter)
        for module in encoder.modules()
        if isinstance(module, nn.Embedding | nn.EmbeddingBag)
        for parameter in module.parameters()
    }
    return {
        name: parameter
        for name, parameter in encoder.named_parameters()
        if parameter.requires_grad and id(parameter) not in embedded
    }


def _rows_at_once(encoder: nn.Module, outputs: int) -> int:
    numbers = sum(parameter.numel() for parameter in _shared(encoder).values()) * max(outputs, 1)
    return max(LARGEST_JACOBIAN // max(numbers, 1), 1)


@contextmanager
def without_dropout(model: HardSharing) -> Iterator[None]:
    """All else as in training: CUDA's LSTM has derivatives in that mode only."""
    before = {module: module.training for module in model.modules()}
    model.train()
    for module in model.modules():
        if isinstance(module, nn.modules.dropout._DropoutNd):
            module.eval()
    try:
        yield
    finally:
        for module, training in before.items():
            module.training = training

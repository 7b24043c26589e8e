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
    rows = rows_with_targets(task, split, most, generator)
    if rows is None:
        return None
    outputs, parts = [], []
    for chunk in torch.split(rows, _rows_at_once(model.encoder, task.outputs)):
        found, jacobian = _jacobian(model, position, data.inputs, chunk)
        flat = [part.flatten(2).flatten(0, 1) for part in jacobian]
        outputs.append(found)
        parts.append(projection([part.detach() for part in flat]).reshape(*found.shape, -1))
    return LinearRows(
        outputs=torch.cat(outputs), jacobian=torch.cat(parts), targets=data.targets[rows]
    )


def rows_with_targets(
    task: EncodedTask, split: str, most: int, generator: np.random.Generator
) -> Tensor | None:
    """At most so many rows of a split, in order; None where none has a target."""
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
    return torch.from_numpy(drawn).to(data.targets.device)


def row_gradients(
    model: HardSharing,
    position: int,
    inputs: Any,
    rows: Tensor,
    targets: Tensor,  # [row, ...]
    value: Callable[[Tensor, Tensor], Tensor],  # outputs and target of a row to a number
    projection: SparseProjection,
) -> tuple[Tensor, Tensor, Tensor]:
    """One number of every row, and its projected gradients by shared and by head parameters."""
    shared = shared_parameters(model.encoder)
    head = model.heads[position]
    names = [*(f"encoder.{name}" for name in shared), *(f"head.{n}" for n, _ in head.named_parameters())]
    every = {
        name: parameter.detach()
        for name, parameter in zip(names, [*shared.values(), *head.parameters()], strict=True)
    }

    def one(given: dict[str, Tensor], batch: Any, target: Tensor) -> tuple[Tensor, Tensor]:
        parts: dict[str, dict[str, Tensor]] = {"encoder": {}, "head": {}}
        for name, parameter in given.items():
            owner, _, rest = name.partition(".")
            parts[owner][rest] = parameter
        codes = torch.func.functional_call(model.encoder, parts["encoder"], (batch,))
        outputs = torch.func.functional_call(head, parts["head"], (codes,))
        found = value(outputs.squeeze(0), target)
        return found, found

    numbers = sum(parameter.numel() for parameter in every.values())
    found, ends = [], [[], []]  # type: ignore[var-annotated]
    for some in torch.split(torch.arange(len(rows)), max(LARGEST_JACOBIAN // numbers, 1)):
        values, gradients = _gradients(one, every, inputs, rows[some], targets[some])
        found.append(values)
        flat = [part.flatten(1) for part in gradients]
        for place, parts in enumerate((flat[: len(shared)], flat[len(shared) :])):
            ends[place].append(projection(parts))
    return torch.cat(found), torch.cat(ends[0]), torch.cat(ends[1])


def _gradients(
    one: Callable[..., tuple[Tensor, Tensor]],
    every: dict[str, Tensor],
    inputs: Any,
    rows: Tensor,
    targets: Tensor,
) -> tuple[Tensor, list[Tensor]]:
    """Values [row] and their gradients [row, ...] by each parameter."""
    gradient = torch.func.grad(one, has_aux=True)
    batch = inputs.batch(rows)
    if isinstance(batch, Tensor):

        def alone(given: dict[str, Tensor], row: Tensor, target: Tensor) -> Any:
            return gradient(given, row.unsqueeze(0), target)

        try:
            found, values = torch.func.vmap(alone, (None, 0, 0))(every, batch, targets)
        except RuntimeError:  # an operation that cannot be batched, such as that of an LSTM
            pass
        else:
            return values.detach(), [part.detach() for part in found.values()]
    gathered: list[list[Tensor]] = [[] for _ in every]
    numbers = []
    for row, target in zip(rows.unsqueeze(1), targets, strict=True):
        found, number = gradient(every, inputs.batch(row), target)
        numbers.append(number.detach())
        for place, part in enumerate(found.values()):
            gathered[place].append(part.detach())
    return torch.stack(numbers), [torch.stack(parts) for parts in gathered]


def _jacobian(
    model: HardSharing, position: int, inputs: Any, rows: Tensor
) -> tuple[Tensor, list[Tensor]]:
    """Outputs [row, output], and their derivatives by each parameter, [row, output, ...]."""
    parameters = shared_parameters(model.encoder)
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


def shared_parameters(encoder: nn.Module) -> dict[str, nn.Parameter]:
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
    numbers = sum(parameter.numel() for parameter in shared_parameters(encoder).values()) * max(outputs, 1)
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

"""Each task's own gradient: of the shared parameters, of one layer, or of the shared representation.

Losses stay separate scalars throughout. The gradient of one element of a stacked vector of losses
would send zeros through every other task's graph: T² passes where each task brings its own rows.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from taskmix.errors import InputError
from taskmix.weighting._gramian import inner_products, out_of_range, wide_inner_products
from taskmix.weighting._graph import Survey, zeros_at

BATCH_NUMBERS = 1 << 25  # of a gradient inside the encoder that are held at once, for all tasks


@dataclass(frozen=True)
class Block:
    """Gradients of some tensors for some tasks, as rows of one matrix."""

    rows: Tensor  # [task, number]
    tasks: list[int]  # places of the rows' tasks; the others' gradients are 0
    shapes: list[torch.Size]  # of the tensors whose gradients stand side by side in a row
    tensors: list[int]  # their places among all tensors asked for


@dataclass(frozen=True)
class TaskGradients:
    """Gradients of some tensors for a number of tasks."""

    blocks: list[Block]
    tasks: int
    untouched: frozenset[int] = frozenset()  # places of tensors that no task trains

    def gramian(self) -> Tensor:
        """Inner products [task, task] of the tasks' gradients, on the CPU."""
        whole = self._products(inner_products)
        if whole.dtype is torch.float32 and out_of_range(whole):
            return self._products(wide_inner_products)
        return whole

    def averaged(self, mean: Callable[[Tensor], Tensor]) -> TaskGradients:
        """The gradients after `mean` over workers, which all have the same tasks and tensors."""
        return replace(
            self, blocks=[replace(block, rows=mean(block.rows)) for block in self.blocks]
        )

    def only(self, places: Collection[int]) -> TaskGradients:
        """The gradients of some of the tensors; a copy only where a block has others too."""
        blocks = []
        for block in self.blocks:
            inside = [number for number, place in enumerate(block.tensors) if place in places]
            if len(inside) == len(block.tensors):
                blocks.append(block)
            elif inside:
                parts = torch.split(block.rows, [shape.numel() for shape in block.shapes], dim=1)
                rows = torch.cat([parts[number] for number in inside], dim=1)
                shapes = [block.shapes[number] for number in inside]
                tensors = [block.tensors[number] for number in inside]
                blocks.append(Block(rows, block.tasks, shapes, tensors))
        return replace(self, blocks=blocks)

    def _products(self, multiply: Callable[[Tensor], Tensor]) -> Tensor:
        whole: Tensor | None = None
        for block in self.blocks:
            products = multiply(block.rows)
            if len(block.tasks) < self.tasks:
                places = torch.tensor(block.tasks)
                spread = torch.zeros(self.tasks, self.tasks, dtype=products.dtype)
                spread[places[:, None], places[None, :]] = products.cpu()
                products = spread
            whole = products if whole is None else whole + products
        return torch.zeros(self.tasks, self.tasks) if whole is None else whole.cpu()

    def matrix(self) -> Tensor:
        """All gradients [task, number]; a copy only where there is more than one block."""
        if len(self.blocks) == 1 and len(self.blocks[0].tasks) == self.tasks:
            return self.blocks[0].rows
        columns = []
        for block in self.blocks:
            spread = block.rows.new_zeros(self.tasks, block.rows.shape[1])
            spread[block.tasks] = block.rows
            columns.append(spread)
        return torch.cat(columns, dim=1)

    def combine(self, weights: Tensor) -> dict[int, Tensor]:
        """The weighted sum of the tasks' gradients, by the tensors' places."""
        sums: dict[int, Tensor] = {}
        for block in self.blocks:
            chosen = weights if len(block.tasks) == self.tasks else weights[block.tasks]
            sums.update(self._split(block, chosen.to(block.rows) @ block.rows))
        return sums

    def split(self, combination: Tensor) -> dict[int, Tensor]:
        """The parts of a vector in the order of `matrix`, by the tensors' places."""
        parts: dict[int, Tensor] = {}
        begin = 0
        for block in self.blocks:
            end = begin + block.rows.shape[1]
            parts.update(self._split(block, combination[begin:end]))
            begin = end
        return parts

    def _split(self, block: Block, row: Tensor) -> dict[int, Tensor]:
        sizes = [shape.numel() for shape in block.shapes]
        parts = torch.split(row, sizes)
        return {
            place: part.view(shape)
            for place, part, shape in zip(block.tensors, parts, block.shapes, strict=True)
            if place not in self.untouched
        }


@dataclass(frozen=True)
class Walked:
    """What one walk through all tasks' graphs found."""

    gradients: TaskGradients  # of the shared tensors
    heads: list[list[Tensor | None]]  # [task][leaf], of what a task trains alone
    reached: list[set[int]]  # [shared tensor], the tasks that train it


def task_gradients(
    losses: Sequence[Tensor],
    tensors: Sequence[Tensor],
    found: Survey,
    *,
    starts: Sequence[Tensor | None],  # what each loss's own gradient is taken to be; None is 1
    retain_graph: bool = False,
) -> Walked:
    """Gradients of `tensors` and of each task's leaves: one walk a task, each through its own graph."""
    if found.batched_entries and tensors:
        return _batched(losses, tensors, found, starts=starts, retain_graph=retain_graph)
    groups: dict[tuple[torch.dtype, torch.device], list[int]] = {}
    for place, tensor in enumerate(tensors):
        groups.setdefault((tensor.dtype, tensor.device), []).append(place)
    count = len(losses)
    blocks = [
        Block(
            torch.empty(
                count,
                sum(tensors[place].numel() for place in places),
                dtype=dtype,
                device=device,
            ),
            list(range(count)),
            [tensors[place].shape for place in places],
            places,
        )
        for (dtype, device), places in groups.items()
    ]
    heads = []
    reached: list[set[int]] = [set() for _ in tensors]
    for task, loss in enumerate(losses):
        keep = retain_graph or (found.joint and task < count - 1)
        gradients = _differentiate(
            loss, [*tensors, *found.leaves[task]], starts[task], retain_graph=keep
        )
        for place in range(len(tensors)):
            if gradients[place] is not None:
                reached[place].add(task)
        for block in blocks:
            parts = [
                torch.zeros_like(tensors[place]) if part is None else part
                for place, part in ((place, gradients[place]) for place in block.tensors)
            ]
            torch.cat([_dense(part).reshape(-1) for part in parts], out=block.rows[task])
        heads.append(gradients[len(tensors) :])
    untouched = frozenset(place for place, tasks in enumerate(reached) if not tasks)
    return Walked(TaskGradients(blocks, count, untouched), heads, reached)


def _batched(
    losses: Sequence[Tensor],
    tensors: Sequence[Tensor],
    found: Survey,
    *,
    starts: Sequence[Tensor | None],
    retain_graph: bool,
) -> Walked:
    """Heads task by task, then the part they share backwards for many tasks at once."""
    edges = found.batched_entries
    arriving: list[list[Tensor]] = [[] for _ in edges]
    heads = []
    for task, loss in enumerate(losses):
        gradients = _differentiate(
            loss, [*edges, *found.leaves[task]], starts[task], retain_graph=retain_graph
        )
        for place, edge in enumerate(edges):
            part = gradients[place]
            arriving[place].append(zeros_at(edge) if part is None else part)
        heads.append(gradients[len(edges) :])
    stacks = [torch.stack(parts) for parts in arriving]
    size = max(1, BATCH_NUMBERS // max(stack[0].numel() for stack in stacks))
    pieces = []
    chunks = list(zip(*(torch.split(stack, size) for stack in stacks), strict=True))
    for number, chunk in enumerate(chunks):
        pieces.append(
            torch.autograd.grad(
                edges,
                list(tensors),
                list(chunk),
                is_grads_batched=True,
                allow_unused=True,
                retain_graph=retain_graph or number < len(chunks) - 1,
            )
        )
    count = len(losses)
    blocks = []
    reached: list[set[int]] = [set() for _ in tensors]
    for place, tensor in enumerate(tensors):
        parts = [piece[place] for piece in pieces if piece[place] is not None]
        if parts:
            rows = (parts[0] if len(parts) == 1 else torch.cat(parts)).reshape(count, -1)
            blocks.append(Block(rows, list(range(count)), [tensor.shape], [place]))
            reached[place] = set(range(count))  # all tasks enter where this part begins
    return Walked(TaskGradients(blocks, count), heads, reached)


def representation_gradients(
    losses: Sequence[Tensor],
    representations: Sequence[Tensor],
    found: Survey,
    *,
    starts: Sequence[Tensor | None],
    retain_graph: bool = False,
) -> Walked:
    """Gradients of each representation for the tasks that were computed from it, and of the heads."""
    arriving: list[list[tuple[int, Tensor]]] = [[] for _ in representations]
    heads = []
    for task, loss in enumerate(losses):
        keep = retain_graph or (found.joint and task < len(losses) - 1)
        gradients = _differentiate(
            loss, [*representations, *found.leaves[task]], starts[task], retain_graph=keep
        )
        if all(part is None for part in gradients[: len(representations)]):
            raise InputError(
                "Every loss should be computed from the representation. Found that loss "
                f"{task + 1} is not. Give the tensor that the heads were called with."
            )
        for place, part in enumerate(gradients[: len(representations)]):
            if part is not None:
                arriving[place].append((task, part.reshape(-1)))
        heads.append(gradients[len(representations) :])
    blocks = [
        Block(
            torch.stack([part for _, part in parts]),
            [task for task, _ in parts],
            [representations[place].shape],
            [place],
        )
        for place, parts in enumerate(arriving)
        if parts
    ]
    reached = [{task for task, _ in parts} for parts in arriving]
    return Walked(TaskGradients(blocks, len(losses)), heads, reached)


def _differentiate(
    loss: Tensor, inputs: list[Any], start: Tensor | None, *, retain_graph: bool
) -> list[Tensor | None]:
    try:
        gradients: Sequence[Tensor | None] = torch.autograd.grad(
            loss, inputs, grad_outputs=start, retain_graph=retain_graph, allow_unused=True
        )
    except RuntimeError as error:
        if "use_reentrant" in str(error):
            raise InputError(
                "A checkpointed module should let each task's gradient be taken alone. Found one "
                "with `use_reentrant=True`, which only a plain `backward` can walk. Checkpoint with "
                "`use_reentrant=False` (`gradient_checkpointing_kwargs={'use_reentrant': False}` in "
                "Hugging Face's TrainingArguments), or take a weighting that needs losses alone."
            ) from error
        if "donated buffer" not in str(error):
            raise
        raise InputError(
            "A compiled encoder should let each task walk through it. Found one whose first walk was "
            "a plain `backward`, since when each walk frees its memory. Set "
            "`torch._functorch.config.donated_buffer = False` before it is compiled, or give the "
            "balancer `representation=`, which takes one walk for all tasks."
        ) from error
    return list(gradients)


def _dense(gradient: Tensor) -> Tensor:
    if gradient.is_sparse:
        raise InputError(
            "Gradients of shared parameters should be dense. Found a sparse one. Build the "
            "embedding with `sparse=False`, or take a weighting that needs losses alone."
        )
    return gradient

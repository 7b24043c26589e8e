"""Each task's gradient where parameters are sharded (`fully_shard`, tensor parallelism).

The parameters that a user holds are shards, which are in no graph: what is walked are whole copies that
live for a moment. So each task is walked by a plain `backward`, and `fully_shard` itself leaves the mean
over all workers in `.grad`, a shard in each. The product of two gradients is the sum of the products of
their shards. It is that of one process with all the rows, and costs one message of T × T numbers.

A walk also adds to parameters that are not shared. Their part of the step, with the weights, is what
the walks have added and the walk of all losses with the weights minus one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as distributed
from torch import Tensor

from taskmix.errors import InputError
from taskmix.weighting._gradients import Block, TaskGradients, Walked


def is_sharded(tensors: Sequence[Tensor]) -> bool:
    """Whether these are shards of parameters; some alone are refused."""
    sharded = [hasattr(tensor, "placements") for tensor in tensors]
    if any(sharded) and not all(sharded):
        raise InputError(
            "The shared parameters should all be sharded, or none. Found both. Shard the whole encoder "
            "with `fully_shard`."
        )
    return any(sharded)


def refuse_flattened(tensors: Sequence[Tensor]) -> None:
    """Raises where parameters live in one flat tensor, or elsewhere, and have no gradient of their own.

    `FullyShardedDataParallel` and DeepSpeed's ZeRO-3 free them between a walk and the next.
    """
    for mark, name in (
        ("_fsdp_flattened", "FullyShardedDataParallel"),
        ("ds_id", "DeepSpeed's ZeRO-3"),
    ):
        if any(getattr(tensor, mark, None) not in (None, False) for tensor in tensors):
            raise InputError(
                "A method that compares the tasks' gradients should get parameters that can be walked "
                f"once for each task. Found those of {name}. Shard the model with `fully_shard`, or "
                "take a weighting that needs losses alone, such as BanditMTL, Uncertainty or FAMO."
            )


def sharded_gradients(
    losses: Sequence[Tensor], tensors: Sequence[Tensor], starts: Sequence[Tensor]
) -> Walked:
    """Shards of the tasks' gradients, the mean over workers: a plain `backward` of each loss.

    What is not shared keeps what these walks add to it; `.grad` of `tensors` is left as it was.
    """
    kept = [tensor.grad for tensor in tensors]
    rows: list[list[Tensor | None]] = []
    for loss, start in zip(losses, starts, strict=True):
        for tensor in tensors:
            tensor.grad = None
        torch.autograd.backward(loss, start, retain_graph=True)
        rows.append([None if tensor.grad is None else local(tensor.grad) for tensor in tensors])
    for tensor, old in zip(tensors, kept, strict=True):
        tensor.grad = old
    reached = [
        {task for task, row in enumerate(rows) if row[place] is not None}
        for place in range(len(tensors))
    ]
    blocks = []
    for place, tensor in enumerate(tensors):
        mine = local(tensor)
        parts = [torch.zeros_like(mine) if row[place] is None else row[place] for row in rows]
        stacked = torch.stack([part.reshape(-1) for part in parts if part is not None])
        blocks.append(Block(stacked, list(range(len(rows))), [mine.shape], [place]))
    untouched = frozenset(place for place, tasks in enumerate(reached) if not tasks)
    return Walked(TaskGradients(blocks, len(rows), untouched), [], reached)


def products_of_shards(gradients: TaskGradients, tensors: Sequence[Tensor]) -> Tensor:
    """Inner products [task, task] of whole gradients, in float64 on the CPU."""
    total = torch.zeros(gradients.tasks, gradients.tasks, dtype=torch.float64)
    layouts: dict[tuple[Any, ...], list[int]] = {}
    for place in sorted({place for block in gradients.blocks for place in block.tensors}):
        tensor: Any = tensors[place]
        layouts.setdefault((tensor.device_mesh, *tensor.placements), []).append(place)
    for (mesh, *placements), places in layouts.items():
        products = gradients.only(places).gramian().double().to(local(tensors[places[0]]).device)
        for dimension, placement in enumerate(placements):
            if placement.is_shard():
                distributed.all_reduce(products, group=mesh.get_group(dimension))
            elif not placement.is_replicate():
                raise InputError(
                    "Shared parameters should be sharded or replicated along every dimension of the "
                    f"device mesh. Found {placement}. Take a weighting that needs losses alone, such "
                    "as BanditMTL."
                )
        total += products.cpu()
    return total


def local(tensor: Any) -> Tensor:
    """This process's shard, without a graph; the tensor itself where it is whole."""
    shard: Tensor = tensor.detach()
    return shard.to_local() if hasattr(shard, "to_local") else shard

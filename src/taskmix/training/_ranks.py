"""Several processes that train one model, each on its part of every batch.

Everything that decides (policies, weightings, rows, early stopping) is computed by every process
from the same numbers, so nobody has to be told. What differs is summed up before it is used: losses,
gradients, costs and scores. A step is that of the whole batch, to the order of sums; dropout is drawn
by each process for its own rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as distributed
from torch import Tensor, nn

from taskmix.errors import RunError
from taskmix.tasks import EncodedTask
from taskmix.training._events import Score
from taskmix.training._losses import known_targets


class Ranks:
    """The processes that train one model; here there is one, and nothing to do.

    >>> rows = torch.arange(4)
    >>> Ranks().part(rows).tolist()  # one process has all of a batch
    [0, 1, 2, 3]
    """

    rank = 0
    count = 1

    def part(self, rows: Tensor) -> Tensor:
        """This process's rows of a batch."""
        return rows

    def share(self, task: EncodedTask, rows: Tensor) -> float:
        """What this process's mean loss counts, so that the mean over processes is the batch's."""
        return 1.0

    @contextmanager
    def working(self) -> Iterator[None]:
        """What each process does for itself; where it fails in one, it fails in all."""
        yield

    def mean(self, values: Sequence[float]) -> list[float]:
        """The mean of each number over all processes."""
        return list(values)

    def average_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        """Makes every gradient the mean over all processes."""

    def any(self, asked: bool) -> bool:
        """Whether it is so in any process."""
        return asked

    def gather(self, scores: Sequence[Score]) -> list[Score]:
        """The scores that all processes found."""
        return list(scores)


class OtherRankError(RunError):
    """Another process failed, and this one with it.

    >>> str(OtherRankError("Rank 1 of 2 failed. RuntimeError: out of memory"))
    'Rank 1 of 2 failed. RuntimeError: out of memory'
    """


class DistributedRanks(Ranks):
    """The processes of `torch.distributed`, whose default group carries the gradients.

    >>> torch.distributed.init_process_group("nccl")  # doctest: +SKIP
    >>> ranks = DistributedRanks()  # doctest: +SKIP
    >>> events = train(model, tasks, ranks=ranks, **options)  # doctest: +SKIP
    """

    def __init__(self) -> None:
        self.rank = distributed.get_rank()
        self.count = distributed.get_world_size()
        # Numbers of the host go by a group of the host: the device is not waited for.
        self._hosts = distributed.new_group(backend="gloo")

    def part(self, rows: Tensor) -> Tensor:
        # A batch of fewer rows than processes: who gets none takes one that counts nothing.
        mine = torch.tensor_split(rows, self.count)[self.rank]
        return mine if len(mine) else rows[:1]

    def share(self, task: EncodedTask, rows: Tensor) -> float:
        parts = torch.tensor_split(known_targets(task.splits["train"].targets[rows]), self.count)
        whole = sum(int(part.sum()) for part in parts)
        return self.count * int(parts[self.rank].sum()) / whole if whole else 1.0

    @contextmanager
    def working(self) -> Iterator[None]:
        own: Exception | None = None
        try:
            yield
        except Exception as error:
            own = error
        if not self.any(own is not None):
            return
        words: list[Any] = [None] * self.count
        mine = None if own is None else f"{type(own).__name__}: {own}"
        distributed.all_gather_object(words, mine, group=self._hosts)
        if own is not None:
            raise own
        rank, said = next((rank, each) for rank, each in enumerate(words) if each is not None)
        raise OtherRankError(f"Rank {rank} of {self.count} failed. {said}")

    def mean(self, values: Sequence[float]) -> list[float]:
        total = torch.tensor(values, dtype=torch.float64)
        distributed.all_reduce(total, group=self._hosts)
        return list((total / self.count).tolist())

    def average_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        kinds: dict[torch.dtype, list[Tensor]] = {}
        for parameter in parameters:
            if parameter.grad is not None:
                kinds.setdefault(parameter.grad.dtype, []).append(parameter.grad)
        for gradients in kinds.values():
            # One message: the latency of hundreds of small ones is what would be waited for.
            flat = torch.cat([gradient.flatten() for gradient in gradients])
            distributed.all_reduce(flat)
            flat /= self.count
            parts = torch.split(flat, [gradient.numel() for gradient in gradients])
            for gradient, part in zip(gradients, parts, strict=True):
                gradient.copy_(part.view_as(gradient))

    def any(self, asked: bool) -> bool:
        flag = torch.tensor(float(asked))
        distributed.all_reduce(flag, distributed.ReduceOp.MAX, group=self._hosts)
        return bool(flag)

    def from_first(self, value: Any) -> Any:
        """What the first process gives, in all of them."""
        carried = [value]
        distributed.broadcast_object_list(carried, src=0, group=self._hosts)
        return carried[0]

    def gather(self, scores: Sequence[Score]) -> list[Score]:
        found: list[Any] = [None] * self.count
        distributed.all_gather_object(found, list(scores), group=self._hosts)
        return [score for part in found for score in part]

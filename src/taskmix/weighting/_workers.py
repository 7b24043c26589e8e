"""Several workers with one set of weights: what each measures is averaged before anything is weighed."""

from __future__ import annotations

import torch
import torch.distributed as distributed
from torch import Tensor


class WorkerGroup:
    """All workers of a process group, or this process alone."""

    def __init__(self, group: distributed.ProcessGroup | None = None) -> None:
        self._group = group

    @property
    def several(self) -> bool:
        if not (distributed.is_available() and distributed.is_initialized()):
            return False
        return distributed.get_world_size(self._group) > 1

    def mean(self, values: Tensor) -> Tensor:
        """The mean over all workers."""
        values = values.clone()
        distributed.all_reduce(values, group=self._group)
        return values / distributed.get_world_size(self._group)

    def mean_of_present(self, values: Tensor, present: Tensor) -> tuple[Tensor, list[float]]:
        """The mean [task] over the workers that have a loss of the task, and what share of them has."""
        both = torch.stack([torch.where(present, values, 0.0), present.to(values)])
        distributed.all_reduce(both, group=self._group)
        count = distributed.get_world_size(self._group)
        return both[0] / both[1].clamp(min=1), (both[1] / count).tolist()

    def any(self, flags: Tensor, device: torch.device) -> Tensor:
        """Whether each flag is set in any worker; sent by a device that the group can reach."""
        counts = flags.to(device, torch.float32)
        distributed.all_reduce(counts, group=self._group)
        return (counts > 0).to(flags.device)

    def union(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """The names that any worker has, those of the first worker first."""
        found: list[tuple[str, ...]] = [()] * distributed.get_world_size(self._group)
        distributed.all_gather_object(found, names, group=self._group)
        return tuple(dict.fromkeys(name for each in found for name in each))

    def mean_products(self, gramian: Tensor, device: torch.device) -> Tensor:
        """The mean of the workers' inner products, summed on a device that the group can reach."""
        # In float64: one worker's products may have needed it, and all must send the same type.
        return self.mean(gramian.double().to(device)).to(gramian.device)

"""What a balancer tells of a step."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class Balanced:
    """What a step was made of.

    >>> parameter = torch.ones(2, requires_grad=True)
    >>> info = Balancer(Equal()).backward({"a": parameter[0] * 1, "b": parameter[1] * 3})
    >>> info.names, info.losses.tolist(), info.weights.tolist()
    (('a', 'b'), [1.0, 3.0], [1.0, 1.0])
    >>> info.task_variance.item()  # of 1 and 3
    1.0
    """

    names: tuple[str, ...]
    losses: Tensor  # [task], detached, the mean over workers; NaN where a task had none
    weights: Tensor  # [task]; 0 where a task had none
    present: Tensor | None = None  # [task], whether it had one; None where all had
    gramian: Tensor | None = None  # [task, task], of the tasks that had one, where it was computed

    @property
    def task_variance(self) -> Tensor:
        """The variance between the tasks' losses (BanditMTL, Eq. 3)."""
        losses = self.losses if self.present is None else self.losses[self.present]
        return losses.var(correction=0)

    @property
    def cosines(self) -> Tensor | None:
        """Cosines between the tasks' gradients; below 0 two tasks are in conflict."""
        if self.gramian is None:
            return None
        norms = self.gramian.diagonal().sqrt()
        return self.gramian / norms[:, None] / norms[None, :]

r"""A network moved to where training on some of its tasks would take it, and then really evaluated.

    Li, Zhang and Zhang, "Scalable Fine-tuning from Multiple Data Sources: A First-Order
    Approximation Approach", EMNLP Findings 2024 (GradEx), Algorithm 1; Li, Zhang, Zhang and Zhang,
    "Efficient Ensemble for Fine-tuning Language Models on Multiple Datasets", ACL 2025 (EnsembleLoRA).

About the parameters $\theta_0$ of a model trained on all tasks, the margin of a row,
$m = \log p_y/(1-p_y)$, is taken as linear in the parameters, so that the loss
$\log(1 + e^{-m})$ of a subset's rows is that of a logistic regression on the rows' gradients,
projected at random to `dimensions` coordinates. Its solution $\delta_S$, projected back, is the
move; it is stretched to `length` times the norm of $\theta_0$, the same for every subset, because
one step knows its direction better than its length. The members' dev rows then go through the
moved network: what is estimated is the move alone, not the outputs.

The regression is solved by one Newton step from $\delta = 0$. Every task's head is free: it takes
the best move that goes with $\delta$. Its parameters $\eta$ are eliminated beforehand, task by task,

$$F \leftarrow F - B (C + \rho I)^{-1} B^\top, \quad g \leftarrow g - B (C + \rho I)^{-1} h, \qquad
  \eta_S = -(C + \rho I)^{-1} (h + B^\top \delta_S),$$

with C and B the curvature of the head and between it and the shared parameters, and h its gradient.
One gradient a row is enough for tasks of any number of classes, and for two classes the curvature
is that of Gauss and Newton.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from taskmix.errors import InputError
from taskmix.models import HardSharing, target_scale
from taskmix.tasks import MISSING, EncodedTask, EncodedTasks, evaluate_outputs
from taskmix.training import mean_margin, task_loss
from taskmix.transfer._estimating._jacobian import row_gradients, rows_with_targets, shared_parameters
from taskmix.transfer._estimating._options import GradientOptions
from taskmix.transfer._estimating._projection import SparseProjection
from taskmix.transfer._measuring import OutcomeKind

MOVES_AT_ONCE = 64  # projected back together: each is as long as the model


@dataclass(frozen=True, kw_only=True)
class MovedTask:
    """What the training rows of a task ask for, and the dev rows to try it on."""

    task: EncodedTask
    deviation: float  # of a regression task's targets
    gradient: Tensor  # [dimension], the head eliminated
    curvature: Tensor  # [dimension, dimension], the head eliminated
    head_pull: Tensor  # [head dimension], (C + rho I)^-1 h
    head_follow: Tensor  # [head dimension, dimension], (C + rho I)^-1 B^T
    dev: Tensor | None  # [row], which rows of dev


@dataclass(frozen=True, kw_only=True)
class MovableModel:
    """A model on all tasks, ready to be moved to any subset of them."""

    model: HardSharing
    tasks: tuple[MovedTask, ...]
    projection: SparseProjection
    options: GradientOptions

    def moves(self, subsets: Sequence[Sequence[int]]) -> Tensor:
        """δ of every subset, [subset, dimension], before it is stretched."""
        scale = sum(float(task.curvature.trace()) for task in self.tasks)
        size = len(self.tasks[0].gradient)
        penalty = max(self.options.ridge * scale / size, 1e-12)
        found = []
        for members in subsets:
            system = penalty * torch.eye(size, dtype=torch.float64)
            wanted = torch.zeros(size, dtype=torch.float64)
            for place in members:
                system += self.tasks[place].curvature
                wanted -= self.tasks[place].gradient
            found.append(torch.linalg.solve(system, wanted))
        return torch.stack(found)

    def outcomes(self, subsets: Sequence[Sequence[int]], kind: OutcomeKind) -> Tensor:
        """[subset, task], of every member after the subset's move; NaN where not a member."""
        found = torch.full((len(subsets), len(self.tasks)), math.nan, dtype=torch.float64)
        shared = shared_parameters(self.model.encoder)
        start = torch.cat([parameter.detach().flatten() for parameter in shared.values()])
        wanted = self.options.length * float(start.norm())
        for first in range(0, len(subsets), MOVES_AT_ONCE):
            some = subsets[first : first + MOVES_AT_ONCE]
            short = self.moves(some)
            sizes = [parameter.numel() for parameter in shared.values()]
            moves = torch.cat(self.projection.back(short.to(start), sizes), dim=1)
            stretch = wanted / moves.norm(dim=1).clamp(min=1e-12)
            for number, members in enumerate(some):
                moved = start + stretch[number] * moves[number]
                values = _unflat(shared, moved)
                delta = float(stretch[number]) * short[number]
                for place in members:
                    found[first + number, place] = self._outcome(place, values, delta, kind)
        return found

    def _outcome(self, place: int, values: dict[str, Tensor], move: Tensor, kind: OutcomeKind) -> float:
        one = self.tasks[place]
        if one.dev is None:
            return math.nan
        head = self.model.heads[place]
        parameters = dict(head.named_parameters())
        sizes = [parameter.numel() for parameter in parameters.values()]
        follow = -(one.head_pull + one.head_follow @ move)
        device = next(iter(values.values()))
        (moves,) = torch.cat(
            self.projection.back(follow.to(device).unsqueeze(0), sizes), dim=1
        )
        flat = torch.cat([parameter.detach().flatten() for parameter in parameters.values()])
        head_values = _unflat(parameters, flat + moves)
        data = one.task.splits["dev"]
        with torch.no_grad():
            codes = torch.func.functional_call(
                self.model.encoder, values, (data.inputs.batch(one.dev),)
            )
            outputs: Tensor = torch.func.functional_call(head, head_values, (codes,))
        return score(one.task, one.deviation, outputs, data.targets[one.dev], kind)


def score(
    task: EncodedTask, deviation: float, outputs: Tensor, targets: Tensor, kind: OutcomeKind
) -> float:
    """An outcome from a task's outputs."""
    flat = outputs.squeeze(-1) if task.kind == "regression" and outputs.dim() > 1 else outputs
    if kind == "loss":
        return float(task_loss(task, deviation)(flat, targets))
    values, wanted = flat.float().cpu().numpy(), targets.cpu().numpy()
    if kind == "margin":
        return mean_margin(values, wanted)
    return evaluate_outputs(
        task.metric, outputs=values, targets=wanted, labels=task.labels, sentences=None
    )


def prepare_moves(
    model: HardSharing, tasks: EncodedTasks, options: GradientOptions, *, seed: int
) -> MovableModel:
    """Every task's regression about the model; the seed draws the projection and the rows."""
    here = tasks.to(next(model.parameters()).device)
    projection = SparseProjection(dimensions=options.dimensions, seed=seed)
    generator = np.random.default_rng(seed)
    model.eval()
    found = []
    for position, task in enumerate(here):
        deviation = target_scale(here, task)[1]
        train = rows_with_targets(task, "train", options.rows, generator)
        if train is None:
            raise InputError(
                "Every task should have rows with a target to train on. Found none for "
                f"`{task.name}`. Leave the task out."
            )
        dev = rows_with_targets(task, "dev", options.dev_rows, generator)
        value, slope, curve, shared, head = _rows(model, task, position, train, deviation, projection)
        del value
        both = torch.cat([shared, head], dim=1).double().cpu()
        gradient = (slope.unsqueeze(1) * both).mean(dim=0)
        curvature = both.t() @ (curve.unsqueeze(1) * both) / len(both)
        size = shared.shape[1]
        corner, between = curvature[size:, size:], curvature[:size, size:]
        penalty = max(options.ridge * float(corner.trace()) / len(corner), 1e-12)
        system = corner + penalty * torch.eye(len(corner), dtype=torch.float64)
        pull = torch.linalg.solve(system, gradient[size:])
        follow = torch.linalg.solve(system, between.t())
        found.append(
            MovedTask(
                task=task,
                deviation=deviation,
                gradient=gradient[:size] - between @ pull,
                curvature=curvature[:size, :size] - between @ follow,
                head_pull=pull,
                head_follow=follow,
                dev=dev,
            )
        )
    return MovableModel(
        model=model, tasks=tuple(found), projection=projection, options=options
    )


def _rows(
    model: HardSharing,
    task: EncodedTask,
    position: int,
    rows: Tensor,
    deviation: float,
    projection: SparseProjection,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Of every row: its value, the loss's first and second derivative by it, its projected gradients."""
    targets = task.splits["train"].targets

    def value(outputs: Tensor, target: Tensor) -> Tensor:
        if task.kind == "regression":
            return outputs.reshape(()) / deviation
        if task.kind == "multilabel":
            known = target != MISSING
            signs = torch.where(target == 1, 1.0, -1.0)
            return torch.where(known, signs * outputs, torch.zeros_like(outputs)).sum()
        logs = outputs.log_softmax(dim=0)
        picked = logs.gather(0, target.reshape(1)).squeeze(0)
        return picked - torch.log1p(-picked.exp().clamp(max=1 - 1e-6))

    values, shared, head = row_gradients(
        model, position, task.splits["train"].inputs, rows, targets[rows], value, projection
    )
    values = values.double().cpu()
    if task.kind == "regression":
        away = values - targets[rows].double().cpu() / deviation
        return values, 2 * away, torch.full_like(values, 2.0), shared, head
    p = values.sigmoid()
    return values, p - 1, p * (1 - p), shared, head


def _unflat(like: dict[str, Any], flat: Tensor) -> dict[str, Tensor]:
    sizes = [parameter.numel() for parameter in like.values()]
    return {
        name: part.view_as(parameter)
        for (name, parameter), part in zip(like.items(), torch.split(flat, sizes), strict=True)
    }

r"""What a model would become if some of its tasks were left out, from its gradients alone.

    Li, Sharma and Zhang, "Scalable Multitask Learning Using Gradient-based Estimation of Task
    Affinity", KDD 2024 (Grad-TAG); Li, Zhang and Zhang, "Scalable Fine-tuning from Multiple Data
    Sources: A First-Order Approximation Approach", EMNLP Findings 2024 (GradEx).

Near the shared parameters $\theta_0$ of a model trained on all tasks, the outputs for a row are
nearly linear in a move $\delta$ of them, $z + J\delta$ with the Jacobian J. The move that training
on a subset S would make is then that of one Newton step with the Gauss-Newton curvature,

$$\delta_S = -\Big(\sum_{k \in S} F_k + \rho I\Big)^{-1} \sum_{k \in S} g_k, \qquad
  g_k = \overline{J^\top \nabla \ell}, \quad F_k = \overline{J^\top \nabla^2\ell\, J},$$

means over the training rows of task k, and the outcome of a member is that of $z + J\delta_S$ on
its dev rows. J is projected at random to `dimensions` coordinates first, so every subset takes one
system of so many equations. The papers solve a logistic regression for each subset; on the digits
the closed form agreed better with trained subsets, and it is some hundred times as fast.

ρ is `ridge` times the mean curvature $\mathrm{tr}(\sum_k F_k)/\text{dimensions}$ of all tasks. Heads
stay as they are, and so do embeddings, whose gradients would be as long as the vocabulary.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from taskmix.errors import InputError, OptionError
from taskmix.models import HardSharing, target_scale
from taskmix.tasks import MISSING, EncodedTask, EncodedTasks, evaluate_outputs
from taskmix.training import mean_margin, task_loss
from taskmix.transfer._estimating._jacobian import LinearRows, linearise_rows, without_dropout
from taskmix.transfer._estimating._projection import SparseProjection
from taskmix.transfer._measuring import OutcomeKind


@dataclass(frozen=True, kw_only=True)
class GradientOptions:
    """What one estimate takes.

    >>> options = GradientOptions(share=0.25, models=2)
    >>> steps = 400
    >>> options.models * round(options.share * steps)  # all that is trained, however many subsets
    200
    """

    dimensions: int = 256  # of the projected gradients
    rows: int = 200  # of each task and split, at most
    ridge: float = 0.03  # of the mean curvature
    share: float = 0.125  # of the steps that the model on all tasks is trained for
    models: int = 2  # on all tasks, each with a seed of its own

    def __post_init__(self) -> None:
        for name in ("dimensions", "rows", "models"):
            if getattr(self, name) < 1:
                raise OptionError(f"`{name}` should be 1 or more. Found {getattr(self, name)}.")
        if not (math.isfinite(self.ridge) and self.ridge > 0 and 0 < self.share <= 1):
            raise OptionError(
                "`ridge` should be a number above zero, and `share` above 0 and at most 1. Found "
                f"{self.ridge} and {self.share}."
            )


@dataclass(frozen=True, kw_only=True)
class LinearTask:
    """A task about a model: what its training rows want, and its dev rows to try that on."""

    task: EncodedTask
    deviation: float  # of a regression task's targets
    gradient: Tensor  # [dimension], g of the training rows
    curvature: Tensor  # [dimension, dimension], F of the training rows
    dev: LinearRows | None

    def outcome(self, move: Tensor, kind: OutcomeKind) -> float:
        """The task's outcome on dev after a move; NaN where it has no dev rows."""
        if self.dev is None:
            return math.nan
        outputs = self.dev.moved(move)
        flat = outputs.squeeze(-1) if self.task.kind == "regression" else outputs
        if kind == "loss":
            return float(task_loss(self.task, self.deviation)(flat, self.dev.targets))
        values, targets = flat.cpu().numpy(), self.dev.targets.cpu().numpy()
        if kind == "margin":
            return mean_margin(values, targets)
        return evaluate_outputs(
            self.task.metric,
            outputs=values,
            targets=targets,
            labels=self.task.labels,
            sentences=None,
        )


def linearise(
    model: HardSharing, tasks: EncodedTasks, options: GradientOptions, *, seed: int
) -> tuple[LinearTask, ...]:
    """Every task about the model, in order; the seed draws the projection and the rows."""
    moved = tasks.to(next(model.parameters()).device)
    projection = SparseProjection(dimensions=options.dimensions, seed=seed)
    generator = np.random.default_rng(seed)
    found = []
    with without_dropout(model):
        for position, task in enumerate(moved):
            deviation = target_scale(moved, task)[1]
            splits = {
                split: linearise_rows(
                    model, task, position, split, projection, options.rows, generator
                )
                for split in ("train", "dev")
            }
            train = splits["train"]
            if train is None:
                raise InputError(
                    f"Every task should have rows with a target to train on. Found none for "
                    f"`{task.name}`. Leave the task out."
                )
            gradient, curvature = _gradient_and_curvature(train, task, deviation)
            found.append(
                LinearTask(
                    task=task,
                    deviation=deviation,
                    gradient=gradient,
                    curvature=curvature,
                    dev=splits["dev"],
                )
            )
    return tuple(found)


def solve_move(tasks: Sequence[LinearTask], members: Sequence[int], ridge: float) -> Tensor:
    """δ of training the members only, [dimension]."""
    scale = sum(float(task.curvature.trace()) for task in tasks) / len(tasks[0].gradient)
    penalty = ridge * scale if scale > 0 else 1.0  # without curvature there is no move either
    system = penalty * torch.eye(len(tasks[0].gradient), dtype=torch.float64)
    wanted = torch.zeros(len(tasks[0].gradient), dtype=torch.float64)
    for place in members:
        system += tasks[place].curvature.double().cpu()
        wanted -= tasks[place].gradient.double().cpu()
    move: Tensor = torch.linalg.solve(system, wanted)
    return move.to(tasks[0].gradient)


def _gradient_and_curvature(
    rows: LinearRows, task: EncodedTask, deviation: float
) -> tuple[Tensor, Tensor]:
    """g and F, means over rows."""
    count = len(rows.targets)
    if task.kind == "regression":
        away = (rows.outputs.squeeze(-1) - rows.targets) / deviation
        scaled = rows.jacobian.squeeze(1) / deviation
        return 2 * away @ scaled / count, 2 * scaled.t() @ scaled / count
    if (
        task.kind == "multilabel"
    ):  # each label is a question of its own; the mean is over those known
        known = (rows.targets != MISSING).to(rows.outputs)
        cells = known.sum().clamp(min=1)
        shares = rows.outputs.sigmoid()
        away = (shares - (rows.targets == 1).to(shares)) * known
        weighted = ((shares * (1 - shares) * known).sqrt().unsqueeze(-1) * rows.jacobian).flatten(
            0, 1
        )
        gradient = (away.unsqueeze(-1) * rows.jacobian).sum(dim=(0, 1)) / cells
        return gradient, weighted.t() @ weighted / cells
    shares = rows.outputs.softmax(dim=1)
    # The gradients of log-probabilities: their covariance under the model is the curvature.
    scores = rows.jacobian - (shares.unsqueeze(-1) * rows.jacobian).sum(dim=1, keepdim=True)
    true = scores[torch.arange(count, device=scores.device), rows.targets]
    weighted = (shares.sqrt().unsqueeze(-1) * scores).flatten(0, 1)
    return -true.mean(dim=0), weighted.t() @ weighted / count

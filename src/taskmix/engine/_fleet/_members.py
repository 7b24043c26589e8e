"""A member of a fleet: one run, its record, and where it begins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from taskmix.engine._fleet._decisions import AllTasks, Decision, OneTask
from taskmix.engine._fleet._layout import ParameterLayout
from taskmix.engine._fleet._optimizer import StackedOptimizer
from taskmix.engine._run import Run, first_model
from taskmix.errors import DivergedError
from taskmix.models import target_scale
from taskmix.policies import Uniform
from taskmix.records import RecordWriter
from taskmix.tasks import EncodedTasks
from taskmix.training import (
    BestTracker,
    LossFunction,
    Score,
    check_training,
    task_loss,
)


@dataclass(frozen=True)
class Start:
    """What a member's tensors hold before its first step in this fleet, by the model's names."""

    step: int
    parameters: Mapping[str, Tensor]
    best: Mapping[str, Tensor] | None
    moments: Mapping[str, Mapping[str, Tensor]]
    steps: Mapping[str, float]  # that each parameter has taken


@dataclass
class Member:
    """One run among those that train together."""

    number: int  # its place among the runs asked for
    run: Run
    tasks: EncodedTasks
    writer: RecordWriter
    layout: ParameterLayout
    seed: int  # of its rows and its dropout
    decision: Decision
    tracker: BestTracker
    deviations: dict[str, float]
    losses: list[LossFunction]
    checkpoint: int | None  # the step of its last one
    told_best: int  # the step of what the last checkpoint has as the best
    start: Start | None = field(repr=False)
    error: Exception | None = None
    stopped: bool = False  # by the user, to go on later
    best_scores: tuple[Score, ...] | None = None  # on dev, where the best was found in this fleet

    @classmethod
    def of(cls, number: int, run: Run, tasks: EncodedTasks, writer: RecordWriter) -> Member:
        """The run as it begins, or goes on from the checkpoint that its writer found."""
        check_training(
            tasks,
            steps=run.steps,
            batch_size=run.batch_size,
            evaluate_every=run.evaluate_every,
            checkpoint_every=run.checkpoint_every,
            patience=run.patience,
            both=run.policy is not None and run.weighting is not None,
        )
        model = first_model(run, tasks)
        layout = ParameterLayout.of(model)
        resumed = writer.resumed.state if writer.resumed is not None else None
        best = writer.resumed.best if writer.resumed is not None else None
        generator = np.random.default_rng(run.seed)
        seed = int(resumed["seed"]) if resumed is not None else int(generator.integers(2**62))
        decision = _decision(run, tasks, generator, seed)
        tracker = BestTracker(run.patience)
        if resumed is not None:
            tracker.restore(resumed)
            decision.restore(resumed["steps"])
            start = _start(run, layout, resumed, best)
        else:
            start = Start(0, dict(model.state_dict()), None, {}, {})
        deviations = {task.name: target_scale(tasks, task)[1] for task in tasks}
        return cls(
            number=number,
            run=run,
            tasks=tasks,
            writer=writer,
            layout=layout,
            seed=seed,
            decision=decision,
            tracker=tracker,
            deviations=deviations,
            losses=[task_loss(task, deviations[task.name]) for task in tasks],
            checkpoint=start.step or None,
            told_best=tracker.step,
            start=start,
        )

    def diverged(self, step: int, slot: int, loss: float) -> None:
        """Notes, as a solo run would, that this member cannot go on."""
        self.error = DivergedError(
            step=step, task=self.tasks.names[slot], loss=loss, checkpoint=self.checkpoint
        )


def _decision(run: Run, tasks: EncodedTasks, generator: np.random.Generator, seed: int) -> Decision:
    if run.weighting is not None:
        weighting: Any = run.weighting
        return AllTasks(tasks, weighting, batch_size=run.batch_size, seed=seed)
    policy = run.policy or Uniform()
    return OneTask(tasks, policy, run.reward, generator, batch_size=run.batch_size, seed=seed)


def _start(
    run: Run, layout: ParameterLayout, state: Mapping[str, Any], best: Mapping[str, Tensor] | None
) -> Start:
    """The tree of a checkpoint, by parameter."""
    names = [place.name for place in layout.places]
    kept: Mapping[int, Mapping[str, Any]] = state["optimizer"]["state"]
    moments = {
        moment: {
            names[number]: values[moment]
            for number, values in kept.items()
            if isinstance(values.get(moment), Tensor)
        }
        for moment in StackedOptimizer.names(run.optimization)
    }
    steps = {
        names[number]: float(torch.as_tensor(values.get("step", state["step"])))
        for number, values in kept.items()
    }
    return Start(state["step"], state["model"], best, moments, steps)

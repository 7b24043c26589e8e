"""What a training run says as it goes: frozen events, in the order things happen."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Score:
    """One metric of one task on one split."""

    task: str
    split: str
    metric: str
    value: float
    # [row] what each row of the split adds to the value, where it was asked for
    credits: NDArray[np.float64] | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepEvent:
    """One step was taken. With a policy one task was trained on; with a weighting, all of them."""

    step: int  # the first is 1
    tasks: tuple[int, ...]  # positions of the tasks trained on
    losses: tuple[float, ...]  # of their batches, before the step
    examples: tuple[int, ...]  # rows of their batches
    seconds: float
    probability: float | None = None  # of the choice
    probabilities: NDArray[np.float64] | None = (
        None  # [task]; None where unchanged since last given
    )
    weights: tuple[float, ...] | None = None
    reward: float | None = None
    loss_after: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationEvent:
    """The model was evaluated on the dev splits."""

    step: int
    scores: tuple[Score, ...]
    mean: float  # over tasks, higher is better; what early stopping looks at
    best: bool  # better than every evaluation before


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointEvent:
    """Everything needed to go on from here with the same bits.

    The trees hold the live tensors: write or copy them before asking for the next event.
    """

    step: int
    state: dict[str, Any]
    best: dict[str, Any] | None  # parameters of the best evaluation so far
    best_step: int | None
    best_changed: bool  # since the checkpoint before


@dataclass(frozen=True, slots=True, kw_only=True)
class EndEvent:
    """The run is over; the model holds the best parameters, which gave these scores."""

    step: int
    best_step: int
    stopped_early: bool
    scores: tuple[Score, ...]


Event = StepEvent | EvaluationEvent | CheckpointEvent | EndEvent

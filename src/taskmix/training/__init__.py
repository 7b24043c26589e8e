"""One run: the loop that yields events, evaluation, checkpoint and exact resume."""

from taskmix.training._evaluate import evaluate, mean_score, predict_tags
from taskmix.training._events import (
    CheckpointEvent,
    EndEvent,
    EvaluationEvent,
    Event,
    Score,
    StepEvent,
)
from taskmix.training._losses import task_loss
from taskmix.training._machinery import Scheduler
from taskmix.training._sampler import PolicyBatchSampler, trainer_callback
from taskmix.training._state import state_from_tree, state_to_tree
from taskmix.training._streams import Stream
from taskmix.training._train import train

__all__ = [
    "CheckpointEvent",
    "EndEvent",
    "EvaluationEvent",
    "Event",
    "PolicyBatchSampler",
    "Scheduler",
    "Score",
    "StepEvent",
    "Stream",
    "evaluate",
    "mean_score",
    "predict_tags",
    "state_from_tree",
    "state_to_tree",
    "task_loss",
    "train",
    "trainer_callback",
]

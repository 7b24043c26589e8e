"""One run: the loop that yields events, evaluation, checkpoint and exact resume."""

from taskmix.training._cost import batch_costs
from taskmix.training._decode import WritesText
from taskmix.training._evaluate import (
    evaluate,
    evaluate_margins,
    mean_margin,
    mean_score,
    outputs_of,
    predict_tags,
    score_outputs,
)
from taskmix.training._events import (
    CheckpointEvent,
    EndEvent,
    EvaluationEvent,
    Event,
    Score,
    StepEvent,
)
from taskmix.training._kept import Keep, Watches, best_state, served_together
from taskmix.training._losses import LossFunction, task_loss
from taskmix.training._machinery import Scheduler, input_groups, make_stream
from taskmix.training._mlflow import MLflowListener
from taskmix.training._ranks import DistributedRanks, OtherRankError, Ranks
from taskmix.training._sampler import PolicyBatchSampler, trainer_callback
from taskmix.training._streams import Stream, mixed_seed
from taskmix.training._tensorboard import TensorBoardListener
from taskmix.training._train import check_training, train
from taskmix.training._trained_model import HeldPart, TrainedModel, TrainedPart
from taskmix.training._wandb import WandbListener
from taskmix.training._watch import Watch, scores_by_position
from taskmix.training._written import WrittenRows, foresee, score_written

__all__ = [
    "CheckpointEvent",
    "DistributedRanks",
    "EndEvent",
    "EvaluationEvent",
    "Event",
    "HeldPart",
    "Keep",
    "LossFunction",
    "MLflowListener",
    "OtherRankError",
    "PolicyBatchSampler",
    "Ranks",
    "Scheduler",
    "Score",
    "StepEvent",
    "Stream",
    "TensorBoardListener",
    "TrainedModel",
    "TrainedPart",
    "WandbListener",
    "Watch",
    "Watches",
    "WritesText",
    "WrittenRows",
    "batch_costs",
    "best_state",
    "check_training",
    "evaluate",
    "evaluate_margins",
    "foresee",
    "input_groups",
    "make_stream",
    "mean_margin",
    "mean_score",
    "mixed_seed",
    "outputs_of",
    "predict_tags",
    "score_outputs",
    "score_written",
    "scores_by_position",
    "served_together",
    "task_loss",
    "train",
    "trainer_callback",
]

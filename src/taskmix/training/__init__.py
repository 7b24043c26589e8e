"""One run: the loop that yields events, evaluation, checkpoint and exact resume."""

from taskmix.training._blend import Blend, blended
from taskmix.training._draws import DrawnCollate, DrawnRow, DrawnRows, read_draws
from taskmix.training._evaluate import (
    evaluate,
    evaluate_margins,
    mean_margin,
    mean_score,
    outputs_of,
    outputs_of_split,
    predict_tags,
    score_outputs,
    scores_by_position,
)
from taskmix.training._events import (
    CheckpointEvent,
    EndEvent,
    EvaluationEvent,
    Event,
    Score,
    StepEvent,
)
from taskmix.training._losses import LossFunction, task_loss
from taskmix.training._machinery import Scheduler, input_groups, make_stream, sparse_tasks
from taskmix.training._mixed import WhenExhausted
from taskmix.training._mixed_stream import MixedStream
from taskmix.training._ranks import DistributedRanks, OtherRankError, Ranks
from taskmix.training._sampler import PolicyBatchSampler
from taskmix.training._steps import batch_costs
from taskmix.training._streams import Stream, mixed_seed
from taskmix.training._trackers import MLflowListener, TensorBoardListener, WandbListener
from taskmix.training._train import BestTracker, check_training, train
from taskmix.training._trained_model import (
    Answers,
    HeldPart,
    PeerPart,
    TrainedModel,
    TrainedPart,
)
from taskmix.training._trainer import connect_trainer
from taskmix.training._written import WritesText, WrittenRows, foresee, score_written
from taskmix.training._zip_loaders import ZippedLoaders, zip_loaders

__all__ = [
    "Answers",
    "BestTracker",
    "Blend",
    "CheckpointEvent",
    "DistributedRanks",
    "DrawnCollate",
    "DrawnRow",
    "DrawnRows",
    "EndEvent",
    "EvaluationEvent",
    "Event",
    "HeldPart",
    "LossFunction",
    "MLflowListener",
    "MixedStream",
    "OtherRankError",
    "PeerPart",
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
    "WhenExhausted",
    "WritesText",
    "WrittenRows",
    "ZippedLoaders",
    "batch_costs",
    "blended",
    "check_training",
    "connect_trainer",
    "evaluate",
    "evaluate_margins",
    "foresee",
    "input_groups",
    "make_stream",
    "mean_margin",
    "mean_score",
    "mixed_seed",
    "outputs_of",
    "outputs_of_split",
    "predict_tags",
    "read_draws",
    "score_outputs",
    "score_written",
    "scores_by_position",
    "sparse_tasks",
    "task_loss",
    "train",
    "zip_loaders",
]

from typing import TYPE_CHECKING

if not TYPE_CHECKING:
    from taskmix._gone import refuse_gone_names

    __getattr__ = refuse_gone_names(__name__)

"""Where runs execute."""

from taskmix.engine._described import undescribe
from taskmix.engine._distributed import (
    execute_together,
    is_first_process,
    joined_ranks,
    launched_processes,
)
from taskmix.engine._fleet import fleet_pays, run_fleet
from taskmix.engine._here import Engine, run_all
from taskmix.engine._model_folder import check_model_folder
from taskmix.engine._open import is_study, open_study, own_study
from taskmix.engine._optimization import Optimization
from taskmix.engine._ray import choose_cluster_device, cluster, run_ray, stream_ray
from taskmix.engine._replay import events_of
from taskmix.engine._run import (
    Executed,
    Listener,
    Run,
    build,
    choose_device,
    execute,
    model_of_run,
    record_event,
)
from taskmix.engine._saved import load_model, save_models
from taskmix.engine._source import DigitsSource, FolderSource, TaskSource
from taskmix.engine._trained import TrainedModel, trained_model
from taskmix.engine._units import Progress
from taskmix.engine._workers import Workers

__all__ = [
    "DigitsSource",
    "Engine",
    "Executed",
    "FolderSource",
    "Listener",
    "Optimization",
    "Progress",
    "Run",
    "TaskSource",
    "TrainedModel",
    "Workers",
    "build",
    "check_model_folder",
    "choose_cluster_device",
    "choose_device",
    "cluster",
    "events_of",
    "execute",
    "execute_together",
    "fleet_pays",
    "is_first_process",
    "is_study",
    "joined_ranks",
    "launched_processes",
    "load_model",
    "model_of_run",
    "open_study",
    "own_study",
    "record_event",
    "run_all",
    "run_fleet",
    "run_ray",
    "save_models",
    "stream_ray",
    "trained_model",
    "undescribe",
]

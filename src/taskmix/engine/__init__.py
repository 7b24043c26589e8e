"""Where runs execute."""

from taskmix.engine._described import undescribe
from taskmix.engine._distributed import (
    Launched,
    is_first_process,
    launched_processes,
)
from taskmix.engine._executor import (
    Executor,
    Observers,
    RunListener,
    StartingOver,
    Until,
    companions,
    finish,
    is_stop_asked,
    never,
)
from taskmix.engine._fleet import fleet_pays
from taskmix.engine._here import Auto, Fleet, Here
from taskmix.engine._keep_best import keep_best
from taskmix.engine._merge import scores_of_mixtures
from taskmix.engine._open import open_study, own_study
from taskmix.engine._optimization import Optimization
from taskmix.engine._peak import peak_operations
from taskmix.engine._ray import Ray, choose_cluster_device, cluster
from taskmix.engine._read_ahead import read_ahead
from taskmix.engine._replay import events_of
from taskmix.engine._run import (
    Executed,
    Run,
    build,
    choose_device,
    execute,
    model_of_run,
    record_event,
)
from taskmix.engine._saved import check_mergeable, load_model, save_models
from taskmix.engine._source import DigitsSource, FolderSource, GivenTasks, SampledSource, TaskSource
from taskmix.engine._trained import trained_model
from taskmix.engine._units import Progress, Stop
from taskmix.engine._workers import Workers

__all__ = [
    "Auto",
    "DigitsSource",
    "Executed",
    "Executor",
    "Fleet",
    "FolderSource",
    "GivenTasks",
    "Here",
    "Launched",
    "Observers",
    "Optimization",
    "Progress",
    "Ray",
    "Run",
    "RunListener",
    "SampledSource",
    "StartingOver",
    "Stop",
    "TaskSource",
    "Until",
    "Workers",
    "build",
    "check_mergeable",
    "choose_cluster_device",
    "choose_device",
    "cluster",
    "companions",
    "events_of",
    "execute",
    "finish",
    "fleet_pays",
    "is_first_process",
    "is_stop_asked",
    "keep_best",
    "launched_processes",
    "load_model",
    "model_of_run",
    "never",
    "open_study",
    "own_study",
    "peak_operations",
    "read_ahead",
    "record_event",
    "save_models",
    "scores_of_mixtures",
    "trained_model",
    "undescribe",
]

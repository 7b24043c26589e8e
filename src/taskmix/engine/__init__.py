"""Where runs execute."""

from taskmix.engine._distributed import (
    TorchrunExecutor,
    is_first_process,
    launched_processes,
)
from taskmix.engine._executor import (
    Executor,
    Observers,
    RestartingExecutor,
    RunListener,
    Until,
    companions,
    finish,
    is_stop_asked,
    never,
)
from taskmix.engine._fleet import fleet_pays
from taskmix.engine._from_spec import from_spec
from taskmix.engine._here import Auto, Fleet, Here, read_ahead
from taskmix.engine._open import load_for_runs, open_study, own_study, working_alone
from taskmix.engine._optimization import Optimization
from taskmix.engine._peak import peak_operations
from taskmix.engine._ray import Ray, choose_cluster_device, cluster
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
from taskmix.engine._source import (
    DigitsSource,
    FolderSource,
    GivenTasks,
    RefitSource,
    SampledSource,
    TaskSource,
)
from taskmix.engine._trained import keep_best, trained_model
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
    "Observers",
    "Optimization",
    "Progress",
    "Ray",
    "RefitSource",
    "RestartingExecutor",
    "Run",
    "RunListener",
    "SampledSource",
    "Stop",
    "TaskSource",
    "TorchrunExecutor",
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
    "from_spec",
    "is_first_process",
    "is_stop_asked",
    "keep_best",
    "launched_processes",
    "load_for_runs",
    "load_model",
    "model_of_run",
    "never",
    "open_study",
    "own_study",
    "peak_operations",
    "read_ahead",
    "record_event",
    "save_models",
    "trained_model",
    "working_alone",
]

from typing import TYPE_CHECKING

if not TYPE_CHECKING:
    from taskmix._gone import refuse_gone_names

    __getattr__ = refuse_gone_names(__name__)

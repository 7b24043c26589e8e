"""Where runs execute."""

from taskmix.engine._here import Progress, run_all
from taskmix.engine._optimization import Optimization
from taskmix.engine._run import (
    Executed,
    Listener,
    Run,
    build,
    choose_device,
    execute,
    load_model,
    record_event,
)
from taskmix.engine._source import DigitsSource, FolderSource, TaskSource

__all__ = [
    "DigitsSource",
    "Executed",
    "FolderSource",
    "Listener",
    "Optimization",
    "Progress",
    "Run",
    "TaskSource",
    "build",
    "choose_device",
    "execute",
    "load_model",
    "record_event",
    "run_all",
]

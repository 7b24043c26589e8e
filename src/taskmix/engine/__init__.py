"""Where runs execute."""

from taskmix.engine._fleet import fleet_pays, run_fleet
from taskmix.engine._here import run_all
from taskmix.engine._optimization import Optimization
from taskmix.engine._planned import described_weighting, planned_runs
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
from taskmix.engine._units import Progress

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
    "described_weighting",
    "execute",
    "fleet_pays",
    "load_model",
    "planned_runs",
    "record_event",
    "run_all",
    "run_fleet",
]

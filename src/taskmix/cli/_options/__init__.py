"""Options that several commands share, each declared once, and what they stand for."""

from taskmix.cli._options._groups import grouped
from taskmix.cli._options._model import ModelOptions, OptimizationOptions, make_template
from taskmix.cli._options._tasks import CacheOption, ReadingOptions, StrictOption, TaskOptions
from taskmix.cli._options._tracking import TrackingOptions
from taskmix.cli._options._where import (
    DeviceOption,
    EngineName,
    EngineOption,
    OneByOneOptions,
    ResumeOption,
    WhereOptions,
    WorkersOption,
)

__all__ = [
    "CacheOption",
    "DeviceOption",
    "EngineName",
    "EngineOption",
    "ModelOptions",
    "OneByOneOptions",
    "OptimizationOptions",
    "ReadingOptions",
    "ResumeOption",
    "StrictOption",
    "TaskOptions",
    "TrackingOptions",
    "WhereOptions",
    "WorkersOption",
    "grouped",
    "make_template",
]

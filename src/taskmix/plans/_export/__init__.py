"""Plans as what other trainers read: their shapes are `_trainers`, files are found by `_sources`."""

from taskmix.plans._export._trainers import TARGETS, ExportTarget
from taskmix.plans._export._write import ExportedPlan, export_plan

__all__ = ["TARGETS", "ExportTarget", "ExportedPlan", "export_plan"]

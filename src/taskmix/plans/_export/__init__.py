"""Plans as what other trainers read: one trainer a file, all behind `ExportTarget`."""

from taskmix.plans._export._target import ExportTarget
from taskmix.plans._export._write import TARGETS, ExportedPlan, export_plan

__all__ = ["TARGETS", "ExportTarget", "ExportedPlan", "export_plan"]

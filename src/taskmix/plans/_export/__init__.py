"""Plans as what other trainers read: one trainer a file, all behind `Target`."""

from taskmix.plans._export._target import Target
from taskmix.plans._export._write import TARGETS, ExportedPlan, export_plan

__all__ = ["TARGETS", "ExportedPlan", "Target", "export_plan"]

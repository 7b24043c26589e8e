"""Plans: what the lessons of earlier runs advise for the next ones, made of parts.

plan = Plan.load("advice/plan.json")
runs = plan.runs(template, seeds=[0, 1, 2])
"""

from taskmix.plans._division import Division, Shares, Stage, Stages, Weighted
from taskmix.plans._file import check_plan_path
from taskmix.plans._plan import Expected, Length, Part, Plan

__all__ = [
    "Division",
    "Expected",
    "Length",
    "Part",
    "Plan",
    "Shares",
    "Stage",
    "Stages",
    "Weighted",
    "check_plan_path",
]

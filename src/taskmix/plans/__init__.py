"""Plans: what the lessons of earlier runs advise for the next ones, made of parts.

plan = Plan.load("advice/plan.json")
runs = plan.runs(template, seeds=[0, 1, 2])
"""

from taskmix.plans._advice import ADVICE_VERSION, load_advice, save_advice
from taskmix.plans._division import Division, Shares, Stage, Stages, Weighted
from taskmix.plans._file import check_plan_path
from taskmix.plans._plan import Expected, Length, Part, Plan

__all__ = [
    "ADVICE_VERSION",
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
    "load_advice",
    "save_advice",
]

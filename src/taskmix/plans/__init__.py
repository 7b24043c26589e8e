"""Plans: what the lessons of earlier runs advise for the next ones, made of parts.

plan = Plan.load("advice/plan.json")
runs = plan.runs(template, seeds=[0, 1, 2])
"""

from taskmix.plans._advice import (
    AdviceDocument,
    BlendRow,
    CandidateRow,
    DeliveredRow,
    ExpectedRow,
    FindingRow,
    LearnedRow,
    PlanSummary,
    load_advice,
    save_advice,
)
from taskmix.plans._comparison import (
    ComparisonDocument,
    ComparisonRow,
    check_comparison_path,
    compare_with_promise,
    load_comparison,
    save_comparison,
)
from taskmix.plans._division import Division, Shares, Stage, Stages, Weighted
from taskmix.plans._export import TARGETS, ExportedPlan, ExportTarget, export_plan
from taskmix.plans._file import check_plan_path, plan_document
from taskmix.plans._fit import PlanFit, TaskFit, check_fit
from taskmix.plans._mix_streams import mix_streams
from taskmix.plans._plan import Expected, Length, Part, Plan, with_tuning
from taskmix.plans._race_rows import RaceRow, race_rows
from taskmix.plans._script import promised_run, settings_of, training_script

__all__ = [
    "TARGETS",
    "AdviceDocument",
    "BlendRow",
    "CandidateRow",
    "ComparisonDocument",
    "ComparisonRow",
    "DeliveredRow",
    "Division",
    "Expected",
    "ExpectedRow",
    "ExportTarget",
    "ExportedPlan",
    "FindingRow",
    "LearnedRow",
    "Length",
    "Part",
    "Plan",
    "PlanFit",
    "PlanSummary",
    "RaceRow",
    "Shares",
    "Stage",
    "Stages",
    "TaskFit",
    "Weighted",
    "check_comparison_path",
    "check_fit",
    "check_plan_path",
    "compare_with_promise",
    "export_plan",
    "load_advice",
    "load_comparison",
    "mix_streams",
    "plan_document",
    "promised_run",
    "race_rows",
    "save_advice",
    "save_comparison",
    "settings_of",
    "training_script",
    "with_tuning",
]

from typing import TYPE_CHECKING

if not TYPE_CHECKING:
    from taskmix._gone import refuse_gone_names

    __getattr__ = refuse_gone_names(__name__)

"""Which tasks help which: surrogates of transfer, learned from runs on subsets of tasks."""

from taskmix.transfer._answers import GroupAnswer, TargetAnswer, TransferAnswers, transfer_answers
from taskmix.transfer._design import SubsetDesign
from taskmix.transfer._document import (
    FailureRow,
    HeldOutRow,
    HeldOutTest,
    MeasuredValue,
    SelectionRow,
    SourceRow,
    TargetRow,
    TransferDocument,
    UsedDesign,
    load_transfer,
    save_transfer,
    transfer_document,
)
from taskmix.transfer._extrapolation import Surrogate, extrapolate, hold_out_sizes
from taskmix.transfer._features import task_features
from taskmix.transfer._grouping import GroupLimits, group_exactly, group_tasks
from taskmix.transfer._learn import LearningOptions, learn, study_transfer
from taskmix.transfer._lessons import TransferLessons
from taskmix.transfer._linear import LinearSurrogate, fit_linear_surrogate
from taskmix.transfer._matrix import TransferMatrix, fit_transfer_matrix, outcomes_of_target
from taskmix.transfer._new_tasks import (
    NewSource,
    NewTaskAnswer,
    UnseenTransfer,
    answer_for_new_tasks,
    predict_transfer,
)
from taskmix.transfer._outcomes import SubsetOutcomes, gather_outcomes
from taskmix.transfer._precision import (
    anchored_error,
    contrast_error,
    seed_noise,
    subsets_for_error,
)
from taskmix.transfer._selection import (
    best_prefixes,
    choose_prefix,
    select_below,
    select_two_groups,
)
from taskmix.transfer._shrunken import (
    EffectScales,
    PriorAgreement,
    ShrunkenSurrogates,
    fit_shrunken_surrogates,
)
from taskmix.transfer._study import TransferStudy, Trial
from taskmix.transfer._subsets import (
    all_size_subsets,
    balanced_subsets,
    fixed_size_subsets,
    leave_one_out_subsets,
)
from taskmix.transfer._trials import TrialOutcomes, measure_trials, train_trials
from taskmix.transfer._verdicts import effect_of_company, judge_sources, select_unless_harmful

__all__ = [
    "EffectScales",
    "FailureRow",
    "GroupAnswer",
    "GroupLimits",
    "HeldOutRow",
    "HeldOutTest",
    "LearningOptions",
    "LinearSurrogate",
    "MeasuredValue",
    "NewSource",
    "NewTaskAnswer",
    "PriorAgreement",
    "SelectionRow",
    "ShrunkenSurrogates",
    "SourceRow",
    "SubsetDesign",
    "SubsetOutcomes",
    "Surrogate",
    "TargetAnswer",
    "TargetRow",
    "TransferAnswers",
    "TransferDocument",
    "TransferLessons",
    "TransferMatrix",
    "TransferStudy",
    "Trial",
    "TrialOutcomes",
    "UnseenTransfer",
    "UsedDesign",
    "all_size_subsets",
    "anchored_error",
    "answer_for_new_tasks",
    "balanced_subsets",
    "best_prefixes",
    "choose_prefix",
    "contrast_error",
    "effect_of_company",
    "extrapolate",
    "fit_linear_surrogate",
    "fit_shrunken_surrogates",
    "fit_transfer_matrix",
    "fixed_size_subsets",
    "gather_outcomes",
    "group_exactly",
    "group_tasks",
    "hold_out_sizes",
    "judge_sources",
    "learn",
    "leave_one_out_subsets",
    "load_transfer",
    "measure_trials",
    "outcomes_of_target",
    "predict_transfer",
    "save_transfer",
    "seed_noise",
    "select_below",
    "select_two_groups",
    "select_unless_harmful",
    "study_transfer",
    "subsets_for_error",
    "task_features",
    "train_trials",
    "transfer_answers",
    "transfer_document",
]

from typing import TYPE_CHECKING

if not TYPE_CHECKING:
    from taskmix._gone import refuse_gone_names

    __getattr__ = refuse_gone_names(__name__)

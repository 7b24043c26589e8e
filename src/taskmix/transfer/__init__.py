"""Which tasks help which: surrogates of transfer, learned from runs on subsets of tasks."""

from taskmix.transfer._design import (
    all_size_subsets,
    balanced_subsets,
    fixed_size_subsets,
    leave_one_out_subsets,
)
from taskmix.transfer._discoveries import adjusted_p_values
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
)
from taskmix.transfer._documented import transfer_document
from taskmix.transfer._estimate import (
    EstimateComparison,
    EstimatedTarget,
    compare_estimates,
    estimate_by_gradients,
)
from taskmix.transfer._extrapolation import (
    Comparison,
    Extrapolation,
    compare_surrogates,
    extrapolate,
    hold_out_share,
    hold_out_sizes,
)
from taskmix.transfer._gradients import GradientOptions
from taskmix.transfer._groups import Grouping, GroupLimits
from taskmix.transfer._groups_exact import group_exactly
from taskmix.transfer._groups_greedy import group_greedily
from taskmix.transfer._groups_spectral import group_spectrally
from taskmix.transfer._label_model import ABSTAIN, LabelModel, fit_label_model, majority_vote
from taskmix.transfer._lessons import (
    LearningOptions,
    TargetLesson,
    TransferLessons,
    best_grouping,
    learn,
)
from taskmix.transfer._matrix import TransferMatrix, fit_transfer_matrix, outcomes_of_target
from taskmix.transfer._measured import TrialOutcomes, measure_trials, train_trials
from taskmix.transfer._outcomes import SubsetOutcomes, gather_outcomes
from taskmix.transfer._precision import (
    anchored_error,
    contrast_error,
    seed_noise,
    subsets_for_error,
)
from taskmix.transfer._prefixes import (
    PrefixChoice,
    best_prefixes,
    choose_prefix,
    select_by_prefixes,
)
from taskmix.transfer._projection import SparseProjection
from taskmix.transfer._selection import (
    Selection,
    select_below,
    select_least_loss,
    select_two_groups,
)
from taskmix.transfer._study import TransferStudy, Trial
from taskmix.transfer._subset_design import SubsetDesign
from taskmix.transfer._surrogate import Fit, Surrogate
from taskmix.transfer._surrogate_kernel import KernelSurrogate, fit_kernel_surrogate
from taskmix.transfer._surrogate_linear import LinearSurrogate, fit_linear_surrogate
from taskmix.transfer._surrogate_pairs import PairSurrogate, fit_pair_surrogate
from taskmix.transfer._verdicts import Verdict, judge_sources, select_unless_harmful
from taskmix.transfer._whole import study_transfer

__all__ = [
    "ABSTAIN",
    "Comparison",
    "EstimateComparison",
    "EstimatedTarget",
    "Extrapolation",
    "FailureRow",
    "Fit",
    "GradientOptions",
    "GroupLimits",
    "Grouping",
    "HeldOutRow",
    "HeldOutTest",
    "KernelSurrogate",
    "LabelModel",
    "LearningOptions",
    "LinearSurrogate",
    "MeasuredValue",
    "PairSurrogate",
    "PrefixChoice",
    "Selection",
    "SelectionRow",
    "SourceRow",
    "SparseProjection",
    "SubsetDesign",
    "SubsetOutcomes",
    "Surrogate",
    "TargetLesson",
    "TargetRow",
    "TransferDocument",
    "TransferLessons",
    "TransferMatrix",
    "TransferStudy",
    "Trial",
    "TrialOutcomes",
    "UsedDesign",
    "Verdict",
    "adjusted_p_values",
    "all_size_subsets",
    "anchored_error",
    "balanced_subsets",
    "best_grouping",
    "best_prefixes",
    "choose_prefix",
    "compare_estimates",
    "compare_surrogates",
    "contrast_error",
    "estimate_by_gradients",
    "extrapolate",
    "fit_kernel_surrogate",
    "fit_label_model",
    "fit_linear_surrogate",
    "fit_pair_surrogate",
    "fit_transfer_matrix",
    "fixed_size_subsets",
    "gather_outcomes",
    "group_exactly",
    "group_greedily",
    "group_spectrally",
    "hold_out_share",
    "hold_out_sizes",
    "judge_sources",
    "learn",
    "leave_one_out_subsets",
    "load_transfer",
    "majority_vote",
    "measure_trials",
    "outcomes_of_target",
    "save_transfer",
    "seed_noise",
    "select_below",
    "select_by_prefixes",
    "select_least_loss",
    "select_two_groups",
    "select_unless_harmful",
    "study_transfer",
    "subsets_for_error",
    "train_trials",
    "transfer_document",
]

"""Which tasks help which: surrogates of transfer, learned from runs on subsets of tasks."""

from taskmix.transfer._design import (
    all_size_subsets,
    balanced_subsets,
    fixed_size_subsets,
    leave_one_out_subsets,
)
from taskmix.transfer._discoveries import adjusted_p_values
from taskmix.transfer._extrapolation import (
    Comparison,
    Extrapolation,
    compare_surrogates,
    extrapolate,
    hold_out_share,
    hold_out_sizes,
)
from taskmix.transfer._groups import Grouping, GroupLimits
from taskmix.transfer._groups_exact import group_exactly
from taskmix.transfer._groups_greedy import group_greedily
from taskmix.transfer._groups_spectral import group_spectrally
from taskmix.transfer._matrix import TransferMatrix, fit_transfer_matrix, outcomes_of_target
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
from taskmix.transfer._selection import (
    Selection,
    select_below,
    select_least_loss,
    select_two_groups,
)
from taskmix.transfer._surrogate import Fit, Surrogate
from taskmix.transfer._surrogate_kernel import KernelSurrogate, fit_kernel_surrogate
from taskmix.transfer._surrogate_linear import LinearSurrogate, fit_linear_surrogate
from taskmix.transfer._surrogate_pairs import PairSurrogate, fit_pair_surrogate
from taskmix.transfer._verdicts import Verdict, judge_sources, select_unless_harmful

__all__ = [
    "Comparison",
    "Extrapolation",
    "Fit",
    "GroupLimits",
    "Grouping",
    "KernelSurrogate",
    "LinearSurrogate",
    "PairSurrogate",
    "PrefixChoice",
    "Selection",
    "SubsetOutcomes",
    "Surrogate",
    "TransferMatrix",
    "Verdict",
    "adjusted_p_values",
    "all_size_subsets",
    "anchored_error",
    "balanced_subsets",
    "best_prefixes",
    "choose_prefix",
    "compare_surrogates",
    "contrast_error",
    "extrapolate",
    "fit_kernel_surrogate",
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
    "leave_one_out_subsets",
    "outcomes_of_target",
    "seed_noise",
    "select_below",
    "select_by_prefixes",
    "select_least_loss",
    "select_two_groups",
    "select_unless_harmful",
    "subsets_for_error",
]

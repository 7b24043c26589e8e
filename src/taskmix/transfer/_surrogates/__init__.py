"""Functions from subsets of sources to the target's loss, fitted to a table of outcomes.

`_outcomes` is the table. `_linear` is the paper's surrogate; `_company`, `_pairs`, `_kernel` and
`_kernel_sm` go beyond it, and `_contract` says what all of them can do. `_matrix` fits one linear
surrogate for every target, `_shrunken` fits all of them together and to a cheaper study, and
`_discoveries` adjusts p-values for their number.
"""

from taskmix.transfer._surrogates._company import (
    CompanySurrogate,
    fit_company_surrogate,
    fit_constant_surrogate,
)
from taskmix.transfer._surrogates._contract import Fit, Surrogate
from taskmix.transfer._surrogates._kernel import KernelSurrogate, fit_kernel_surrogate
from taskmix.transfer._surrogates._kernel_sm import KernelSMSurrogate, fit_kernel_sm_surrogate
from taskmix.transfer._surrogates._linear import LinearSurrogate, fit_linear_surrogate
from taskmix.transfer._surrogates._matrix import (
    TransferMatrix,
    fit_transfer_matrix,
    outcomes_of_target,
)
from taskmix.transfer._surrogates._outcomes import SubsetOutcomes, gather_outcomes
from taskmix.transfer._surrogates._pairs import PairSurrogate, fit_pair_surrogate
from taskmix.transfer._surrogates._shrunken import (
    EffectScales,
    Gains,
    PriorAgreement,
    ShrunkenSurrogates,
    fit_shrunken_surrogates,
)

__all__ = [
    "CompanySurrogate",
    "EffectScales",
    "Fit",
    "Gains",
    "KernelSMSurrogate",
    "KernelSurrogate",
    "LinearSurrogate",
    "PairSurrogate",
    "PriorAgreement",
    "ShrunkenSurrogates",
    "SubsetOutcomes",
    "Surrogate",
    "TransferMatrix",
    "fit_company_surrogate",
    "fit_constant_surrogate",
    "fit_kernel_sm_surrogate",
    "fit_kernel_surrogate",
    "fit_linear_surrogate",
    "fit_pair_surrogate",
    "fit_shrunken_surrogates",
    "fit_transfer_matrix",
    "gather_outcomes",
    "outcomes_of_target",
]

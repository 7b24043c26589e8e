"""What a surrogate is good for: how far to trust it, and which sources to keep by it.

`_extrapolation` tries it on subsets it was not fitted to, and `_choice` chooses by that; `_verdicts`
says of each source whether it helps. Sources are selected by a threshold (`_selection`), unless
significantly harmful (`_verdicts`), or by training a few candidates (`_prefixes`).
"""

from taskmix.transfer._judging._choice import SurrogateChoice, choose_surrogate
from taskmix.transfer._judging._extrapolation import (
    FEWEST_TO_TEST_ON,
    Comparison,
    Extrapolation,
    compare_surrogates,
    extrapolate,
    hold_out_share,
    hold_out_sizes,
)
from taskmix.transfer._judging._prefixes import (
    PrefixChoice,
    best_prefixes,
    choose_prefix,
    select_by_prefixes,
)
from taskmix.transfer._judging._selection import (
    Selection,
    select_below,
    select_least_loss,
    select_two_groups,
)
from taskmix.transfer._judging._verdicts import (
    Answer,
    Verdict,
    judge_sources,
    select_unless_harmful,
)

__all__ = [
    "FEWEST_TO_TEST_ON",
    "Answer",
    "Comparison",
    "Extrapolation",
    "PrefixChoice",
    "Selection",
    "SurrogateChoice",
    "Verdict",
    "best_prefixes",
    "choose_prefix",
    "choose_surrogate",
    "compare_surrogates",
    "extrapolate",
    "hold_out_share",
    "hold_out_sizes",
    "judge_sources",
    "select_below",
    "select_by_prefixes",
    "select_least_loss",
    "select_two_groups",
    "select_unless_harmful",
]

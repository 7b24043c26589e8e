"""Generators of symbols that are learned by counting: their M-step has a closed form.

`_markov` is `Markov`, chains of any order with the paper's halting, whose pseudo-counts go where
`_backoff` says; `_multinomial` is `Multinomial`, the topics of plain LDA over the whole sequences
in `_outcomes`. `_chains` has counts of contexts that back off to shorter ones, `_strengths` learns how
strongly, and `_contexts` numbers the contexts.
"""

from taskmix.sequences._counted._backoff import Backoff, some_sequences
from taskmix.sequences._counted._chains import Chains, Counted, Level, Strengths, count_chains
from taskmix.sequences._counted._contexts import (
    Codes,
    Transitions,
    context_codes,
    find_transitions,
    longest_order,
)
from taskmix.sequences._counted._markov import Markov, MarkovParameters, MarkovStatistics
from taskmix.sequences._counted._multinomial import (
    Multinomial,
    MultinomialParameters,
    MultinomialStatistics,
)
from taskmix.sequences._counted._outcomes import Outcomes
from taskmix.sequences._counted._strengths import (
    backed_off_steps,
    learn_strengths,
    learn_strengths_of_groups,
)

__all__ = [
    "Backoff",
    "Chains",
    "Codes",
    "Counted",
    "Level",
    "Markov",
    "MarkovParameters",
    "MarkovStatistics",
    "Multinomial",
    "MultinomialParameters",
    "MultinomialStatistics",
    "Outcomes",
    "Strengths",
    "Transitions",
    "backed_off_steps",
    "context_codes",
    "count_chains",
    "find_transitions",
    "learn_strengths",
    "learn_strengths_of_groups",
    "longest_order",
    "some_sequences",
]

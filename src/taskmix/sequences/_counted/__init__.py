"""Generators of symbols that are learned by counting: their M-step has a closed form.

`_markov` is `Markov`, chains of any order with the paper's halting, whose pseudo-counts go where
`_backoff` says; `_multinomial` is `Multinomial`, the topics of plain LDA over the whole sequences
in `_outcomes`.
"""

from taskmix.sequences._counted._backoff import Backoff, Level
from taskmix.sequences._counted._markov import Markov, MarkovParameters, MarkovStatistics
from taskmix.sequences._counted._multinomial import (
    Multinomial,
    MultinomialParameters,
    MultinomialStatistics,
)
from taskmix.sequences._counted._outcomes import Outcomes

__all__ = [
    "Backoff",
    "Level",
    "Markov",
    "MarkovParameters",
    "MarkovStatistics",
    "Multinomial",
    "MultinomialParameters",
    "MultinomialStatistics",
    "Outcomes",
]

r"""What is known of each source: it helps, it harms, or how many more subsets would tell.

An effect differs significantly from zero, at `level`, where its interval excludes zero, or, with
`false_discovery`, where it is among the discoveries of Benjamini and Hochberg (1995).

A target may gain or lose by any company at all. That is the mean of its k effects, where it differs
significantly from zero with sources taken as drawn from all there might be: its variance is that of the
mean plus τ²/k, with τ² by how much effects differ beyond their errors (DerSimonian and Laird, 1986).
Then a source helps or harms only if its own effect also lies significantly beyond that of company.

For effects that do not differ from zero the standard error would have to fall until an effect θ̂ of
the size found is significant with probability `power`:

$$s' = \max(|\hat\theta|, \text{smallest}) \,/\, (t_{level} + z_{power}),$$

of which the part of the dev rows stays. The other part s² falls as one over n − k with n subsets of k
sources (`_precision.py`), so n − k and the runs of the target alone both have to grow by
the factor s²/(s'² − the part of the dev rows). An effect found near zero asks for very many:
`smallest`, the least change of the outcome that matters, puts an end to that, and lets an effect be
called negligible.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from taskmix.errors import OptionError
from taskmix.numerics import Interval, check_level, student_quantile
from taskmix.transfer._linear import LinearSurrogate, satterthwaite_degrees
from taskmix.transfer._selection import Selection, make_selection

# Words of transfer.json, where readers look for them: they stay as they are.
Answer = Literal["helps", "harms", "as any other", "negligible", "cannot tell"]
UNLESS_HARMFUL = "unless surely harmful"


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What the runs say of one source."""

    source: str
    answer: Answer
    effect: float  # on the loss: below zero is help
    low: float
    high: float
    p_value: float  # adjusted where false discoveries are controlled
    # Runs of subsets that would decide; None where decided, or where no number is known.
    further_subsets: int | None
    further_single_runs: int | None  # of the target alone, beside them

    def __str__(self) -> str:
        found = f"{self.source}: {self.answer} ({self.effect:+.4g}, {self.low:+.4g} to {self.high:+.4g})"
        if self.answer != "cannot tell":
            return found
        if self.further_subsets is None:
            return f"{found}; how many more subsets would tell is not known"
        alone = self.further_single_runs
        beside = f" and {alone} runs of the target alone" if alone else ""
        return f"{found}; about {self.further_subsets} further subsets{beside} would tell"


def judge_sources(
    surrogate: LinearSurrogate,
    *,
    level: float = 0.95,
    false_discovery: bool = False,  # hold the expected share of wrong verdicts at 1 − level
    smallest: float = 0.0,  # changes of the loss below this do not matter
    power: float = 0.8,
) -> tuple[Verdict, ...]:
    """A verdict on every source, in the order of the sources.

    >>> runs = np.repeat(np.concatenate([np.zeros((1, 3)), np.eye(3)]), 4, axis=0)  # four seeds each
    >>> losses = 1 + runs @ [-0.2, 0.0, 0.3] + np.tile([0.01, -0.01], 8)
    >>> sources = ["news", "tweets", "code"]
    >>> table = gather_outcomes(runs, losses, target="reviews", sources=sources)
    >>> [verdict.answer for verdict in judge_sources(fit_linear_surrogate(table))]
    ['helps', 'cannot tell', 'harms']
    """
    check_level(level)
    if not 0 < power < 1:
        raise OptionError(f"`power` should lie between 0 and 1, such as 0.8. Found {power}.")
    if not (math.isfinite(smallest) and smallest >= 0):
        raise OptionError(f"`smallest` should be a number of at least zero. Found {smallest}.")
    low, high = surrogate.intervals(level)
    p_values = surrogate.p_values(adjusted=false_discovery)
    significant = p_values <= 1 - level
    beyond = np.ones_like(significant)
    if effect_of_company(surrogate, level=level) is not None:
        relative = surrogate.centred()
        beyond = relative.p_values(adjusted=false_discovery) <= 1 - level
        beyond &= relative.effects * surrogate.effects > 0
    # The next discovery would have to pass at this share of the error.
    share = (int(significant.sum()) + 1) / len(significant) if false_discovery else 1.0
    factors = _growth_factors(surrogate, 1 - (1 - level) * min(share, 1.0), smallest, power)
    spare = surrogate.subsets - len(surrogate.sources)
    rows = spare if spare > 0 else surrogate.subsets  # ridge manages with fewer
    noise_runs = rows * surrogate.row_runs  # a row may be the mean of several runs
    verdicts = []
    for place, source in enumerate(surrogate.sources):
        answer: Answer = "cannot tell"
        if -smallest < low[place] and high[place] < smallest:
            answer = "negligible"
        elif significant[place] and not beyond[place]:
            answer = "as any other"
        elif significant[place]:
            answer = "helps" if surrogate.effects[place] < 0 else "harms"
        undecided = answer == "cannot tell" and bool(np.isfinite(factors[place]))
        more = max(float(factors[place]) - 1, 0.0) if undecided else 0.0
        verdicts.append(
            Verdict(
                source=source,
                answer=answer,
                effect=float(surrogate.effects[place]),
                low=float(low[place]),
                high=float(high[place]),
                p_value=float(p_values[place]),
                further_subsets=max(math.ceil(more * noise_runs), 1) if undecided else None,
                further_single_runs=math.ceil(more * surrogate.anchor_runs) if undecided else None,
            )
        )
    return tuple(verdicts)


def effect_of_company(surrogate: LinearSurrogate, *, level: float = 0.95) -> Interval | None:
    """What any other task does to the target's loss; None where that is not seen to differ from zero.

    >>> runs = np.repeat(np.concatenate([np.zeros((1, 3)), np.eye(3)]), 4, axis=0)  # four seeds each
    >>> losses = 1 + runs @ [0.2, 0.2, 0.3] + np.tile([0.01, -0.01], 8)
    >>> table = gather_outcomes(runs, losses, target="mood", sources=["news", "tweets", "code"])
    >>> round(effect_of_company(fit_linear_surrogate(table)).mean, 3)
    0.233
    """
    if not surrogate.anchor_runs:  # effects are relative to the average source as they are
        return None
    relative, count = surrogate.centred(), len(surrogate.effects)
    mean, own = float(surrogate.effects.mean()), surrogate.covariance.mean()
    differences = relative.effects @ relative.effects - np.trace(relative.covariance)
    drawn = np.maximum(differences / (count - 1), 0.0) / count
    degrees = satterthwaite_degrees((own, surrogate.degrees.min()), (drawn, count - 1))
    half = student_quantile(level, float(degrees)) * math.sqrt(own + drawn)
    found = Interval(mean, mean - half, mean + half, count, level)
    return found if found.excludes(0.0) else None


def select_unless_harmful(
    surrogate: LinearSurrogate,
    *,
    level: float = 0.95,
    false_discovery: bool = False,
    smallest: float = 0.0,
) -> Selection:
    """All sources but those that harm the target significantly, at `level`, if only as any other would.

    >>> runs = np.repeat(np.concatenate([np.zeros((1, 3)), np.eye(3)]), 4, axis=0)  # four seeds each
    >>> losses = 1 + runs @ [-0.2, 0.0, 0.3] + np.tile([0.01, -0.01], 8)
    >>> sources = ["news", "tweets", "code"]
    >>> table = gather_outcomes(runs, losses, target="reviews", sources=sources)
    >>> select_unless_harmful(fit_linear_surrogate(table)).sources
    ('news', 'tweets')
    """
    verdicts = judge_sources(
        surrogate, level=level, false_discovery=false_discovery, smallest=smallest
    )
    harmful = ("harms", "as any other")
    kept = np.array([each.answer not in harmful or each.effect < 0 for each in verdicts])
    return make_selection(surrogate, kept, rule=UNLESS_HARMFUL, threshold=None)


def _growth_factors(
    surrogate: LinearSurrogate, level: float, smallest: float, power: float
) -> NDArray[np.float64]:
    """By how much the runs would have to grow, [source]; infinite or NaN where no number is known."""
    from scipy.special import ndtri, stdtrit

    reach = stdtrit(surrogate.degrees, (1 + level) / 2) + ndtri(power)
    size = np.maximum(np.abs(surrogate.effects), smallest)
    wanted = np.where(size > 0, size, np.nan) / reach
    dev = surrogate.dev_covariance.diagonal()
    left = wanted**2 - dev
    fewer = (surrogate.standard_errors**2 - dev) / np.where(left > 0, left, 1.0)
    return np.where(left > 0, fewer, np.inf)

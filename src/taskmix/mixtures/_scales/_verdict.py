"""Whether a metric's ranks carry over, with the reason in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from taskmix.mixtures._scales._pairs import size_in_words
from taskmix.mixtures._scales._ranks import (
    FEWEST,
    RankCorrelation,
    correlate_ranks,
    runs_to_tell,
)
from taskmix.mixtures._scales._sides import ComparedSides

Verdict = Literal["carries over", "does not carry over", "cannot tell"]
MANY_RUNS = 1000  # more runs of the large size than this are no advice


@dataclass(frozen=True, kw_only=True)
class CarryQuestion:
    """How it is judged."""

    threshold: float
    level: float
    resamples: int


@dataclass(frozen=True, kw_only=True)
class RankCarry:
    """One metric, or the target, from one size to another.

    `corrected` is the correlation without noise, None where the noise is unknown. Noise that repeated
    runs tell is exact on average; that of a law has its misfit in it, so that a correction by it can be
    too large: it counts against "does not carry over" and never for "carries over".

    >>> row = RankCarry(
    ...     name="loss", small=1e6, large=6e7, mixtures=64, matched=True, repeated=False,
    ...     observed=RankCorrelation(value=0.95, low=0.9, high=0.98), corrected=None,
    ...     verdict="carries over", more_runs=None,
    ... )
    >>> row.words
    'loss, 1 M to 60 M: carries over (rank correlation 0.95, 0.90 to 0.98, on 64 mixtures trained at
    both).'
    """

    name: str
    small: float
    large: float
    mixtures: int  # that it rests on
    matched: bool  # trained at both sizes; otherwise the small size's forecast is compared
    repeated: bool  # the noise of the runs is known from repeated ones
    observed: RankCorrelation | None  # None with fewer than four mixtures
    corrected: RankCorrelation | None
    verdict: Verdict
    more_runs: int | None  # mixtures at the large size that would tell; None: told, or too many

    @property
    def words(self) -> str:
        """One sentence for the page."""
        head = f"{self.name}, {size_in_words(self.small)} to {size_in_words(self.large)}: {self.verdict}"
        return f"{head} ({self._found()}){self._advice()}."

    def _found(self) -> str:
        basis = f"{self.mixtures} mixtures trained at both"
        if not self.matched:
            basis = f"{self.mixtures} large runs against the forecast of the small size"
        if self.observed is None:
            return f"only {basis}"
        seen = self.observed
        found = f"rank correlation {seen.value:.2f}, {seen.low:.2f} to {seen.high:.2f}, on {basis}"
        if self.corrected is None:
            return found
        bound = "" if self.repeated else "at most "
        return f"{found}; without noise {bound}{self.corrected.value:.2f}"

    def _advice(self) -> str:
        if self.verdict != "cannot tell":
            return ""
        if self.more_runs is None and not self.repeated:
            return "; repeat some of the runs at each size, so that noise can be told from it"
        if self.more_runs is None:
            return "; too close to the threshold, or too noisy, for a number of runs to tell"
        return f"; about {self.more_runs} mixtures at {size_in_words(self.large)} would tell"


def judge_carry(
    question: CarryQuestion,
    name: str,
    sizes: tuple[float, float],
    compared: ComparedSides,
    column: int,
    random: np.random.Generator,
) -> RankCarry:
    """One column between two sizes."""
    left, right = compared.small.values[:, column], compared.large.values[:, column]
    known = ~np.isnan(left) & ~np.isnan(right)
    repeated = bool(compared.small.repeated[column] and compared.large.repeated[column])
    observed = corrected = None
    verdict: Verdict = "cannot tell"
    more: int | None = 2 * FEWEST
    if known.sum() >= FEWEST:
        observed = correlate_ranks(
            left[known],
            right[known],
            level=question.level,
            resamples=question.resamples,
            random=random,
        )
        shrunk = float(
            np.sqrt(
                compared.small.reliability(column, known)
                * compared.large.reliability(column, known)
            )
        )
        # No correlation is above 1 without noise: noise that says so is a law's misfit.
        shrunk = float(np.maximum(shrunk, abs(observed.value)))
        corrected = _correct(observed, shrunk)
        verdict = _decide(observed, corrected, repeated, question.threshold)
        more = None
        if verdict == "cannot tell":
            sure = corrected if repeated else None
            needed = _needed(question, observed, corrected, sure, shrunk)
            needed = max(needed, np.ceil(1.25 * known.sum()))  # those that are there did not tell
            more = int(needed) if needed <= MANY_RUNS else None
    return RankCarry(
        name=name,
        small=sizes[0],
        large=sizes[1],
        mixtures=int(known.sum()),
        matched=compared.matched,
        repeated=repeated,
        observed=observed,
        corrected=corrected,
        verdict=verdict,
        more_runs=more,
    )


def _needed(
    question: CarryQuestion,
    observed: RankCorrelation,
    corrected: RankCorrelation | None,
    sure: RankCorrelation | None,  # corrected by noise that repeated runs tell
    shrunk: float,
) -> float:
    """How many mixtures would tell; without end where only repeated runs can."""
    threshold, level = question.threshold, question.level
    if sure is not None:
        return runs_to_tell(sure.value, threshold, level, shrunk)
    if observed.value > threshold:
        return runs_to_tell(observed.value, threshold, level, 1.0)
    if corrected is not None and corrected.value < threshold:
        return runs_to_tell(corrected.value, threshold, level, shrunk)
    return np.inf


def _correct(observed: RankCorrelation, shrunk: float) -> RankCorrelation | None:
    """Divided by what noise took; None where that is unknown."""
    if np.isnan(shrunk):
        return None
    if shrunk <= 0:  # nothing but noise: anything is possible
        return RankCorrelation(value=observed.value, low=-1.0, high=1.0)
    value, low, high = (
        float(np.clip(each / shrunk, -1, 1))
        for each in (observed.value, observed.low, observed.high)
    )
    return RankCorrelation(value=value, low=low, high=high)


def _decide(
    observed: RankCorrelation, corrected: RankCorrelation | None, repeated: bool, threshold: float
) -> Verdict:
    surest_low = corrected.low if corrected is not None and repeated else observed.low
    highest = observed.high if corrected is None else corrected.high
    if surest_low >= threshold:
        return "carries over"
    # A low correlation may be noise alone where the noise is unknown; one below zero is not.
    if highest < (threshold if corrected is not None else 0.0):
        return "does not carry over"
    return "cannot tell"

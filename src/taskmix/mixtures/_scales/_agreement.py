"""How ranks of mixtures carry over from small models to larger ones, metric by metric."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, partial
from typing import Literal

import numpy as np

from taskmix.errors import InputError
from taskmix.mixtures._forecast import Forecast
from taskmix.mixtures._optimum._target import MixtureTarget
from taskmix.mixtures._scales._pairs import (
    ComparedSides,
    columns_of,
    compare_sizes,
    forecast_known,
    group_mixtures,
    pairs_of_sizes,
    size_in_words,
)
from taskmix.mixtures._scales._ranks import FEWEST, RankCorrelation, correlate_ranks, runs_to_tell
from taskmix.mixtures._table import MixtureTable

TARGET = "target"  # the name under which the target stands beside the metrics
Verdict = Literal["carries over", "does not carry over", "cannot tell"]
MANY_RUNS = 1000  # more runs of the large size than this are no advice


@dataclass(frozen=True)
class RankAgreement:
    """Every metric, and the target, between every two sizes."""

    rows: tuple[RankCarry, ...]

    def of(self, name: str) -> tuple[RankCarry, ...]:
        """One metric between all sizes; the target is called `target`."""
        return tuple(row for row in self.rows if row.name == name)

    @property
    def warnings(self) -> tuple[str, ...]:
        """A sentence for each that does not carry over or cannot be told."""
        return tuple(row.words for row in self.rows if row.verdict != "carries over")


def rank_agreement(
    table: MixtureTable,
    *,
    target: MixtureTarget | None = None,
    threshold: float = 0.8,  # the rank correlation from which on we say that ranks carry over
    level: float = 0.9,
    resamples: int = 400,
    seed: int = 0,
) -> RankAgreement:
    """Whether small models rank mixtures as larger ones do.

    Where four or more mixtures were trained at both sizes, these are compared. Otherwise the forecast
    fitted on the small size is compared with the large runs, which it has not seen.

    >>> shares = np.array([[x, 1 - x] for x in np.linspace(0, 1, 10)])
    >>> small = np.column_stack([shares[:, 0] ** 2, shares[:, 1]])
    >>> table = MixtureTable(
    ...     domains=("web", "code"), metrics=("a", "b"), runs=tuple(map(str, range(20))),
    ...     shares=np.tile(shares, (2, 1)), values=np.concatenate([small, small * [0.8, -1.0]]),
    ...     sizes=np.repeat([1e6, 6e7], 10),
    ... )
    >>> [row.verdict for row in rank_agreement(table).rows]
    ['carries over', 'does not carry over']
    """
    if not 0 < threshold < 1:
        raise InputError(f"`threshold` should lie between 0 and 1. Found {threshold}.")
    names = table.metrics if target is None else (*table.metrics, TARGET)
    mixtures = {
        size: group_mixtures(part.shares, columns_of(part.values, part, target))
        for size in table.known_sizes
        for part in [table.of_size(size)]
    }
    random = np.random.default_rng(seed)

    @cache
    def forecast(size: float) -> Forecast | None:
        return forecast_known(table.of_size(size), seed=seed)

    rows: list[RankCarry] = []
    for small, large in pairs_of_sizes(table):
        compared = compare_sizes(
            mixtures[small],
            mixtures[large],
            target,
            partial(forecast, small),
            partial(forecast, large),
        )
        rows += [
            _judge_carry(
                name,
                (small, large),
                compared,
                column,
                threshold=threshold,
                level=level,
                resamples=resamples,
                random=random,
            )
            for column, name in enumerate(names)
        ]
    return RankAgreement(rows=tuple(rows))


@dataclass(frozen=True, kw_only=True)
class RankCarry:
    """One metric, or the target, from one size to another.

    `corrected` is the correlation without noise, None where the noise is unknown. Noise that repeated
    runs tell is exact on average; that of a law has its misfit in it, so that a correction by it can be
    too large: it counts against "does not carry over" and never for "carries over".
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


def _judge_carry(
    name: str,
    sizes: tuple[float, float],
    compared: ComparedSides,
    column: int,
    *,
    threshold: float,
    level: float,
    resamples: int,
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
            level=level,
            resamples=resamples,
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
        verdict = _decide(observed, corrected, repeated, threshold)
        more = None
        if verdict == "cannot tell":
            sure = corrected if repeated else None
            needed = _needed(threshold, level, observed, corrected, sure, shrunk)
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
    threshold: float,
    level: float,
    observed: RankCorrelation,
    corrected: RankCorrelation | None,
    sure: RankCorrelation | None,  # corrected by noise that repeated runs tell
    shrunk: float,
) -> float:
    """How many mixtures would tell; without end where only repeated runs can."""
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

"""The answer as a document: what is advised, what it rests on, and how far it can be trusted."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from taskmix.mixtures._forecast import Forecast, StackedForecast
from taskmix.mixtures._learning._document import (
    CarryRow,
    ComparedMixture,
    DomainRow,
    ForecastValue,
    LawWeight,
    LeftOutMetric,
    MixtureReport,
    PredictedMixture,
)
from taskmix.mixtures._learning._fit import LEVEL, PredictedRuns, judge_left_out
from taskmix.mixtures._optimum._optimum import MixtureOptimum, shares_by_name
from taskmix.mixtures._optimum._sensitivity import measure_sensitivity
from taskmix.mixtures._optimum._target import JudgedMixtures, MixtureTarget
from taskmix.mixtures._reading._checks import CheckedTable
from taskmix.mixtures._table import Floats, MixtureTable
from taskmix.numerics import Interval

ADVISED, BEST_RUN = "advised", "the best run"
_NAMES = {"uniform": "equal shares", "natural": "natural shares", "the reference": "given shares"}
# Rank correlations of runs not seen: below the first there is a doubt, below the second a large one.
GOOD, FAIR = 0.9, 0.7
# Expected regrets in spreads over runs: above the first there is a doubt, above the second a large one.
LITTLE, MUCH = 0.25, 0.5
LIKELY = 0.9  # that the advised mixture is better than the best run
GRADES = ("high", "fair", "low")


def document_answer(
    checked: CheckedTable,
    left_out: PredictedRuns,
    judged: JudgedMixtures,
    optimum: MixtureOptimum,
    carry: tuple[CarryRow, ...] | None,
    size: float | None,
) -> MixtureReport:
    """Everything but what was asked for besides: the front, next runs, predictions."""
    table, own = checked.table, judged.forecast.table
    compared = compare_mixtures(judged, optimum)
    rows = judge_left_out(left_out, judged.forecast, judged.target)
    observed = judged.target.of(own.values, own)
    spread = float(np.nanstd(observed)) if np.isfinite(observed).any() else 0.0
    words = judged.target.describe(own)
    grade, trust = _judge_trust(rows[0], optimum, compared, spread, carry)
    return MixtureReport(
        command="",
        mixtures=_read_words(table),
        target=words,
        larger_is_better=rises(judged.target, own),
        runs=len(table),
        sizes=table.known_sizes,
        size=size,
        answer=_answer(optimum, compared[0].target, words, size, grade),
        trust=trust,
        warnings=(),
        notes=(),
        domains=_domain_rows(checked.fixed, judged, optimum),
        compared=compared,
        left_out=rows,
        extrapolated=optimum.distance.extrapolated,
        distance=optimum.distance.words,
        regret=optimum.regret,
        spread=spread,
        laws=_laws(judged.forecast),
        carry=carry,
        seconds=0.0,
    )


def _domain_rows(
    fixed: Mapping[str, float], judged: JudgedMixtures, optimum: MixtureOptimum
) -> tuple[DomainRow, ...]:
    found = measure_sensitivity(judged.forecast, optimum.shares, judged.target, judged.limits)
    turned = rises(judged.target, judged.forecast.table)
    shares = judged.forecast.table.shares
    rows = []
    for place, name in enumerate(judged.forecast.table.domains):
        effect = None if name in fixed else found.changes[name]
        low, high = optimum.equally_good[name]
        rows.append(
            DomainRow(
                domain=name,
                share=optimum.shares[name],
                low=low,
                high=high,
                seen_low=float(shares[:, place].min()),
                seen_high=float(shares[:, place].max()),
                effect=None if effect is None else value_of(effect, turned=turned),
                fixed=name in fixed,
                passes=None if optimum.passes is None else optimum.passes[name],
            )
        )
    return tuple(rows)


def _laws(forecast: Forecast) -> tuple[LawWeight, ...]:
    """The laws that were stacked, and how much each counts for each metric."""
    stacked = getattr(forecast, "base", forecast)  # of a forecast at a size, the one that it moves
    if not isinstance(stacked, StackedForecast):
        return ()
    return tuple(
        LawWeight(metric, law, float(weight))
        for metric, weights in zip(stacked.table.metrics, stacked.weights, strict=True)
        for law, weight in zip(stacked.names, weights, strict=True)
    )


def _read_words(table: MixtureTable) -> str:
    sizes = f", {len(table.known_sizes)} sizes of model" if table.known_sizes else ""
    return f"{len(table)} runs, {len(table.domains)} domains, {len(table.metrics)} metrics{sizes}"


def _answer(
    optimum: MixtureOptimum,
    value: ForecastValue,
    target: str,
    size: float | None,
    grade: str,  # of trust
) -> str:
    kept = sorted(optimum.shares.items(), key=lambda pair: -pair[1])
    shown = [f"{name} {100 * share:.0f} %" for name, share in kept if share >= 0.005]
    most = ", ".join(shown[:5]) + (f" and {len(shown) - 5} more" if len(shown) > 5 else "")
    at = "" if size is None else f" at {size:,.0f} parameters"
    first = "A guess, as trust in it is low: train" if grade == "low" else "Train"
    return (
        f"{first} on {most}: {target}{at} is expected to be {value.value:.4g} ({value.low:.4g} to "
        f"{value.high:.4g})."
    )


def _judge_trust(
    target: LeftOutMetric,
    optimum: MixtureOptimum,
    compared: Sequence[ComparedMixture],
    spread: float,
    carry: Sequence[CarryRow] | None,  # None where all runs are of one size
) -> tuple[str, tuple[str, ...]]:
    """The grade, and in words the verdict first: then accuracy, gain, distance, regret and sizes.

    The verdict is by the weakest part. Only it has a grade, so that no part praises what another doubts.
    """
    best = compared[1]  # the best run: the advised mixture comes first, the others after it
    doubts = list(_doubts(target, optimum, best, spread))
    worst = max((weight for weight, _ in doubts), default=0)
    reasons = [words for weight, words in doubts if weight == worst] or [
        "runs not seen are ranked well, little is left to win, and the mixture is better than the best "
        "run and lies among the runs"
    ]
    verdict = f"Trust in this answer is {GRADES[worst]}: {'; '.join(reasons)}."
    words = [verdict, _accuracy_words(target), _gain_words(best), optimum.distance.words]
    if spread > 0:
        words.append(
            f"By laws that fit as well, another mixture would be better by {optimum.regret:.2g} on "
            f"average (expected regret, {100 * optimum.regret / spread:.0f} % of the spread over runs)."
        )
    words.append(
        _carry_words(carry)
        if carry
        else "The answer is for models of the size of these runs: larger ones may rank mixtures in "
        "another order."
    )
    return GRADES[worst], tuple(words)


def _doubts(
    target: LeftOutMetric, optimum: MixtureOptimum, best: ComparedMixture, spread: float
) -> Iterator[tuple[int, str]]:
    """What speaks against the answer, and how much: 1, or 2 for a large doubt."""
    ranked, left = target.rank_correlation, optimum.regret / spread if spread > 0 else 0.0
    if math.isnan(ranked):
        yield 1, "how well runs not seen are ranked is not known"
    elif ranked < GOOD:
        words = f"runs not seen are ranked with a correlation of {ranked:.2f}"
        yield 1 if ranked >= FAIR else 2, words
    if left > LITTLE:
        words = f"laws that fit as well leave {100 * left:.0f} % of the spread over runs to win"
        yield 1 if left <= MUCH else 2, words
    if best.better < LIKELY:
        yield 1, f"the mixture cannot be told from the {best.name}"
    if optimum.distance.extrapolated:
        yield 1, "the mixture is extrapolated"


def _accuracy_words(row: LeftOutMetric) -> str:
    what = "the target" if row.name == "target" else f"`{row.name}`"
    if math.isnan(row.rank_correlation):
        return f"How well {what} is predicted cannot be told: too few runs have all that it needs."
    words = (
        f"For {len(row.runs)} runs that the law had not seen, {what} is ranked with a "
        f"correlation of {row.rank_correlation:.2f} (R² {row.r_squared:.2f})"
    )
    if not math.isnan(row.coverage):
        words += f"; {100 * row.coverage:.0f} % of its 90 % intervals hold what came"
    return f"{words}."


def _gain_words(best: ComparedMixture) -> str:
    size = f"{best.gain.value:.3g} ({best.gain.low:.3g} to {best.gain.high:.3g})"
    return (
        f"By these laws it is better than the {best.name} by {size}, with a probability of "
        f"{100 * best.better:.0f} %."
    )


def _carry_words(carry: Sequence[CarryRow]) -> str:
    """What is known of the widest step in size: the target, and how many metrics."""
    small, large = min(row.small for row in carry), max(row.large for row in carry)
    rows = [row for row in carry if (row.small, row.large) == (small, large)]
    carried = [row for row in rows if row.verdict == "carries over"]
    words = f"Between sizes: {rows[0].words}"
    if len(rows) > 1:
        words += f" Of all {len(rows)} rankings {len(carried)} carry over that far"
        others = [f"`{row.name}`" for row in rows if row.verdict != "carries over"]
        if others:
            words += f"; it is not so, or cannot be told, for {', '.join(others[:5])}"
            words += f" and {len(others) - 5} more" if len(others) > 5 else ""
        words += "."
    return words


def compare_mixtures(
    judged: JudgedMixtures, optimum: MixtureOptimum
) -> tuple[ComparedMixture, ...]:
    """The advised mixture, then those that it was compared with."""
    table = judged.forecast.table
    shares = [optimum.row(table.domains)]
    shares += [np.array(list(other.shares.values())) for other in optimum.gains.values()]
    metrics = metrics_of(judged, np.stack(shares))
    nothing = ForecastValue(0.0, 0.0, 0.0)
    turned = rises(judged.target, table)
    rows = [
        ComparedMixture(
            name=ADVISED,
            shares=dict(optimum.shares),
            target=value_of(optimum.target, turned=turned),
            gain=nothing,
            better=0.5,
            metrics=metrics[0],
        )
    ]
    for place, (name, other) in enumerate(optimum.gains.items(), start=1):
        is_run = name == BEST_RUN
        rows.append(
            ComparedMixture(
                name=f"best run ({optimum.best_run})" if is_run else _NAMES.get(name, name),
                shares=dict(other.shares),
                target=value_of(other.target, turned=turned),
                gain=value_of(other.gain),
                better=other.better,
                metrics=metrics[place],
            )
        )
    return tuple(rows)


def predict_named(
    judged: JudgedMixtures, names: Sequence[str], shares: Floats
) -> tuple[PredictedMixture, ...]:
    """What mixtures that someone asks about will give."""
    table, metrics = judged.forecast.table, metrics_of(judged, shares)
    targets = judged.each(shares) * (-1.0 if rises(judged.target, table) else 1.0)
    return tuple(
        PredictedMixture(
            name=name,
            shares=shares_by_name(table.domains, shares[place]),
            target=middle_of(targets[:, place]),
            metrics=metrics[place],
        )
        for place, name in enumerate(names)
    )


def metrics_of(judged: JudgedMixtures, shares: Floats) -> list[dict[str, ForecastValue]]:
    """For each mixture, what a run on it will give."""
    middle = judged.metrics(shares)
    low, high = judged.forecast.interval(judged.taught(shares), LEVEL)
    return [
        {
            name: ForecastValue(*(float(each[row, place]) for each in (middle, low, high)))
            for place, name in enumerate(judged.forecast.table.metrics)
        }
        for row in range(len(shares))
    ]


def middle_of(draws: Floats) -> ForecastValue:
    """The mean of draws [draw] and their middle part."""
    low, high = np.quantile(draws, [0.5 - LEVEL / 2, 0.5 + LEVEL / 2])
    return ForecastValue(float(draws.mean()), float(low), float(high))


def rises(target: MixtureTarget, table: MixtureTable) -> bool:
    """Whether the target is one metric that should rise: then people want to see it rise."""
    used = np.flatnonzero(target.weights_in(table))
    return len(used) == 1 and bool(table.signs[used[0]] < 0) and target.reference is None


def value_of(interval: Interval, *, turned: bool = False) -> ForecastValue:
    """An interval as the document has it; `turned`, a target as the metric that it is."""
    if turned:
        return ForecastValue(-interval.mean, -interval.high, -interval.low)
    return ForecastValue(interval.mean, interval.low, interval.high)

"""The answer as a document: what is advised, what it rests on, and what to make of it."""

from __future__ import annotations

import numpy as np

from taskmix.mixtures._forecasting import Forecast, StackedForecast
from taskmix.mixtures._learning._comparing import compare_mixtures, rises, value_of
from taskmix.mixtures._learning._document import (
    CarryRow,
    DomainRow,
    ForecastValue,
    LawWeight,
    MixturesDocument,
)
from taskmix.mixtures._learning._fitting import FittedMixtures
from taskmix.mixtures._learning._left_out import judge_left_out
from taskmix.mixtures._learning._trust import FAIR, judge_trust
from taskmix.mixtures._optimum import JudgedMixtures, MixtureOptimum, measure_sensitivity
from taskmix.mixtures._table import MixtureTable


def document_answer(
    fitted: FittedMixtures,
    judged: JudgedMixtures,
    optimum: MixtureOptimum,
    carry: tuple[CarryRow, ...] | None,
    size: float | None,
) -> MixturesDocument:
    """Everything but what was asked for besides: the front, next runs, predictions."""
    table, own = fitted.table, judged.forecast.table
    compared = compare_mixtures(judged, optimum)
    rows = judge_left_out(fitted.left_out, fitted.of_runs, judged.target)
    observed = judged.target.of(own.values, own)
    spread = float(np.nanstd(observed)) if np.isfinite(observed).any() else 0.0
    words = judged.target.describe(own)
    return MixturesDocument(
        command="",
        mixtures=_read_words(table),
        target=words,
        larger_is_better=rises(judged.target, own),
        runs=len(table),
        sizes=table.known_sizes,
        size=size,
        answer=_answer(optimum, compared[0].target, words, size, rows[0].rank_correlation),
        trust=judge_trust(rows[0], optimum, compared, spread, carry),
        warnings=(),
        notes=(),
        domains=_domain_rows(fitted, judged, optimum),
        compared=compared,
        left_out=rows,
        extrapolated=optimum.distance.extrapolated,
        distance=optimum.distance.words,
        regret=optimum.regret,
        spread=spread,
        laws=_laws(fitted.of_runs),
        carry=carry,
        seconds=0.0,
    )


def _domain_rows(
    fitted: FittedMixtures, judged: JudgedMixtures, optimum: MixtureOptimum
) -> tuple[DomainRow, ...]:
    found = measure_sensitivity(judged.forecast, optimum.shares, judged.target, judged.limits)
    turned = rises(judged.target, judged.forecast.table)
    shares = judged.forecast.table.shares
    rows = []
    for place, name in enumerate(fitted.domains):
        effect = None if name in fitted.fixed else found.changes[name]
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
                fixed=name in fitted.fixed,
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
    correlation: float,  # of ranks, on runs not seen
) -> str:
    kept = sorted(optimum.shares.items(), key=lambda pair: -pair[1])
    shown = [f"{name} {100 * share:.0f} %" for name, share in kept if share >= 0.005]
    most = ", ".join(shown[:5]) + (f" and {len(shown) - 5} more" if len(shown) > 5 else "")
    at = "" if size is None else f" at {size:,.0f} parameters"
    # Not a number: nothing is known against it.
    first = (
        "A guess, since runs not seen are ranked poorly: train" if correlation < FAIR else "Train"
    )
    return (
        f"{first} on {most}: {target}{at} is expected to be {value.value:.4g} ({value.low:.4g} to "
        f"{value.high:.4g})."
    )

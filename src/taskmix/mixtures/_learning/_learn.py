"""From a table of runs to the mixture to train on: what `taskmix mix` does, as a function."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from taskmix.errors import InputError
from taskmix.mixtures._forecasting import Forecast, forecast_mixtures
from taskmix.mixtures._learning._comparing import compare_mixtures, rises, value_of
from taskmix.mixtures._learning._document import (
    CarryRow,
    DomainRow,
    ForecastValue,
    LawWeight,
    LeftOutMetric,
    MixturesDocument,
    RunsToDo,
)
from taskmix.mixtures._learning._following import (
    carry_rows,
    choose_large,
    choose_next,
    draw_front,
    explain_carry,
)
from taskmix.mixtures._learning._left_out import (
    LeftOutRuns,
    judge_left_out,
    predict_left_out,
    predict_left_out_at_size,
)
from taskmix.mixtures._learning._lessons import MixtureLessons
from taskmix.mixtures._learning._limiting import hold_fixed
from taskmix.mixtures._learning._trust import judge_trust
from taskmix.mixtures._optimum import (
    JudgedMixtures,
    MixtureLimits,
    MixtureOptimum,
    MixtureTarget,
    find_optimum,
    measure_sensitivity,
)
from taskmix.mixtures._reading import CheckedTable, check_table
from taskmix.mixtures._scales import forecast_at_size, suspect_two_sizes
from taskmix.mixtures._table import MixtureTable

Tell = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class _Settings:
    """What was asked, in one place."""

    target: MixtureTarget
    limits: MixtureLimits
    size: float | None
    seed: int
    tell: Tell


def learn_mixtures(
    table: MixtureTable,
    *,
    target: MixtureTarget | str | None = None,
    limits: MixtureLimits | None = None,
    size: float | None = None,
    reference: Mapping[str, float] | None = None,
    front: tuple[str, str] | None = None,
    next_runs: int = 0,
    tolerance: float | None = None,
    predict: Mapping[str, Mapping[str, float]] | None = None,
    seed: int = 0,
    tell: Tell | None = None,
) -> MixtureLessons:
    """Finds the mixture that makes a target small, and says how far to trust it.

    `target` is a metric's name, "mean", "worst" or a `MixtureTarget`; None is the mean of all metrics.
    With runs of several sizes, the answer is for models of `size`, or of the largest there is. Shares
    in `reference` are compared with the advised ones. `front` names two metrics whose trade is drawn,
    `next_runs` how many runs to propose, `tolerance` the expected regret that is enough, and `predict`
    mixtures by name that are to be predicted. `tell` hears what is being done.

    >>> shares = np.random.default_rng(0).dirichlet([1, 1], size=12)
    >>> columns = {"web": shares[:, 0], "code": shares[:, 1]}
    >>> table = read_mixtures(columns, {"loss": 3 - np.sqrt(shares[:, 1])})
    >>> lessons = learn_mixtures(table, target="loss", limits=MixtureLimits(at_most={"code": 0.7}))
    >>> round(lessons.shares["code"], 2)
    0.7
    """
    begin = time.perf_counter()
    tell = tell or (lambda words: None)
    wanted = as_target(target, table)
    wanted.check(table)
    checked = check_table(table, needed=_needed(wanted, front, table))
    table = checked.table
    wanted = as_target(target, table)
    held = hold_fixed(limits or MixtureLimits(), checked.fixed, table.domains)
    held.check(table.domains)
    for name in front or ():
        MixtureTarget(metric=name).check(table)
    asked = _Settings(target=wanted, limits=held, size=size, seed=seed, tell=tell)
    warnings = [*checked.warnings]
    suspected = suspect_two_sizes(table)
    if suspected is not None:
        warnings.append(suspected.words)
    forecast, remarks = _forecast(asked, table)
    judged = JudgedMixtures(forecast=forecast, target=wanted, limits=held)
    tell("predicting runs that were not seen")
    left = _left_out(asked, table, forecast)
    rows = judge_left_out(left, forecast, wanted)
    tell("looking for the best mixture")
    optimum = find_optimum(forecast, wanted, held, seed=seed, reference=reference)
    carry = None
    if table.known_sizes:
        tell("comparing sizes")
        carry = carry_rows(table, wanted, seed=seed)
        remarks = (*remarks, *explain_carry(table, wanted, seed=seed))
    document = _document(asked, checked, judged, optimum, rows, carry)
    if front is not None:
        tell("drawing the front")
        document = replace(document, front=draw_front(judged, front, seed=seed))
    if next_runs or tolerance is not None:
        tell("choosing runs to do next")
        document = replace(
            document, next=_next(asked, table, judged, optimum, next_runs, tolerance)
        )
    document = replace(document, warnings=tuple(warnings), notes=(*table.notes, *remarks))
    lessons = MixtureLessons(
        table=table,
        forecast=forecast,
        target=wanted,
        limits=held,
        optimum=optimum,
        left_out=left,
        document=document,
    )
    if predict:
        document = replace(document, predictions=lessons.predict_all(predict))
    return replace(lessons, document=replace(document, seconds=time.perf_counter() - begin))


def as_target(target: MixtureTarget | str | None, table: MixtureTable) -> MixtureTarget:
    """A word as a target; a metric that is called `mean` or `worst` is meant by its name."""
    if isinstance(target, MixtureTarget):
        return target
    if target is None or (target == "mean" and target not in table.metrics):
        return MixtureTarget()
    if target == "worst" and target not in table.metrics:
        return MixtureTarget(worst=True)
    return MixtureTarget(metric=target)


def _needed(
    target: MixtureTarget, front: tuple[str, str] | None, table: MixtureTable
) -> tuple[str, ...]:
    """Metrics that were asked for by name: without them there is no answer."""
    named = [target.metric] if target.metric is not None else list(target.weights or ())
    return tuple(name for name in (*named, *(front or ())) if name in table.metrics)


def _forecast(asked: _Settings, table: MixtureTable) -> tuple[Forecast, tuple[str, ...]]:
    """Laws of the runs: of one size, or at the size that was asked for."""
    asked.tell("fitting laws")
    if table.sizes is None:
        if asked.size is not None:
            raise InputError(
                "`size` should come with a column that says the size of each run's model. Found none. "
                "Name it in `size_column`, or leave `size` out.",
                arguments=("size", "size_column"),
            )
        return forecast_mixtures(table, seed=asked.seed), ()
    at_size = forecast_at_size(table, asked.size or table.known_sizes[-1], seed=asked.seed)
    return at_size, at_size.remarks


def _left_out(asked: _Settings, table: MixtureTable, forecast: Forecast) -> LeftOutRuns:
    """Runs predicted without them, by forecasts made as this one was."""
    seed = asked.seed
    if table.sizes is None:
        return predict_left_out(
            forecast, lambda part: forecast_mixtures(part, seed=seed), seed=seed
        )
    size = asked.size or table.known_sizes[-1]
    return predict_left_out_at_size(
        table, size, forecast, lambda part: forecast_at_size(part, size, seed=seed), seed=seed
    )


def _next(
    asked: _Settings,
    table: MixtureTable,
    judged: JudgedMixtures,
    optimum: MixtureOptimum,
    count: int,
    tolerance: float | None,
) -> RunsToDo:
    """Runs of the size that is asked for; among several, those that settle what small ones leave."""
    if not table.known_sizes:
        return choose_next(judged, count, tolerance=tolerance, seed=asked.seed)
    size = asked.size or table.known_sizes[-1]
    return choose_large(table, size, asked.target, count, regret=optimum.regret, seed=asked.seed)


def _document(
    asked: _Settings,
    checked: CheckedTable,
    judged: JudgedMixtures,
    optimum: MixtureOptimum,
    rows: tuple[LeftOutMetric, ...],
    carry: tuple[CarryRow, ...] | None,
) -> MixturesDocument:
    table, own = checked.table, judged.forecast.table
    compared = compare_mixtures(judged, optimum)
    observed = judged.target.of(own.values, own)
    spread = float(np.nanstd(observed)) if np.isfinite(observed).any() else 0.0
    words = judged.target.describe(own)
    size = (asked.size or table.known_sizes[-1]) if table.known_sizes else None
    return MixturesDocument(
        command="",
        mixtures=_read_words(table),
        target=words,
        larger_is_better=rises(judged.target, own),
        runs=len(table),
        sizes=table.known_sizes,
        size=size,
        answer=_answer(optimum, compared[0].target, words, size),
        trust=judge_trust(rows[0], optimum, compared, spread, carry),
        warnings=(),
        notes=(),
        domains=_domain_rows(judged, optimum, checked),
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
    judged: JudgedMixtures, optimum: MixtureOptimum, checked: CheckedTable
) -> tuple[DomainRow, ...]:
    table = checked.table
    found = measure_sensitivity(judged.forecast, optimum.shares, judged.target, judged.limits)
    turned = rises(judged.target, judged.forecast.table)
    rows = []
    for place, name in enumerate(table.domains):
        effect = None if name in checked.fixed else found.changes[name]
        low, high = optimum.equally_good[name]
        rows.append(
            DomainRow(
                domain=name,
                share=optimum.shares[name],
                low=low,
                high=high,
                seen_low=float(table.shares[:, place].min()),
                seen_high=float(table.shares[:, place].max()),
                effect=None if effect is None else value_of(effect, turned=turned),
                fixed=name in checked.fixed,
                passes=None if optimum.passes is None else optimum.passes[name],
            )
        )
    return tuple(rows)


def _laws(forecast: Forecast) -> tuple[LawWeight, ...]:
    """The laws that were stacked, where the forecast says so."""
    return tuple(
        LawWeight(metric, law, float(weight))
        for metric, weights in dict(getattr(forecast, "laws", {})).items()
        for law, weight in weights.items()
    )


def _read_words(table: MixtureTable) -> str:
    sizes = f", {len(table.known_sizes)} sizes of model" if table.known_sizes else ""
    return f"{len(table)} runs, {len(table.domains)} domains, {len(table.metrics)} metrics{sizes}"


def _answer(optimum: MixtureOptimum, value: ForecastValue, target: str, size: float | None) -> str:
    kept = sorted(optimum.shares.items(), key=lambda pair: -pair[1])
    shown = [f"{name} {100 * share:.0f} %" for name, share in kept if share >= 0.005]
    most = ", ".join(shown[:5]) + (f" and {len(shown) - 5} more" if len(shown) > 5 else "")
    at = "" if size is None else f" at {size:,.0f} parameters"
    return (
        f"Train on {most}: {target}{at} is expected to be {value.value:.4g} ({value.low:.4g} to "
        f"{value.high:.4g})."
    )

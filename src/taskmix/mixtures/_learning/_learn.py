"""From a table of runs to the mixture to train on: what `taskmix mix` does, as a function."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

from taskmix.errors import InputError
from taskmix.mixtures._learning._answer import document_answer, value_of
from taskmix.mixtures._learning._document import (
    CarryRow,
    FrontPoint,
    MixtureFront,
    RunsToDo,
    RunToDo,
)
from taskmix.mixtures._learning._fit import (
    Fit,
    Tell,
    check_asked_size,
    fit_mixtures,
    size_asked,
)
from taskmix.mixtures._learning._lessons import MixtureLessons
from taskmix.mixtures._next_runs import next_mixtures
from taskmix.mixtures._optimum._front import find_front
from taskmix.mixtures._optimum._limits import MixtureLimits
from taskmix.mixtures._optimum._optimum import find_optimum, shares_by_name
from taskmix.mixtures._optimum._target import JudgedMixtures, MixtureTarget
from taskmix.mixtures._reading._checks import check_table
from taskmix.mixtures._scales._agreement import rank_agreement
from taskmix.mixtures._scales._large_runs import choose_large_runs
from taskmix.mixtures._table import MixtureTable

SLACK = 1e-9
NOT_KNOWN = float("nan")


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
    fit: Fit | None = None,
    seed: int = 0,
    tell: Tell | None = None,
) -> MixtureLessons:
    """Finds the mixture that makes a target small, and says how far to trust it.

    `target` is a metric's name, "mean", "worst" or a `MixtureTarget`; None is the mean of all metrics.
    With runs of several sizes, the answer is for models of `size`, or of the largest there is. Shares
    in `reference` are compared with the advised ones. `front` names two metrics whose trade is drawn,
    `next_runs` how many runs to propose, `tolerance` the expected regret that is enough, and `predict`
    mixtures by name that are to be predicted. `fit` makes the forecast from runs of one size; None is
    `forecast_mixtures`. `tell` hears what is being done.

    >>> shares = np.random.default_rng(0).dirichlet([1, 1], size=8)
    >>> columns = {"web": shares[:, 0], "code": shares[:, 1]}
    >>> table = read_mixtures(columns, {"loss": 3 - np.sqrt(shares[:, 1])})
    >>> lessons = learn_mixtures(table, target="loss", limits=MixtureLimits(at_most={"code": 0.7}))
    >>> round(lessons.shares["code"], 2)
    0.7
    >>> lessons.plan().tasks, list(lessons.predict({"web": 0.5, "code": 0.5}).metrics)
    (('web', 'code'), ['loss'])
    """
    begin = time.perf_counter()
    tell = tell or (lambda words: None)
    wanted = as_target(target, table)
    for each in (wanted, *(MixtureTarget(metric=name) for name in front or ())):
        each.check(table)
    checked = check_table(table, needed=_needed(wanted, front))
    table = checked.table
    check_asked_size(table, size)
    held = hold_fixed(limits or MixtureLimits(), checked.fixed, table.domains)
    held.check(table.domains)
    forecast, left_out, remarks = fit_mixtures(table, size=size, fit=fit, seed=seed, tell=tell)
    judged = JudgedMixtures(forecast=forecast, target=wanted, limits=held)
    tell("looking for the best mixture")
    optimum = find_optimum(forecast, wanted, held, seed=seed, reference=reference)
    carry, at = None, None
    if table.known_sizes:
        tell("comparing sizes")
        at = size_asked(table, size)
        carry = carry_rows(table, wanted, seed=seed)
    document = replace(
        document_answer(checked, left_out, judged, optimum, carry, at),
        warnings=checked.warnings,
        notes=(*table.notes, *remarks),
    )
    if front is not None:
        tell("drawing the front")
        document = replace(document, front=draw_front(judged, front, seed=seed))
    if next_runs or tolerance is not None:
        tell("choosing runs to do next")
        todo = (
            choose_next(judged, next_runs, tolerance=tolerance, seed=seed)
            if at is None
            else choose_large(table, at, judged, next_runs, regret=optimum.regret, seed=seed)
        )
        document = replace(document, next=todo)
    lessons = MixtureLessons(
        table=table,
        forecast=forecast,
        target=wanted,
        limits=held,
        optimum=optimum,
        left_out=left_out,
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


def _needed(target: MixtureTarget, front: tuple[str, str] | None) -> tuple[str, ...]:
    """Metrics that were asked for by name: without them there is no answer."""
    named = [target.metric] if target.metric is not None else list(target.weights or ())
    return (*named, *(front or ()))


def hold_fixed(
    limits: MixtureLimits, fixed: Mapping[str, float], domains: Sequence[str]
) -> MixtureLimits:
    """The same limits with the shares of `fixed` held; refuses those that ask for another share."""
    if not fixed:
        return limits
    lowest = _by_domain(limits.at_least, domains)
    highest = _by_domain(limits.at_most, domains)
    for name, share in fixed.items():
        low, high = lowest.get(name, 0.0), highest.get(name, 1.0)
        if not low - SLACK <= share <= high + SLACK:
            raise InputError(
                f"Limits should leave `{name}` where all runs had it, as nothing is known of other "
                f"shares. Found {share:.4g} in every run, and limits from {low:g} to {high:g}. Train "
                "runs that vary it, or take the limit away."
            )
        lowest[name] = highest[name] = share
    return replace(limits, at_least=lowest, at_most=highest)


def _by_domain(given: float | Mapping[str, float], domains: Sequence[str]) -> dict[str, float]:
    return dict(given) if isinstance(given, Mapping) else dict.fromkeys(domains, float(given))


def choose_next(
    judged: JudgedMixtures, count: int, *, tolerance: float | None, seed: int
) -> RunsToDo:
    """The runs that tell most about the best mixture; `count` of them, or none where it is enough."""
    found = next_mixtures(
        judged.forecast,
        judged.target,
        judged.limits,
        count=max(count, 1),
        tolerance=tolerance,
        seed=seed,
    )
    runs = zip(found.shares, found.reasons, strict=True)
    return RunsToDo(
        runs=tuple(
            RunToDo(shares=shares_by_name(found.domains, shares), words=reason)
            for shares, reason in (runs if count else ())
        ),
        regret=found.regret.mean,
        regret_after=found.regret_after,
        enough=found.is_enough,
        words=found.describe(),
    )


def choose_large(
    table: MixtureTable,
    size: float,
    judged: JudgedMixtures,
    count: int,
    *,
    regret: float,
    seed: int,
) -> RunsToDo:
    """The runs of the large size that would settle the order of the best mixtures."""
    found = choose_large_runs(
        table, size, judged.target, judged.limits, count=max(count, 1), seed=seed
    )
    runs = found.runs if count else ()
    return RunsToDo(
        runs=tuple(RunToDo(shares=dict(run.shares), words=run.reason) for run in runs),
        regret=regret,
        regret_after=NOT_KNOWN,
        enough=False,
        words=found.words,
    )


def draw_front(judged: JudgedMixtures, pair: tuple[str, str], *, seed: int) -> MixtureFront:
    """The Pareto front of two metrics, in their own units."""
    table = judged.forecast.table
    first, second = (MixtureTarget(metric=name) for name in pair)
    points = find_front(judged.forecast, first, second, judged.limits, seed=seed)
    turned = [name in table.larger_is_better for name in pair]
    return MixtureFront(
        first=pair[0],
        second=pair[1],
        points=tuple(
            FrontPoint(
                shares=dict(point.shares),
                first=value_of(point.first, turned=turned[0]),
                second=value_of(point.second, turned=turned[1]),
            )
            for point in points
        ),
    )


def carry_rows(table: MixtureTable, target: MixtureTarget, *, seed: int) -> tuple[CarryRow, ...]:
    """How ranks carry over, the target first; a target of one metric is that metric."""
    alone = target.metric is not None
    found = rank_agreement(table, target=None if alone else target, seed=seed)
    rows = [
        CarryRow(
            name=row.name,
            small=row.small,
            large=row.large,
            correlation=NOT_KNOWN if row.observed is None else row.observed.value,
            low=NOT_KNOWN if row.observed is None else row.observed.low,
            high=NOT_KNOWN if row.observed is None else row.observed.high,
            verdict=row.verdict,
            words=row.words,
        )
        for row in found.rows
    ]
    wanted = target.metric if alone else "target"
    return tuple(sorted(rows, key=lambda row: row.name != wanted))

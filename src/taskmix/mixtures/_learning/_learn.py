"""From a table of runs to the mixture to train on: what `taskmix mix` does, as a function."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace

from taskmix.mixtures._domains import DomainFeatures
from taskmix.mixtures._learning._answering import document_answer
from taskmix.mixtures._learning._fitting import (
    Fit,
    FitSettings,
    Tell,
    check_asked_size,
    fit_mixtures,
    new_domains,
    size_asked,
)
from taskmix.mixtures._learning._following import (
    carry_rows,
    choose_large,
    choose_next,
    draw_front,
    explain_carry,
)
from taskmix.mixtures._learning._lessons import MixtureLessons
from taskmix.mixtures._learning._limiting import hold_fixed
from taskmix.mixtures._optimum import JudgedMixtures, MixtureLimits, MixtureTarget, find_optimum
from taskmix.mixtures._reading import CheckedTable, check_table
from taskmix.mixtures._scales import suspect_two_sizes
from taskmix.mixtures._table import MixtureTable


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
    features: DomainFeatures | None = None,
    fit: Fit | None = None,
    seed: int = 0,
    tell: Tell | None = None,
) -> MixtureLessons:
    """Finds the mixture that makes a target small, and says how far to trust it.

    `target` is a metric's name, "mean", "worst" or a `MixtureTarget`; None is the mean of all metrics.
    With runs of several sizes, the answer is for models of `size`, or of the largest there is. Shares
    in `reference` are compared with the advised ones. `front` names two metrics whose trade is drawn,
    `next_runs` how many runs to propose, `tolerance` the expected regret that is enough, and `predict`
    mixtures by name that are to be predicted. `features` describe domains, those that no run has seen
    included. `fit` makes the forecast from runs of one size; None is `forecast_mixtures`. `tell` hears
    what is being done.

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
    held = _limits(checked, limits or MixtureLimits(), features)
    settings = FitSettings(size=size, features=features, seed=seed, tell=tell, given=fit)
    fitted = fit_mixtures(checked, settings)
    judged = JudgedMixtures(forecast=fitted.forecast, target=wanted, limits=held)
    tell("looking for the best mixture")
    optimum = find_optimum(fitted.forecast, wanted, held, seed=seed, reference=reference)
    carry, remarks, at = None, fitted.remarks, None
    if table.known_sizes:
        tell("comparing sizes")
        at = size_asked(table, size)
        carry = carry_rows(table, wanted, seed=seed)
        remarks = (*remarks, *explain_carry(table, wanted, seed=seed))
    document = replace(
        document_answer(fitted, judged, optimum, carry, at),
        warnings=_warnings(checked, fitted.new),
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
        forecast=fitted.forecast,
        target=wanted,
        limits=held,
        optimum=optimum,
        left_out=fitted.left_out,
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


def _limits(
    checked: CheckedTable, limits: MixtureLimits, features: DomainFeatures | None
) -> MixtureLimits:
    """The limits with what was never varied held where it was, unless features say what it is like."""
    new = new_domains(checked, features)
    domains = tuple(dict.fromkeys((*checked.table.domains, *new)))
    fixed = {name: share for name, share in checked.fixed.items() if name not in new}
    held = hold_fixed(limits, fixed, domains)
    held.check(domains)
    return held


def _warnings(checked: CheckedTable, new: tuple[str, ...]) -> tuple[str, ...]:
    """What makes the answer less certain than its figures."""
    warnings = list(checked.warnings)
    if new:
        names = ", ".join(f"`{name}`" for name in new[:8])
        warnings.append(
            f"No run tells what these are worth: {names}. It is guessed from domains that are like "
            "them, with wide intervals; train some runs that use them."
        )
    suspected = suspect_two_sizes(checked.table)
    return tuple(warnings) if suspected is None else (*warnings, suspected.words)

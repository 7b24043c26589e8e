"""What a document says of runs to do next, of fronts and of sizes, from what the neighbours found."""

from __future__ import annotations

from dataclasses import dataclass

from taskmix.errors import InputError
from taskmix.mixtures._designing import next_mixtures
from taskmix.mixtures._learning._comparing import named_shares, value_of
from taskmix.mixtures._learning._document import (
    CarryRow,
    FrontPoint,
    MixtureFront,
    RunsToDo,
    RunToDo,
)
from taskmix.mixtures._optimum import JudgedMixtures, MixtureTarget, find_front
from taskmix.mixtures._scales import carry_over, explain_mean, settle_with
from taskmix.mixtures._table import Floats, MixtureTable
from taskmix.numerics import Interval

NOT_KNOWN = float("nan")


@dataclass(frozen=True)
class TargetOfTable:
    """A target with the table whose metrics it is of."""

    target: MixtureTarget
    table: MixtureTable

    def of(self, values: Floats) -> Floats:
        """[...], of values [..., metric]; lower is better."""
        return self.target.of(values, self.table)


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
            RunToDo(shares=named_shares(found.domains, shares), words=reason)
            for shares, reason in (runs if count else ())
        ),
        regret=found.regret.mean,
        regret_after=found.regret_after,
        enough=found.is_enough,
        words=found.describe(),
    )


def choose_large(
    table: MixtureTable, size: float, target: MixtureTarget, count: int, *, regret: float, seed: int
) -> RunsToDo:
    """The runs of the large size that would settle the order of the best mixtures."""
    found = settle_with(table, size, TargetOfTable(target, table), count=max(count, 1), seed=seed)
    runs = found.runs if count else ()
    return RunsToDo(
        runs=tuple(RunToDo(shares=dict(run.shares), words=run.reason) for run in runs),
        regret=regret,
        regret_after=NOT_KNOWN,
        enough=False,
        words=found.words,
    )


def explain_carry(table: MixtureTable, target: MixtureTarget, *, seed: int) -> tuple[str, ...]:
    """Why a mean of metrics carries over worse than its parts, where the target is one."""
    if target.metric is not None or target.worst or len(table.metrics) < 2:
        return ()
    try:
        weights = target.weights_in(table).tolist()
        return (explain_mean(table, weights=weights, seed=seed).words,)
    except (
        InputError
    ):  # too few mixtures have all metrics at both sizes: the table says that already
        return ()


def draw_front(judged: JudgedMixtures, pair: tuple[str, str], *, seed: int) -> MixtureFront:
    """The Pareto front of two metrics, in their own units."""
    table = judged.forecast.table
    first, second = (MixtureTarget(metric=name) for name in pair)
    points = find_front(judged.forecast, first, second, judged.limits, seed=seed)
    signs = [-1.0 if name in table.larger_is_better else 1.0 for name in pair]

    def in_units(interval: Interval, sign: float) -> Interval:
        if sign > 0:
            return interval
        return Interval(-interval.mean, -interval.high, -interval.low, interval.n, interval.level)

    return MixtureFront(
        first=pair[0],
        second=pair[1],
        points=tuple(
            FrontPoint(
                shares=dict(point.shares),
                first=value_of(in_units(point.first, signs[0])),
                second=value_of(in_units(point.second, signs[1])),
            )
            for point in points
        ),
    )


def carry_rows(table: MixtureTable, target: MixtureTarget, *, seed: int) -> tuple[CarryRow, ...]:
    """How ranks carry over, the target first; a target of one metric is that metric."""
    alone = target.metric is not None
    found = carry_over(table, target=None if alone else TargetOfTable(target, table), seed=seed)
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

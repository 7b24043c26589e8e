"""The figures about advice: which candidate is behind, and what to expect of each task.

What was promised of each task stands beside what came: on test, and of a training by the plan.
Both are the same rows and the same chart. A score outside its interval is marked, and counted in words.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from taskmix.numerics import Interval
from taskmix.report._advice_charts import (
    INSIDE,
    OUTSIDE,
    gap_dots,
    promise_bars,
)
from taskmix.report._charts import Bounds, Spec, metric_bounds, row_names
from taskmix.report._figures import Columns, Figure, Panel, rounded
from taskmix.report._words import (
    decimals_for,
    ends_words,
    listed,
    number,
    spread_words,
)

if TYPE_CHECKING:
    from taskmix.plans import AdviceDocument, CandidateRow, ComparisonDocument


@dataclass(frozen=True, kw_only=True)
class PromiseRow:
    """A task: the score that was promised with its interval, and the one that came."""

    task: str
    metric: str
    value: float
    low: float
    high: float
    found: float = math.nan  # NaN where none came
    of: str = "on test"

    @property
    def is_outside(self) -> bool:
        return not math.isnan(self.found) and not self.low <= self.found <= self.high

    @property
    def side(self) -> str:
        """Nothing for a score inside its interval."""
        return ("below" if self.found < self.low else "above") if self.is_outside else ""

    @property
    def decimals(self) -> int:
        return decimals_for([self.value])

    @property
    def promised(self) -> str:
        return number(self.value, self.decimals)

    @property
    def ends(self) -> str:
        return ends_words(self.low, self.high, self.decimals)

    @property
    def came(self) -> str:
        return "" if math.isnan(self.found) else number(self.found, self.decimals)


def expected_rows(advice: AdviceDocument | None) -> list[PromiseRow]:
    """What the advice expects, and the test scores that came."""
    return [
        PromiseRow(
            task=row.task,
            metric=row.metric,
            value=row.value,
            low=row.low,
            high=row.high,
            found=row.test.mean if row.test else math.nan,
        )
        for row in (advice.expected if advice is not None else ())
    ]


def delivered_rows(comparison: ComparisonDocument | None) -> list[PromiseRow]:
    """What a plan promised, and what the training by it brought."""
    return [
        PromiseRow(
            task=row.task,
            metric=row.metric,
            value=row.expected,
            low=row.low,
            high=row.high,
            found=math.nan if row.found is None else row.found,
            of=f"on {row.split}",
        )
        for row in (comparison.rows if comparison is not None else ())
    ]


def outside_words(rows: Sequence[PromiseRow], level: float) -> str:
    """How many lie outside, which, and how many would by chance."""
    known = [row for row in rows if not math.isnan(row.found)]
    if not known:
        return ""
    outside = [row for row in known if row.is_outside]
    percent = f"{100 * level:g} %"
    if not outside:
        return f"None of {len(known)} lies outside its {percent} interval."
    usual = f"{(1 - level) * len(known):.1f}".removesuffix(".0")
    one = len(outside) == 1
    named = listed([f"{row.task} ({row.side})" for row in outside], 6)
    return (
        f"{len(outside)} of {len(known)} {'lies' if one else 'lie'} outside {'its' if one else 'their'} "
        f"{percent} interval{'' if one else 's'}: {named}. By chance alone it would be about {usual}."
    )


def expected_figure(advice: AdviceDocument | None) -> Figure | None:
    """What each task's score should be, and what it was on test; a panel a metric."""
    if advice is None or not advice.expected:
        return None
    whose, came = (
        ("one new run", "the mean test scores of the runs at hand")
        if advice.delivered is None
        else ("the checked model", "its test scores")
    )
    caption = (
        f"Bars hold the score of {whose} on new rows in {100 * advice.level:g} % of cases; the line "
        f"in each is what dev rows say. Dots are {came}, by which nothing was chosen; an orange "
        "diamond lies outside its bar."
    )
    return _figure("expected", expected_rows(advice), caption)


def delivered_figure(comparison: ComparisonDocument | None) -> Figure | None:
    """What the plan promised, and what training by it brought; a panel a metric."""
    if comparison is None or not comparison.rows:
        return None
    caption = (
        f"Bars are the {100 * comparison.level:g} % intervals that the plan promised for one run; dots "
        "are the means of the runs that were trained by it; an orange diamond lies outside its bar."
    )
    return _figure("delivered", delivered_rows(comparison), caption)


def _figure(name: str, all_rows: Sequence[PromiseRow], caption: str) -> Figure:
    panels: list[Panel] = []
    specs: dict[str, Spec] = {}
    for place, metric in enumerate(dict.fromkeys(row.metric for row in all_rows)):
        rows = [row for row in all_rows if row.metric == metric]
        key = f"{name}-{place}"
        columns = _columns(rows, metric)
        words = "; ".join(
            f"{row.task} {shown}, {row.of} {row.came or 'not known'}"
            f"{f', {row.side} its interval' if row.is_outside else ''}"
            for row, shown in zip(rows[:12], columns["shown"], strict=False)
        )
        specs[key] = promise_bars(columns["row"], metric)
        panels.append(Panel(f"chart-{key}", metric, key, columns, f"Promised {metric}: {words}."))
    return Figure(name, caption, tuple(panels), "none", specs)


def _columns(rows: Sequence[PromiseRow], metric: str) -> Columns:
    bounds = metric_bounds(metric)
    names = row_names([row.task for row in rows])
    return {
        "row": [names[row.task] for row in rows],
        "name": [row.task for row in rows],
        "series": [OUTSIDE if row.is_outside else INSIDE for row in rows],
        "mean": [rounded(bounds.held(row.value)) for row in rows],
        "low": [rounded(bounds.held(row.low)) for row in rows],
        "high": [rounded(bounds.held(row.high)) for row in rows],
        "found": [rounded(bounds.held(row.found)) for row in rows],
        "shown": [spread_words(row.value, row.low, row.high, row.decimals) for row in rows],
        "came": [
            f"{row.came} {row.of}{f', {row.side} it' if row.side else ''}"
            if row.came
            else f"nothing {row.of}"
            for row in rows
        ],
    }


def gap_figure(advice: AdviceDocument | None) -> Figure | None:
    """Differences to the leader with intervals, a row a candidate."""
    if advice is None or len(advice.candidates) < 2:
        return None
    rows = advice.candidates
    nothing = Interval(0.0, math.nan, math.nan, 0)  # of the leader to itself
    gaps = [nothing, *(_turned(row.behind) for row in rows[1:])]
    held = _difference_bounds(advice).held
    names = row_names([row.name for row in rows])
    columns: Columns = {
        "row": [names[row.name] for row in rows],
        "name": [row.name for row in rows],
        "series": [_standing(row, advice) for row in rows],
        "mean": [rounded(held(gap.mean)) for gap in gaps],
        "low": [rounded(held(_known(gap.low, gap.mean))) for gap in gaps],
        "high": [rounded(held(_known(gap.high, gap.mean))) for gap in gaps],
        "shown": [spread_words(gap.mean, gap.low, gap.high, 3) for gap in gaps],
        "seeds": [str(row.seeds) for row in rows],
    }
    described = "; ".join(
        f"{row.name}: {_standing(row, advice)}, {number(row.behind.mean)} behind"
        for row in rows[:12]
    )
    panel = Panel(
        "chart-gaps", "Difference to the leader", "gaps", columns, f"Candidates. {described}."
    )
    level = f"{100 * advice.level:g} %"
    caption = (
        f"Mean score of {listed(advice.judged)} minus that of {rows[0].name}, as estimated for rows "
        f"not seen, with {level} intervals. "
        f"Blue leads, dark may still be the best, grey is significantly behind ({level})."
    )
    specs = {"gaps": gap_dots(columns["row"], "difference in mean dev score")}
    return Figure("gaps", caption, (panel,), "none", specs)


def metrics_shown(advice: AdviceDocument) -> dict[str, str]:
    """The metric of each task of which a score is said."""
    found = {row.task: row.metric for row in advice.expected}
    if advice.delivered is None:
        return found
    return {row.task: row.metric for row in advice.delivered.tasks} | found


def _difference_bounds(advice: AdviceDocument) -> Bounds:
    """Of a difference of mean scores, by the widest of the metrics; without any, no bounds."""
    every = [metric_bounds(metric).of_differences for metric in metrics_shown(advice).values()]
    reach = max((bounds.high for bounds in every), default=math.inf)
    return Bounds(-reach, reach)


def _standing(row: CandidateRow, advice: AdviceDocument) -> str:
    """The colour of a candidate, in words."""
    if row is advice.leader:
        return "leads"
    return "may be the best" if row.open else "out"


def _turned(gap: Interval) -> Interval:
    """The same difference seen from the other side."""
    return Interval(-gap.mean, -gap.high, -gap.low, gap.n, gap.level)


def _known(end: float, mean: float) -> float:
    """The end of an interval, or its mean where one seed gives none."""
    return end if math.isfinite(end) else mean

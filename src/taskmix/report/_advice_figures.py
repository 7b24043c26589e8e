"""The figures about advice: who is behind, what to expect, what it cost, what more would bring.

What was promised of each task stands beside what came: on test of the runs at hand, and of a training.
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
    budget_steps,
    gap_dots,
    law_curve,
    promise_bars,
)
from taskmix.report._charts import Bounds, Spec, metric_bounds, row_names
from taskmix.report._figures import Columns, Figure, Panel, rounded
from taskmix.report._words import (
    count_of,
    decimals_for,
    duration,
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
    """What the advice expects, and the test scores of its runs."""
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
    caption = (
        f"Bars hold the score of one new run on new rows in {100 * advice.level:g} % of cases; the line "
        "in each is the mean on dev. Dots are the mean test scores of the runs at hand, by which "
        "nothing was chosen; an orange diamond lies outside its bar."
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
        "chart-gaps", "Difference to the leader", "gaps", columns, f"Ways of training. {described}."
    )
    level = f"{100 * advice.level:g} %"
    when = "" if advice.length is None else f" after {advice.length:,} batches"
    caption = (
        f"Mean score of {listed(advice.judged)} minus that of {rows[0].name}, as estimated for rows "
        f"not seen{when}, with {level} intervals. "
        f"Blue leads, dark may still be the best, grey is significantly behind ({level})."
    )
    specs = {"gaps": gap_dots(columns["row"], "difference in mean dev score")}
    return Figure("gaps", caption, (panel,), "none", specs)


def _difference_bounds(advice: AdviceDocument) -> Bounds:
    """Of a difference of mean scores, by the widest of the metrics; without any, no bounds."""
    every = [metric_bounds(row.metric).of_differences for row in advice.expected]
    reach = max((bounds.high for bounds in every), default=math.inf)
    return Bounds(-reach, reach)


def _standing(row: CandidateRow, advice: AdviceDocument) -> str:
    """The colour of a candidate, in words."""
    if row is advice.leader:
        return "leads"
    return "may be the best" if row.open else "out"


def _spent_words(advice: AdviceDocument) -> str:
    if advice.budget_seconds is None:
        return f"{count_of(advice.batches_spent)} of {count_of(advice.batches)} batches were spent."
    return f"{count_of(advice.batches_spent)} batches were spent in {duration(advice.seconds)}."


def budget_figure(advice: AdviceDocument | None) -> Figure | None:
    """What each stage cost, one after the other, and the leader's score after it."""
    if advice is None or not advice.milestones:
        return None
    rows = advice.milestones
    begins = [0.0, *(row.spent for row in rows[:-1])]
    columns: Columns = {
        "begin": [_whole(begin) for begin in begins],
        "step": [_whole(row.spent) for row in rows],
        "mean": [rounded(row.score) for row in rows],
        "series": [row.stage for row in rows],
        "cost": [
            f"{count_of(row.spent - begin)} batches"
            for row, begin in zip(rows, begins, strict=True)
        ],
        "leader": [row.leader for row in rows],
        "shown": [number(row.score) for row in rows],
        "open": [f"{len(row.open)} of {len(row.open) + len(row.out)}" for row in rows],
    }
    words = "; ".join(
        f"{stage}: {cost}, then {leader} leads with {shown}"
        for stage, cost, leader, shown in zip(
            columns["series"], columns["cost"], columns["leader"], columns["shown"], strict=True
        )
    )
    panel = Panel("chart-spending", "Batches by stage", "spending", columns, f"{words}.")
    caption = (
        f"Bands are stages, as wide as they cost; the line is the mean dev score of whoever led after "
        f"each. It may fall: more seeds correct a lead that was luck. "
        f"{_spent_words(advice)}"
    )
    stages = list(dict.fromkeys(columns["series"]))
    specs = {"spending": budget_steps("batches spent", stages)}
    return Figure("spending", caption, (panel,), "none", specs)


def law_figure(advice: AdviceDocument | None) -> Figure | None:
    """The evaluations of the chosen candidate, the law through them, and what it says of twice."""
    outlook = advice.outlook if advice is not None else None
    if outlook is None or outlook.law is None:
        return None
    law, found = outlook.law, outlook.evaluations
    if not (math.isfinite(law.batches) and math.isfinite(law.more)):
        return None  # no axis to draw it on
    inside = [(x, y) for x, y in law.curve if x <= law.batches]
    outside = [*inside[-1:], *((x, y) for x, y in law.curve if x > law.batches)]
    gain, before = law.gain, law.before
    after = before + gain.mean
    columns: Columns = {key: [] for key in ("series", "step", "mean", "low", "high", "shown")}

    def add(series: str, step: float, mean: float, low: float, high: float) -> None:
        values = (series, _whole(step), rounded(mean), rounded(low), rounded(high), number(mean))
        for key, value in zip(columns, values, strict=True):
            columns[key].append(value)

    for each in found:
        add("evaluation", each.batches, each.score, each.score, each.score)
    for series, points in (("law", inside), ("beyond the data", outside)):
        for step, mean in points:
            add(series, step, mean, mean, mean)
    low, high = _known(gain.low, gain.mean), _known(gain.high, gain.mean)
    add("expected", law.more, after, before + low, before + high)
    columns["batches"] = [count_of(step) for step in columns["step"]]
    columns["shown"][-1] = f"{number(after)} ({number(before + low)} to {number(before + high)})"
    described = f"Mean dev score against batches. {outlook.words}"
    panel = Panel("chart-law", "Score against batches", "law", columns, described)
    caption = (
        f"The law explains {law.explained:.0%} of the variance of "
        f"{count_of(len(found))} evaluations (grey, the best so far of each seed). The broken part lies "
        "beyond the data; the interval at its end is over seeds, widened by what the law was off when "
        "it knew the first half only, and by what other laws that fit nearly as well say."
    )
    specs = {"law": law_curve(last=law.batches, more=law.more)}
    return Figure("law", caption, (panel,), "none", specs)


def _whole(batches: float) -> int | None:
    return round(batches) if math.isfinite(batches) else None


def _turned(gap: Interval) -> Interval:
    """The same difference seen from the other side."""
    return Interval(-gap.mean, -gap.high, -gap.low, gap.n, gap.level)


def _known(end: float, mean: float) -> float:
    """The end of an interval, or its mean where one seed gives none."""
    return end if math.isfinite(end) else mean

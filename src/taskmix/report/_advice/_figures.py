"""The figures about advice: who is behind, what to expect, what it cost, what more would bring."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from taskmix.numerics import Interval
from taskmix.report._advice._charts import budget_steps, gap_dots, law_curve
from taskmix.report._drawing import (
    Bounds,
    Columns,
    Figure,
    Panel,
    metric_bounds,
    rounded,
    row_names,
)
from taskmix.report._study import count_of, duration, listed, number, spread_words

if TYPE_CHECKING:
    from taskmix.plans import AdviceDocument, CandidateRow


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

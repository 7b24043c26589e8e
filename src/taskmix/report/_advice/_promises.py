"""What was promised of each task beside what came: on test of the runs at hand, and of a training.

Both are the same rows and the same chart. A score outside its interval is marked, and counted in words.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from taskmix.report._advice._charts import INSIDE, OUTSIDE, promise_bars
from taskmix.report._drawing import Columns, Figure, Panel, Spec, metric_bounds, rounded, row_names
from taskmix.report._study import decimals_for, ends_words, listed, number, spread_words

if TYPE_CHECKING:
    from taskmix.plans import AdviceDocument, ComparisonDocument


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

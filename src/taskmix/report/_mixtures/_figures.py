"""The figures about mixtures, from the document: shares, others, predictions, effects, the front."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from taskmix.report._drawing import (
    Columns,
    Figure,
    Panel,
    Spec,
    predicted_against_observed,
    rounded,
    row_names,
)
from taskmix.report._mixtures._charts import (
    ADVISED,
    BETTER,
    OTHER,
    UNTOLD,
    WORSE,
    interval_rows,
    share_bars,
    trade_line,
)
from taskmix.report._study import MINUS, counted, number

if TYPE_CHECKING:
    from taskmix.mixtures import ForecastValue, LeftOutMetric, MixturesDocument

MOST_DOTS = 400  # of a panel; more would hide each other


def mixture_figure(document: MixturesDocument) -> Figure:
    """The advised shares as bars, with what is as good and what was tried."""
    rows = sorted(document.domains, key=lambda row: -row.share)
    names = row_names([row.domain for row in rows])
    columns: Columns = {
        "row": [names[row.domain] for row in rows],
        "name": [row.domain for row in rows],
        "series": [ADVISED] * len(rows),
        **{
            key: [rounded(getattr(row, field)) for row in rows]
            for key, field in (
                ("mean", "share"),
                ("low", "low"),
                ("high", "high"),
                ("seen_low", "seen_low"),
                ("seen_high", "seen_high"),
            )
        },
        "shown": [f"{100 * row.share:.1f} %" for row in rows],
        "range": [f"{100 * row.low:.1f} to {100 * row.high:.1f} %" for row in rows],
        "seen": [f"{100 * row.seen_low:.1f} to {100 * row.seen_high:.1f} %" for row in rows],
    }
    largest = max(max(row.share, row.high) for row in rows)
    described = ", ".join(f"{row.domain} {100 * row.share:.1f} %" for row in rows[:20])
    panel = Panel("chart-mixture", "Shares", "mixture", columns, f"Shares: {described}.")
    caption = (
        "Bars are the advised shares. A line is the range of shares that cannot be told from the best, "
        "the other shares making up for it. The grey part behind is what the runs have tried, as far as "
        "it fits."
    )
    spec = share_bars(columns["row"], min(1.0, 1.25 * largest))
    return Figure("mixture", caption, (panel,), "none", {"mixture": spec})


def compared_figure(document: MixturesDocument) -> Figure:
    """The target of the advised mixture beside others."""
    rows = document.compared
    names = row_names([row.name for row in rows])
    columns = _interval_columns(
        [names[row.name] for row in rows],
        [row.name for row in rows],
        [ADVISED if place == 0 else OTHER for place in range(len(rows))],
        [row.target for row in rows],
    )
    described = "; ".join(f"{row.name} {value_words(row.target)}" for row in rows)
    panel = Panel("chart-compared", "Expected", "compared", columns, f"{described}.")
    better = "higher" if document.larger_is_better else "lower"
    title = f"{document.target} ({better} is better)"
    spec = interval_rows(columns["row"], title, zero_line=False)
    caption = "What each mixture is expected to give, with the 90 % interval of its law."
    return Figure("compared", caption, (panel,), "none", {"compared": spec})


def left_out_figure(document: MixturesDocument) -> Figure | None:
    """Predicted against observed for runs not seen, a panel a metric."""
    panels: list[Panel] = []
    specs: dict[str, Spec] = {}
    for place, row in enumerate(document.left_out):
        values = [value for value in (*row.predicted, *row.observed) if math.isfinite(value)]
        if len(row.runs) < 2 or not values or min(values) == max(values):
            continue
        name = f"left-{place}"
        margin = 0.04 * (max(values) - min(values))
        specs[name] = predicted_against_observed(
            low=min(values) - margin,
            high=max(values) + margin,
            title=document.target if row.name == "target" else row.name,
            series="run",
            tooltip=(("run", "run"), ("shown", "observed, predicted")),
        )
        note = f"rank correlation {number(row.rank_correlation, 2)}, R² {number(row.r_squared, 2)}"
        if math.isfinite(row.coverage):
            note += f", {100 * row.coverage:.0f} % in 90 % intervals"
        described = f"{counted(len(row.runs), 'run')}: {note}."
        panels.append(Panel(f"chart-{name}", row.name, name, _dots(row), described, note))
    if not panels:
        return None
    caption = (
        "Each dot is a run, predicted by laws that were fitted without it. On the broken line a "
        "prediction is right."
    )
    return Figure("left_out", caption, tuple(panels), "none", specs)


def sensitivity_figure(document: MixturesDocument) -> Figure | None:
    """What one point more of each domain changes."""
    rows = [row for row in document.domains if row.effect is not None]
    if not rows:
        return None
    sign = -1.0 if document.larger_is_better else 1.0
    rows.sort(key=lambda row: sign * row.effect.value if row.effect is not None else 0.0)
    names = row_names([row.domain for row in rows])
    effects = [row.effect for row in rows if row.effect is not None]
    columns = _interval_columns(
        [names[row.domain] for row in rows],
        [row.domain for row in rows],
        [_verdict(each, sign) for each in effects],
        effects,
    )
    described = "; ".join(
        f"{row.domain} {value_words(effect)}"
        for row, effect in zip(rows[:20], effects, strict=False)
    )
    panel = Panel("chart-effects", "Effects", "effects", columns, f"{described}.")
    spec = interval_rows(columns["row"], f"change of {document.target}", zero_line=True)
    caption = (
        "One point (0.01) more of a domain, taken from all others in proportion, with 90 % intervals. "
        f"{'Right' if document.larger_is_better else 'Left'} of zero is better. At a best mixture most "
        "lie near zero, and domains without a share on the worse side."
    )
    return Figure("effects", caption, (panel,), "none", {"effects": spec})


def front_of_metrics(document: MixturesDocument) -> Figure | None:
    """What one metric costs of another."""
    front = document.front
    if front is None or not front.points:
        return None
    columns: Columns = {
        "series": [ADVISED] * len(front.points),
        "first": [rounded(each.first.value) for each in front.points],
        "second": [rounded(each.second.value) for each in front.points],
        "low": [rounded(each.second.low) for each in front.points],
        "high": [rounded(each.second.high) for each in front.points],
        "name": [mixture_words(each.shares) for each in front.points],
        "shown": [
            f"{value_words(each.first)}; {value_words(each.second)}" for each in front.points
        ],
    }
    panel = Panel(
        "chart-front",
        "Front",
        "front",
        columns,
        f"{counted(len(front.points), 'mixture')} between the best for {front.first} and the best for "
        f"{front.second}.",
    )
    caption = (
        "No mixture is better in one of the two without loss in the other. Hover for the shares."
    )
    specs = {"front": trade_line(front.first, front.second)}
    return Figure("front", caption, (panel,), "none", specs)


def _verdict(effect: ForecastValue, sign: float) -> str:
    if effect.low <= 0 <= effect.high:
        return UNTOLD
    return BETTER if sign * effect.value < 0 else WORSE


def value_words(value: ForecastValue, digits: int = 4) -> str:
    """A number with the ends of its interval."""
    if not math.isfinite(value.value):
        return "not known"
    words = f"{value.value:.{digits}g} ({value.low:.{digits}g} to {value.high:.{digits}g})"
    return words.replace("-", MINUS)


def mixture_words(shares: object, most: int = 8) -> str:
    """`web 62 %, code 38 %`, the largest first."""
    assert hasattr(shares, "items")
    kept = sorted(((n, s) for n, s in shares.items() if s >= 0.005), key=lambda pair: -pair[1])
    more = f", {len(kept) - most} more" if len(kept) > most else ""
    return ", ".join(f"{name} {100 * share:.0f} %" for name, share in kept[:most]) + more


def _interval_columns(
    rows: Sequence[str],
    names: Sequence[str],
    series: Sequence[str],
    values: Sequence[ForecastValue],
) -> Columns:
    return {
        "row": list(rows),
        "name": list(names),
        "series": list(series),
        "mean": [rounded(each.value) for each in values],
        "low": [rounded(each.low) for each in values],
        "high": [rounded(each.high) for each in values],
        "shown": [value_words(each) for each in values],
    }


def _dots(row: LeftOutMetric) -> Columns:
    step = max(1, -(-len(row.runs) // MOST_DOTS))
    kept = range(0, len(row.runs), step)
    return {
        "series": ["run"] * len(kept),
        "predicted": [rounded(row.predicted[place]) for place in kept],
        "mean": [rounded(row.observed[place]) for place in kept],
        "run": [row.runs[place] for place in kept],
        "shown": [f"{row.observed[place]:.4g}, {row.predicted[place]:.4g}" for place in kept],
    }

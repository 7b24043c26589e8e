"""The figures about mixtures, from the document: shares, others, predictions, effects, the front."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from taskmix.report._charts import (
    NAMED_ROW,
    Spec,
    interval_dots,
    layered,
    named_rows,
    predicted_against_observed,
    row_names,
    tooltip,
)
from taskmix.report._figures import Columns, Figure, Panel, rounded
from taskmix.report._words import MINUS, counted, number

if TYPE_CHECKING:
    from taskmix.mixtures import ForecastValue, LeftOutMetric, MixtureReport

AXIS_WORDS = 32  # characters
MOST_DOTS = 400  # of a panel; more would hide each other
ADVISED, OTHER = "advised", "other"
BETTER, WORSE, UNTOLD = "better", "worse", "cannot tell"
_COLOURS = {
    ADVISED: "var(--label-1)",
    OTHER: "var(--ink-soft)",
    BETTER: "var(--label-1)",
    WORSE: "var(--label-2)",
    UNTOLD: "var(--other)",
}
_ROW = 22  # pixels


def mixture_figure(document: MixtureReport) -> Figure:
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


def compared_figure(document: MixtureReport) -> Figure:
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


def left_out_figure(document: MixtureReport) -> Figure | None:
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
            title="",  # the panel has the name, which may be long
            series="run",
            beside={"run": "run", "shown": "observed, predicted"},
        )
        note = f"rank correlation {number(row.rank_correlation, 2)}, R² {number(row.r_squared, 2)}"
        if math.isfinite(row.coverage):
            note += f", {100 * row.coverage:.0f} % in 90 % intervals"
        described = f"{row.name}, {counted(len(row.runs), 'run')} not seen: {note}."
        panels.append(Panel(f"chart-{name}", row.name, name, _dots(row), described, note))
    if not panels:
        return None
    caption = (
        "Each dot is a run, predicted by laws that were fitted without it. On the broken line a "
        "prediction is right."
    )
    return Figure("left_out", caption, tuple(panels), "none", specs)


def sensitivity_figure(document: MixtureReport) -> Figure | None:
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


def front_of_metrics(document: MixtureReport) -> Figure | None:
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
        f"{counted(len(front.points), 'mixture')} on the front between the best for {front.first} "
        f"and the best for {front.second}.",
    )
    caption = (
        "No mixture is better in one of the two without loss in the other. Hover for the shares."
    )
    specs = {"front": trade_line(_short(front.first), _short(front.second))}
    return Figure("front", caption, (panel,), "none", specs)


def _short(name: str) -> str:
    """A name beside an axis, which is no longer than the chart is high."""
    return name if len(name) <= AXIS_WORDS else f"{name[: AXIS_WORDS - 1]}\N{HORIZONTAL ELLIPSIS}"


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


def share_bars(rows: Sequence[str], largest: float) -> Spec:
    """A bar a domain: fields `row`, `name`, `mean`, `low`, `high`, `seen_low`, `seen_high`, ..."""
    x = _axis("share", [0, largest]) | {"axis": {"tickCount": 5, "format": ".0%"}}
    where = {"y": named_rows(rows), "tooltip": _tooltip("name", "shown", "range", "seen")}
    return layered(
        [
            {
                "mark": {"type": "bar", "height": {"band": 0.86}, "opacity": 0.16, "clip": True},
                "encoding": {
                    "x": x | {"field": "seen_low"},
                    "x2": {"field": "seen_high"},
                    "color": {"value": "var(--other)"},
                    **where,
                },
            },
            {
                "mark": {"type": "bar", "height": {"band": 0.5}},
                "encoding": {"x": x | {"field": "mean"}, **where},
            },
            {
                "mark": {"type": "rule", "strokeWidth": 1.75},
                "encoding": {
                    "x": x | {"field": "low"},
                    "x2": {"field": "high"},
                    "color": {"value": "var(--ink)"},
                    **where,
                },
            },
        ],
        height=_height(rows),
        colours=_COLOURS,
    )


def interval_rows(rows: Sequence[str], x_title: str, *, zero_line: bool) -> Spec:
    """A dot with its interval for each row: fields `row`, `name`, `series`, `mean`, `low`, `high`."""
    x = _axis(x_title, None)
    where = {"y": named_rows(rows), "tooltip": _tooltip("name", "shown")}
    layers = interval_dots(x, where, zero="var(--ink)" if zero_line else "")
    return layered(layers, height=_height(rows), colours=_COLOURS)


def trade_line(first: str, second: str) -> Spec:
    """The front of two metrics: fields `first`, `second`, `low`, `high`, `name`, `shown`, `series`."""
    x, y = _axis(first, None), _axis(second, None)
    return layered(
        [
            {
                "mark": {"type": "line", "strokeWidth": 1.5},
                "encoding": {"x": x | {"field": "first"}, "y": y | {"field": "second"}},
            },
            {
                "mark": {"type": "rule", "strokeWidth": 1, "opacity": 0.6},
                "encoding": {
                    "x": x | {"field": "first"},
                    "y": y | {"field": "low"},
                    "y2": {"field": "high"},
                },
            },
            {
                "mark": {"type": "point", "filled": True, "size": 56, "opacity": 1},
                "encoding": {
                    "x": x | {"field": "first"},
                    "y": y | {"field": "second"},
                    "tooltip": _tooltip("shown", "name"),
                },
            },
        ],
        height=260,
        colours=_COLOURS,
    )


def _axis(title: str, domain: Sequence[float] | None) -> Spec:
    scale: Spec = {"zero": False, "nice": True}
    if domain is not None:
        scale["domain"] = list(domain)
    return {"type": "quantitative", "title": title, "scale": scale, "axis": {"tickCount": 4}}


def _tooltip(*fields: str) -> list[Spec]:
    words = {"name": "which", "shown": "here", "range": "as good", "seen": "in runs"}
    return tooltip(**{field: words[field] for field in fields})


def _height(rows: Sequence[str]) -> int:
    return (NAMED_ROW if any("\n" in name for name in rows) else _ROW) * max(len(rows), 2)

"""What people see of a document about mixtures: the same lines and tables in terminals and notebooks."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape

from taskmix.mixtures._learning._document import ForecastValue, MixtureReport

BAR = 20  # characters of a share of 100 %


@dataclass(frozen=True)
class MixtureLines:
    """A table of words, ready to be drawn: one of the parts that `describe_mixtures` gives."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def describe_mixtures(document: MixtureReport) -> Iterator[str | MixtureLines]:
    """Lines and tables, in the order in which they are read.

    >>> shares = np.random.default_rng(0).dirichlet([1, 1], size=8)
    >>> columns = {"web": shares[:, 0], "code": shares[:, 1]}
    >>> lessons = learn_mixtures(read_mixtures(columns, {"loss": 3 - shares[:, 1]}))
    >>> [part.title for part in describe_mixtures(lessons.document) if not isinstance(part, str)][0]
    'The mixture to train on'
    """
    yield document.answer
    yield _share_table(document)
    yield _compared_table(document)
    yield _left_out_table(document)
    if document.front is not None:
        yield _front_table(document)
    if document.carry:
        yield _carry_table(document)
    if document.next is not None:
        yield document.next.words
        if document.next.runs:
            yield _next_table(document)
    if document.predictions is not None:
        yield _prediction_table(document)
    yield from (f"- {words}" for words in document.trust)
    yield from (f"Warning: {words}" for words in document.warnings)
    yield from (f"Note: {words}" for words in document.notes)


def mixtures_html(document: MixtureReport) -> str:
    """The same for notebooks."""
    parts = [
        _html_table(part) if isinstance(part, MixtureLines) else f"<div>{escape(part)}</div>"
        for part in describe_mixtures(document)
    ]
    return f"<div>{''.join(parts)}</div>"


def percent(share: float) -> str:
    """62.0 %"""
    return f"{100 * share:.1f} %"


def _share_table(document: MixtureReport) -> MixtureLines:
    read = any(row.passes is not None for row in document.domains)
    rows = [
        (
            row.domain,
            percent(row.share) + ("*" if row.fixed else ""),
            f"{100 * row.low:.0f} to {100 * row.high:.0f} %",
            f"{100 * row.seen_low:.0f} to {100 * row.seen_high:.0f} %",
            *((_shown(row.passes, 2),) if read else ()),
            "-" if row.effect is None else _with_ends(row.effect, 2),
        )
        for row in sorted(document.domains, key=lambda row: -row.share)
    ]
    columns = ("domain", "share", "as good", "in runs")
    last = f"{document.target} with 1 point more"
    return MixtureLines(
        "The mixture to train on", (*columns, *(("passes",) if read else ()), last), tuple(rows)
    )


def _compared_table(document: MixtureReport) -> MixtureLines:
    rows = [
        (
            row.name,
            _with_ends(row.target),
            "" if place == 0 else _with_ends(row.gain, 2),
            "" if place == 0 else f"{100 * row.better:.0f} %",
        )
        for place, row in enumerate(document.compared)
    ]
    better = "higher" if document.larger_is_better else "lower"
    title = f"Expected of each mixture: {document.target} ({better} is better), 90 % intervals"
    return MixtureLines(
        title, ("mixture", "expected", "gain of the advised", "better"), tuple(rows)
    )


def _left_out_table(document: MixtureReport) -> MixtureLines:
    expected = document.compared[0].metrics
    rows = [
        (
            row.name,
            _shown(row.rank_correlation, 3),
            _shown(row.r_squared, 3),
            "-" if math.isnan(row.coverage) else f"{100 * row.coverage:.0f} %",
            _with_ends(expected[row.name]) if row.name in expected else "",
        )
        for row in document.left_out
    ]
    columns = ("metric", "rank correlation", "R²", "in 90 % interval", "expected of a run")
    return MixtureLines("Predicted against observed, runs not seen", columns, tuple(rows))


def _front_table(document: MixtureReport) -> MixtureLines:
    front = document.front
    assert front is not None
    rows = [
        (_with_ends(each.first), _with_ends(each.second), _mixture_words(each.shares))
        for each in front.points
    ]
    columns = (front.first, front.second, "mixture")
    return MixtureLines(f"What {front.first} costs of {front.second}", columns, tuple(rows))


def _carry_table(document: MixtureReport) -> MixtureLines:
    rows = [
        (
            row.name,
            f"{row.small:,.0f} to {row.large:,.0f}",
            f"{_shown(row.correlation, 2)} ({_shown(row.low, 2)} to {_shown(row.high, 2)})",
            row.verdict,
        )
        for row in document.carry or ()
    ]
    columns = ("metric", "sizes", "rank correlation", "")
    return MixtureLines("Between sizes of model", columns, tuple(rows))


def _next_table(document: MixtureReport) -> MixtureLines:
    assert document.next is not None
    rows = [
        (str(place), _mixture_words(run.shares, 12))
        for place, run in enumerate(document.next.runs, 1)
    ]
    return MixtureLines("Runs to do next", ("", "mixture"), tuple(rows))


def _prediction_table(document: MixtureReport) -> MixtureLines:
    rows = [
        (
            each.name,
            _with_ends(each.target),
            *(_with_ends(value) for value in each.metrics.values()),
        )
        for each in document.predictions or ()
    ]
    names = tuple(document.predictions[0].metrics) if document.predictions else ()
    return MixtureLines("Mixtures asked about", ("mixture", document.target, *names), tuple(rows))


def _mixture_words(shares: object, most: int = 6) -> str:
    assert isinstance(shares, dict) or hasattr(shares, "items")
    kept = sorted(((n, s) for n, s in shares.items() if s >= 0.005), key=lambda pair: -pair[1])
    more = f", {len(kept) - most} more" if len(kept) > most else ""
    return ", ".join(f"{name} {100 * share:.0f} %" for name, share in kept[:most]) + more


def _with_ends(value: ForecastValue, digits: int = 4) -> str:
    if math.isnan(value.value):
        return "-"
    return f"{value.value:.{digits}g} ({value.low:.{digits}g} to {value.high:.{digits}g})"


def _shown(value: float | None, digits: int) -> str:
    return "-" if value is None or math.isnan(value) else f"{value:.{digits}f}"


def _html_table(table: MixtureLines) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in table.columns)
    rows = "".join(
        f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in table.rows
    )
    caption = f"<caption>{escape(table.title)}</caption>"
    return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"

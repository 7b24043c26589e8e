"""The page about a mixture, from its document alone: words, tables and figures."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from taskmix.report._figures import Figure
from taskmix.report._mixtures_figures import (
    compared_figure,
    front_of_metrics,
    left_out_figure,
    mixture_figure,
    mixture_words,
    sensitivity_figure,
    value_words,
)
from taskmix.report._shell import by_name, check_page, render_page, write_whole
from taskmix.report._words import UNKNOWN, count_of, number

if TYPE_CHECKING:
    from taskmix.mixtures import MixtureReport

_SECTIONS = {
    "mixture": "Shares",
    "compared": "Against others",
    "left_out": "Runs not seen",
    "effects": "Sensitivity",
    "distance": "Extrapolated?",
    "front": "Front",
    "carry": "Between sizes",
    "next": "Next runs",
    "predictions": "Predictions",
    "metrics": "Metrics",
    "laws": "Laws",
    "about": "Notes",
}


@dataclass(frozen=True)
class PageTable:
    """Cells of a table, the first of each row being its name."""

    columns: list[str]
    rows: list[list[str]]
    wordy: bool = False  # the last column is a sentence


def mixtures_page_html(document: MixtureReport) -> str:
    """The page as text. It asks for nothing from outside and runs no script but its own.

    `taskmix mix RATIOS METRICS --page mix.html` writes it; it takes seconds.
    """
    found = (
        mixture_figure,
        compared_figure,
        left_out_figure,
        sensitivity_figure,
        front_of_metrics,
    )
    figures = by_name(figure(document) for figure in found)
    return render_page("mixtures.html.j2", _contents(document, figures), figures=figures)


def check_mixtures_page(path: Path) -> None:
    """Raises where the page cannot be written to that file, before any work is done.

    >>> from pathlib import Path
    >>> check_mixtures_page(Path("mix.html"))
    """
    check_page(path)


def write_mixtures_page(document: MixtureReport, path: Path | str) -> Path:
    """Writes the page and gives its path; `read_mixtures_document` reads a document that was kept.

    `taskmix mix RATIOS METRICS --page mix.html` does it.
    """
    check_page(Path(path))
    page = mixtures_page_html(document).encode("utf-8", "replace")
    return write_whole(Path(path), page, "the page")


def _contents(document: MixtureReport, figures: Mapping[str, Figure]) -> dict[str, Any]:
    """The document as text for the template."""
    carry, predictions, laws = _carry(document), _predictions(document), _laws(document)
    absent = {
        "left_out": "left_out" not in figures,
        "effects": "effects" not in figures,
        "front": "front" not in figures,
        "carry": carry is None,
        "next": document.next is None,
        "predictions": predictions is None,
        "laws": laws is None,
    }
    return {
        "title": f"The mixture for {document.target}",
        "answer": document.answer,
        "trust": document.trust,
        "warnings": document.warnings,
        "facts": _facts(document),
        "sections": [pair for pair in _SECTIONS.items() if not absent.get(pair[0], False)],
        "shares": _shares(document),
        "compared": _compared(document),
        "metrics": _metrics(document),
        "distance": document.distance,
        "carry": carry,
        "next_words": "" if document.next is None else document.next.words,
        "next_runs": _next(document),
        "predictions": predictions,
        "laws": laws,
        "notes": document.notes,
        "command": document.command,
        "seconds": f"{document.seconds:.1f} s",
    }


def _facts(document: MixtureReport) -> list[tuple[str, str]]:
    first = document.left_out[0]
    facts = [
        ("runs", count_of(document.runs)),
        ("domains", str(len(document.domains))),
        ("metrics", str(len(document.compared[0].metrics))),
        ("rank correlation", number(first.rank_correlation, 2)),
        ("R²", number(first.r_squared, 2)),
        ("expected regret", f"{document.regret:.2g}"),
    ]
    if document.size is not None:
        facts.append(("parameters", count_of(document.size)))
    return facts


def _shares(document: MixtureReport) -> PageTable:
    read = any(row.passes is not None for row in document.domains)
    rows = [
        [
            row.domain,
            _percent(row.share) + (" (never varied)" if row.fixed else ""),
            f"{_percent(row.low)} to {_percent(row.high)}",
            f"{_percent(row.seen_low)} to {_percent(row.seen_high)}",
            *([UNKNOWN if row.passes is None else f"{row.passes:.2f}"] if read else []),
            UNKNOWN if row.effect is None else value_words(row.effect, 2),
        ]
        for row in sorted(document.domains, key=lambda row: -row.share)
    ]
    passes = ["passes over its text"] if read else []
    columns = ["domain", "share", "as good", "in runs", *passes, "effect of 1 point more"]
    return PageTable(columns, rows)


def _compared(document: MixtureReport) -> PageTable:
    rows = [
        [
            row.name,
            value_words(row.target),
            "" if place == 0 else value_words(row.gain, 2),
            "" if place == 0 else f"{100 * row.better:.0f} %",
            mixture_words(row.shares, 5),
        ]
        for place, row in enumerate(document.compared)
    ]
    return PageTable(
        ["mixture", "expected", "gain", "advised is better", "shares"], rows, wordy=True
    )


def _metrics(document: MixtureReport) -> PageTable:
    columns = ["metric", *(row.name for row in document.compared), "noise of a run"]
    noise = {row.name: row.noise for row in document.left_out}
    rows = [
        [
            name,
            *(value_words(row.metrics[name]) for row in document.compared),
            _number(noise.get(name, math.nan)),
        ]
        for name in document.compared[0].metrics
    ]
    return PageTable(columns, rows)


def _carry(document: MixtureReport) -> PageTable | None:
    if not document.carry:
        return None
    rows = [
        [
            row.name,
            f"{count_of(row.small)} to {count_of(row.large)}",
            f"{number(row.correlation, 2)} ({number(row.low, 2)} to {number(row.high, 2)})",
            row.verdict,
        ]
        for row in document.carry
    ]
    return PageTable(["metric", "parameters", "rank correlation", ""], rows)


def _next(document: MixtureReport) -> PageTable | None:
    if document.next is None or not document.next.runs:
        return None
    rows = [
        [str(place), mixture_words(run.shares, 12), run.words]
        for place, run in enumerate(document.next.runs, 1)
    ]
    return PageTable(["run", "mixture", "why"], rows, wordy=True)


def _predictions(document: MixtureReport) -> PageTable | None:
    if not document.predictions:
        return None
    names = list(document.predictions[0].metrics)
    rows = [
        [each.name, value_words(each.target), *(value_words(each.metrics[name]) for name in names)]
        for each in document.predictions
    ]
    return PageTable(["mixture", document.target, *names], rows)


def _laws(document: MixtureReport) -> PageTable | None:
    if not document.laws:
        return None
    laws = list(dict.fromkeys(row.law for row in document.laws))
    metrics = list(dict.fromkeys(row.metric for row in document.laws))
    weights = {(row.metric, row.law): row.weight for row in document.laws}
    rows = [
        [name, *(f"{weights[name, law]:.2f}" if (name, law) in weights else "" for law in laws)]
        for name in metrics
    ]
    return PageTable(["metric", *laws], rows)


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _number(value: float) -> str:
    return f"{value:.2g}" if math.isfinite(value) else UNKNOWN

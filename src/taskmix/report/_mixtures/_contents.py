"""What the page says of mixtures in words and tables."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from taskmix.report._drawing import Figure
from taskmix.report._mixtures._figures import mixture_words, value_words
from taskmix.report._study import UNKNOWN, count_of, number

if TYPE_CHECKING:
    from taskmix.mixtures import MixturesDocument

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


@dataclass(frozen=True, kw_only=True)
class MixturesContents:
    """Everything the template shows."""

    title: str
    answer: str
    trust: list[str]
    warnings: list[str]
    facts: list[tuple[str, str]]
    sections: list[tuple[str, str]]
    shares: PageTable
    compared: PageTable
    metrics: PageTable
    distance: str
    carry: PageTable | None
    next_words: str
    next_runs: PageTable | None
    predictions: PageTable | None
    laws: PageTable | None
    notes: list[str]
    command: str
    seconds: str


def mixtures_contents(
    document: MixturesDocument, figures: Mapping[str, Figure]
) -> MixturesContents:
    """The document as text for the template."""
    carry, runs, predictions, laws = (
        _carry(document),
        _next(document),
        _predictions(document),
        _laws(document),
    )
    absent = {
        "left_out": "left_out" not in figures,
        "effects": "effects" not in figures,
        "front": "front" not in figures,
        "carry": carry is None,
        "next": document.next is None,
        "predictions": predictions is None,
        "laws": laws is None,
    }
    return MixturesContents(
        title=f"The mixture for {document.target}",
        answer=document.answer,
        trust=list(document.trust),
        warnings=list(document.warnings),
        facts=_facts(document),
        sections=[pair for pair in _SECTIONS.items() if not absent.get(pair[0], False)],
        shares=_shares(document),
        compared=_compared(document),
        metrics=_metrics(document),
        distance=document.distance,
        carry=carry,
        next_words="" if document.next is None else document.next.words,
        next_runs=runs,
        predictions=predictions,
        laws=laws,
        notes=list(document.notes),
        command=document.command,
        seconds=f"{document.seconds:.1f} s",
    )


def _facts(document: MixturesDocument) -> list[tuple[str, str]]:
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


def _shares(document: MixturesDocument) -> PageTable:
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


def _compared(document: MixturesDocument) -> PageTable:
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


def _metrics(document: MixturesDocument) -> PageTable:
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


def _carry(document: MixturesDocument) -> PageTable | None:
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


def _next(document: MixturesDocument) -> PageTable | None:
    if document.next is None or not document.next.runs:
        return None
    rows = [
        [str(place), mixture_words(run.shares, 12), run.words]
        for place, run in enumerate(document.next.runs, 1)
    ]
    return PageTable(["run", "mixture", "why"], rows, wordy=True)


def _predictions(document: MixturesDocument) -> PageTable | None:
    if not document.predictions:
        return None
    names = list(document.predictions[0].metrics)
    rows = [
        [each.name, value_words(each.target), *(value_words(each.metrics[name]) for name in names)]
        for each in document.predictions
    ]
    return PageTable(["mixture", document.target, *names], rows)


def _laws(document: MixturesDocument) -> PageTable | None:
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

"""The race as rows of words: terminal, notebook and page show the same ones."""

from __future__ import annotations

import math
from dataclasses import dataclass

from taskmix.plans._advice import AdviceDocument, CandidateRow


@dataclass(frozen=True, kw_only=True)
class RaceRow:
    """A candidate as people read it; `race_rows` makes them."""

    name: str
    words: str
    score: str
    behind: str  # nothing for the leader
    interval: str  # of `behind`; nothing for the leader, and where one seed gives none
    seeds: str
    cost: str = ""  # of a seed, in batches; nothing where it is not known
    seconds: str = ""  # of a seed's steps
    standing: str  # leads, may be the best, or out
    is_open: bool
    is_chosen: bool


def race_rows(document: AdviceDocument) -> tuple[RaceRow, ...]:
    """A row for each candidate, the leader first.

    >>> from taskmix.numerics import Interval
    >>> rows = [
    ...     CandidateRow(name=name, words="", seeds=2, dev=0.9 - gap, open=gap < 0.05,
    ...         behind=Interval(gap, gap - 0.05, gap + 0.05, n=2))
    ...     for name, gap in (("uniform", 0.0), ("single", 0.125))]
    >>> document = AdviceDocument(
    ...     title="", seconds=0.0, level=0.9, lines=(), chosen="uniform", judged=("a",),
    ...     plan=PlanSummary(tasks=("a",), probabilities=(1.0,), groups=(("a",),)),
    ...     batches_of_a_run=1, batches=2, batches_spent=2, candidates=tuple(rows))
    >>> [(row.name, row.behind, row.interval, row.standing) for row in race_rows(document)]
    [('uniform', '', '', 'leads'), ('single', '0.1250', '0.0750 to 0.1750', 'out')]
    """
    return tuple(_row(document, row) for row in document.candidates)


def _row(document: AdviceDocument, row: CandidateRow) -> RaceRow:
    leads, behind = row is document.leader, row.behind
    known = not leads and math.isfinite(behind.low) and math.isfinite(behind.high)
    return RaceRow(
        name=row.name,
        words=row.words,
        score=_number(row.dev),
        behind="" if leads else _number(behind.mean),
        interval=f"{_number(behind.low)} to {_number(behind.high)}" if known else "",
        seeds=str(row.seeds),
        cost=f"{row.cost:,.0f}" if math.isfinite(row.cost) else "",
        seconds=_seconds(row.seconds),
        standing="leads" if leads else "may be the best" if row.open else "out",
        is_open=row.open,
        is_chosen=row.name == document.chosen,
    )


def _seconds(value: float) -> str:
    if not math.isfinite(value):
        return ""
    return f"{value:.1f}" if value < 10 else f"{value:,.0f}"


def _number(value: float) -> str:
    return f"{value:.4f}" if math.isfinite(value) else "-"

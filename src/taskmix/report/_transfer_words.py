"""What the page says of transfer in words and tables: the answers, the map and the groups.

The map of transfer, as a table: sources down, targets across, tasks of a group side by side.

A table scrolls in a box of its own, has the names in full and can be heard; a drawing has none of that.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from taskmix.report._words import (
    count_of,
    counted,
    decimals_for,
    listed,
    number,
    signed,
    spread_words,
)

if TYPE_CHECKING:
    from taskmix.transfer import GroupAnswer, SourceRow, TargetAnswer, TargetRow, TransferDocument


_NAMED = 8  # tasks of a group, in the header
_SHOWN_ANSWERS = 12  # of targets, until the reader asks for all


@dataclass(frozen=True, kw_only=True)
class TransferContents:
    """Everything the templates show of transfer."""

    context: str
    first: str
    lines: list[str]
    facts: list[tuple[str, str]]
    answers: list[tuple[TargetAnswer, str]]  # with what was measured; first where something is told
    shown_answers: int
    map: TransferMap
    groups: tuple[GroupAnswer, ...]


def transfer_contents(document: TransferDocument | None) -> TransferContents | None:
    """Transfer in words and tables; None where the study has none."""
    if document is None:
        return None
    from taskmix.transfer import transfer_answers  # loaded only where there is transfer

    answers = transfer_answers(document)
    return TransferContents(
        context=f"{_context(document)} {answers.basis}",
        first=answers.first,
        lines=[*answers.further, *_lines(document, answers.groups)],
        facts=_facts(document),
        answers=[
            (answer, _measured(target))
            for answer, target in sorted(
                zip(answers.targets, document.targets, strict=True),
                key=lambda pair: not pair[0].is_told,
            )
        ],
        shown_answers=_SHOWN_ANSWERS,
        map=transfer_map(document),
        groups=answers.groups,
    )


def _context(document: TransferDocument) -> str:
    words = (
        f"{counted(document.runs, 'run')} of subsets of {counted(len(document.tasks), 'task')} were "
        f"trained. A gain is what a source changes of the target\N{RIGHT SINGLE QUOTATION MARK}s "
        f"{document.split} {document.measure}, against training it alone."
    )
    if document.failed:
        left = "is" if document.failed == 1 else "are"
        words += f" {counted(document.failed, 'run')} failed and {left} left out."
    return words


def _facts(document: TransferDocument) -> list[tuple[str, str]]:
    counts = {"task": len(document.tasks), "target": len(document.targets), "run": document.runs}
    return [(noun if n == 1 else f"{noun}s", count_of(n)) for noun, n in counts.items()]


def _lines(document: TransferDocument, groups: tuple[GroupAnswer, ...]) -> list[str]:
    """What to do: the groups, or what was measured with the sources chosen for one target."""
    if groups:
        together = [_added(group.tasks) for group in groups if len(group.tasks) > 1]
        alone = [group.tasks[0] for group in groups if len(group.tasks) == 1]
        parts = [f"Train together: {'; '.join(together)}."] if together else []
        return [*parts, f"Train alone: {listed(alone, _NAMED)}."] if alone else parts
    return [words for target in document.targets[:1] if (words := _measured(target))]


def _added(names: Sequence[str]) -> str:
    """`a + b + c`; the section about groups has all names of a long list."""
    if len(names) <= _NAMED:
        return " + ".join(names)
    return f"{' + '.join(names[:_NAMED])} + {len(names) - _NAMED} more"


def _measured(target: TargetRow) -> str:
    """The best of the selections that were trained."""
    if target.measured is None:
        return ""
    names = ", ".join(target.chosen) or "no other task"
    found, decimals = target.measured, 3
    ends = (
        f" ({number(found.low, decimals)} to {number(found.high, decimals)})" if found.n > 1 else ""
    )
    return (
        f"The best selection that was trained: with {names}, {number(found.value, decimals)}{ends}; "
        f"alone {number(target.alone, decimals)}."
    )


SHADES = 5  # of a colour, the strongest for the largest share of the outcome alone
_MOST_NUMBERED = 14  # tasks; with more, cells are too small for numbers
_KINDS = {"helps": "helps", "harms": "harms", "cannot tell": "untold"}  # the others are small


@dataclass(frozen=True)
class MapCell:
    """What a source does to a target."""

    kind: str  # helps, harms, small or untold; nothing where source and target are the same
    shade: int
    shown: str
    title: str  # all of it in words, for a pointer that rests here


@dataclass(frozen=True)
class MapRow:
    """A source and what it does to each target."""

    source: str
    cells: list[MapCell]
    begins_group: bool


@dataclass(frozen=True, kw_only=True)
class TransferMap:
    """Rows of sources; columns of targets, with the outcome of each alone."""

    targets: list[tuple[str, str, bool]]  # name, its outcome alone, whether it begins a group
    rows: list[MapRow]
    numbered: bool  # whether cells have room for numbers
    upright: bool  # whether names of targets stand on end
    caption: str


def transfer_map(document: TransferDocument) -> TransferMap:
    """The map, from the verdicts of the document."""
    grouped = [name for group in document.groups for name in group]
    order = grouped or list(document.tasks)
    begins = {group[0] for group in document.groups[1:]} if len(document.groups) > 1 else set()
    targets = sorted(document.targets, key=lambda target: _place(order, target.target))
    rows = {
        (target.target, row.source): (target, row) for target in targets for row in target.sources
    }
    sources = [name for name in order if any(source == name for _, source in rows)]
    numbered = max(len(sources), len(targets)) <= _MOST_NUMBERED
    strongest = max((_strength(*pair) for pair in rows.values()), default=0.0)
    decimals = decimals_for(row.gain for _, row in rows.values())

    def cell(target: TargetRow, source: str) -> MapCell:
        found = rows.get((target.target, source))
        return _cell(found, strongest, decimals, numbered=numbered)

    alone = decimals_for(target.alone for target in targets)
    return TransferMap(
        targets=[
            (target.target, number(target.alone, alone), target.target in begins)
            for target in targets
        ],
        rows=[
            MapRow(name, [cell(target, name) for target in targets], name in begins)
            for name in sources
        ],
        numbered=numbered,
        upright=len(targets) > 5,
        caption=_caption(document, numbered=numbered),
    )


def _place(order: Sequence[str], name: str) -> int:
    return order.index(name) if name in order else len(order)


def _cell(
    found: tuple[TargetRow, SourceRow] | None, strongest: float, decimals: int, *, numbered: bool
) -> MapCell:
    if found is None:
        return MapCell("", 0, "", "")
    target, row = found
    share = _strength(target, row) / strongest if strongest > 0 else 0.0
    told = row.verdict in ("helps", "harms")
    shown = signed(row.gain, decimals) + ("?" if row.verdict == "cannot tell" else "")
    spread = spread_words(row.gain, row.low, row.high, decimals)
    title = f"{row.source} {_VERBS[row.verdict].format(target.target)}: {spread}"
    return MapCell(
        kind=_KINDS.get(row.verdict, "small"),
        # The root, so that small shares differ as well.
        shade=max(1, math.ceil(SHADES * math.sqrt(share))) if told else 0,
        shown=shown if numbered else {"helps": "+", "harms": "\N{MINUS SIGN}"}.get(row.verdict, ""),
        # Of many tasks most pairs are untold, and so many titles would be most of the page.
        title=title if told or numbered else "",
    )


_VERBS: Mapping[str, str] = {
    "helps": "helps {}",
    "harms": "hurts {}",
    "as any other": "changes {} as any other task does",
    "negligible": "makes no difference to {}",
    "cannot tell": "cannot be told of {}",
}


def _strength(target: TargetRow, row: SourceRow) -> float:
    alone = abs(target.alone)
    gain = abs(row.gain) / (alone if alone > 0 else 1.0)
    return gain if math.isfinite(gain) else 0.0


def _caption(document: TransferDocument, *, numbered: bool) -> str:
    words = (
        f"Gains in {document.split} {document.measure}: above zero is better. Blue helps and orange "
        "hurts, the stronger the deeper, as a share of the outcome alone. "
    )
    words += (
        "A broken outline and a question mark: cannot be told from zero (95 % intervals)."
        if numbered
        else "An empty cell cannot be told from zero (95 % intervals)."
    )
    if len(document.groups) > 1:
        words += " Thick lines part the groups."
    return words

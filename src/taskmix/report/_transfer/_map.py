"""The map of transfer, as a table: sources down, targets across, tasks of a group side by side.

A table scrolls in a box of its own, has the names in full and can be heard; a drawing has none of that.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from taskmix.report._study import decimals_for, number, signed, spread_words

if TYPE_CHECKING:
    from taskmix.transfer import SourceRow, TargetRow, TransferDocument

SHADES = 5  # of a colour, the strongest for the largest share of the outcome alone
_MOST_NUMBERED = 14  # tasks; with more, cells are too small for numbers
_KINDS = {"helps": "helps", "harms": "harms", "negligible": "small", "cannot tell": "untold"}


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
        kind=_KINDS[row.verdict],
        # The root, so that small shares differ as well.
        shade=max(1, math.ceil(SHADES * math.sqrt(share))) if told else 0,
        shown=shown if numbered else {"helps": "+", "harms": "\N{MINUS SIGN}"}.get(row.verdict, ""),
        # Of many tasks most pairs are untold, and so many titles would be most of the page.
        title=title if told or numbered else "",
    )


_VERBS: Mapping[str, str] = {
    "helps": "helps {}",
    "harms": "hurts {}",
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

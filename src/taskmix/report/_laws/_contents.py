"""What the page says of laws in words and tables."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from taskmix.report._drawing import Figure
from taskmix.report._laws._figures import point_words, root_words
from taskmix.report._study import MINUS, UNKNOWN, counted, listed, number

if TYPE_CHECKING:
    from taskmix.laws import LawsDocument, LawTable

_SECTIONS = {
    "curves": "Curves",
    "front": "Front",
    "alternatives": "Alternatives",
    "observed": "Rows",
    "constants": "Constants",
    "groups": "Groups",
    "given": "Given formulas",
    "about": "Notes",
}


@dataclass(frozen=True)
class Alternative:
    """A law of the front: what it is, how far it was off, and what it foretells."""

    formula: str
    signs: str
    r_squared: str
    held_out: str
    left_out: str
    foretold: list[str]  # one a far end
    chosen: bool
    disqualified: str  # why it should not be used; nothing where it may be


@dataclass(frozen=True, kw_only=True)
class LawsContents:
    """Everything the template shows."""

    title: str
    formula: str
    first: str
    lines: list[str]
    warnings: list[str]
    facts: list[tuple[str, str]]
    sections: list[tuple[str, str]]
    far_ends: list[str]  # the points, as headings of columns
    alternatives: list[Alternative]
    disagreement: str  # between the laws, at the far ends
    stack: list[
        tuple[str, str]
    ]  # weight and formula of laws that cannot be told from the chosen one
    constants: list[tuple[str, str, str]]  # value, interval, and that of resampled tables
    groups: list[tuple[str, str, str]]  # name, rows, formula
    shared: list[tuple[str, str]]  # the constants' means over groups, and whose they are
    given: LawTable | None
    left_out: str
    notes: list[str]
    command: str
    seconds: str


def laws_contents(document: LawsDocument, figures: Mapping[str, Figure]) -> LawsContents:
    """The document as text for the template."""
    picture = document.picture
    warnings = list(picture.warnings) if picture is not None else []
    for answer in (document.prediction, document.gain):
        if answer is not None and answer.warning and answer.warning not in warnings:
            warnings.append(answer.warning)
    groups = [(row.group, f"{row.rows:,}", row.formula) for row in document.groups or ()]
    given = _given(document)
    absent = {
        "curves": "curves" not in figures,
        "front": "front" not in figures,
        "observed": "observed" not in figures,
        "constants": not document.law.constants,
        "groups": not groups,
        "given": given is None,
    }
    return LawsContents(
        title=f"{document.target} by {listed(document.inputs, 6)}",
        formula=document.law.formula,
        first=_first(document),
        lines=_lines(document),
        warnings=warnings,
        facts=_facts(document),
        sections=[pair for pair in _SECTIONS.items() if not absent.get(pair[0], False)],
        far_ends=[point_words({each.input: each.at[each.input]}) for each in picture.far_ends]
        if picture
        else [],
        alternatives=_alternatives(document),
        disagreement=_disagreement(document),
        stack=[(f"{row.weight:.2f}", row.formula) for row in document.stack or ()],
        constants=_constants(document),
        groups=groups,
        shared=_shared(document),
        given=given,
        left_out=(
            f"Beyond: the {counted(document.left_out.rows, 'row')} with the largest "
            f"{document.left_out.input}, with constants fitted to the others."
        ),
        notes=list(document.notes),
        command=document.command,
        seconds=f"{document.seconds:.1f} s",
    )


def _chosen_place(document: LawsDocument) -> int:
    return next((place for place, row in enumerate(document.front) if row.chosen), 0)


def _first(document: LawsDocument) -> str:
    """How well the law holds, on rows it has not seen and beyond them."""
    row = document.front[_chosen_place(document)]
    words = f"The law explains {row.held_out_r2:.1%} of the variance of rows that were held out"
    far = row.left_out_relative
    if not math.isfinite(row.held_out_r2):
        words = "How well the law holds on rows that were held out is not known"
    if math.isfinite(far):
        words += f", and beyond a range that was left out it was off by {far:.1%}"
    return f"{words}."


def _lines(document: LawsDocument) -> list[str]:
    law = document.law
    rates = [
        f"constant in {name}" if rate == "constant" else f"like {rate} in {name}"
        for name, rate in law.growth.items()
        if rate
    ]
    lines = [f"For large values it is {listed(rates, 6)}."] if rates else []
    unused = [name for name in document.inputs if name not in law.growth]
    if unused:
        lines.append(f"It does not depend on {listed(unused, 6)}.")
    if (found := document.prediction) is not None:
        ends = f"{found.low:.4g} to {found.high:.4g}"
        lines.append(f"At {point_words(found.at)}: {found.value:.4g} ({ends}).")
    if (found := document.stack_prediction) is not None:
        ends = f"{found.low:.4g} to {found.high:.4g}"
        lines.append(f"The mean of tied laws there: {found.value:.4g} ({ends}).")
    if (gain := document.gain) is not None:
        ends = f"{gain.low:+.4g} to {gain.high:+.4g}"
        lines.append(f"A change to {point_words(gain.to)} brings {gain.value:+.4g} ({ends}).")
    if words := document.readable_words:
        lines.append(f"{words}.")
    if document.next_runs is not None:
        lines.append(document.next_runs.words)
    return [line.replace("-", MINUS) if "(" in line else line for line in lines]


def _facts(document: LawsDocument) -> list[tuple[str, str]]:
    row = document.front[_chosen_place(document)]
    return [
        ("rows", f"{document.rows:,}".replace(",", "\N{THIN SPACE}")),
        ("held-out error", root_words(row.held_out_mse)),
        ("error beyond", root_words(row.left_out_mse)),
        ("signs", str(row.complexity)),
        ("laws on the front", str(len(document.front))),
    ]


def _alternatives(document: LawsDocument) -> list[Alternative]:
    picture = document.picture
    ends = picture.far_ends if picture is not None else ()
    return [
        Alternative(
            formula=row.formula,
            signs=str(row.complexity),
            r_squared=number(row.held_out_r2, 4) if math.isfinite(row.held_out_r2) else UNKNOWN,
            held_out=root_words(row.held_out_mse),
            left_out=root_words(row.left_out_mse),
            foretold=[_number(end.values[place]) for end in ends],
            chosen=row.chosen,
            disqualified=row.disqualified or "",
        )
        for place, row in enumerate(document.front)
    ]


def _disagreement(document: LawsDocument) -> str:
    """How far laws that fit nearly as well differ where nothing was measured."""
    picture = document.picture
    if picture is None or len(document.front) < 2:
        return ""
    chosen = document.front[_chosen_place(document)]
    near = [
        place
        for place, row in enumerate(document.front)
        if row.held_out_mse <= 1.2 * chosen.held_out_mse
    ]
    words = []
    for end in picture.far_ends:
        values = [end.values[place] for place in near if math.isfinite(end.values[place])]
        if len(values) > 1:
            words.append(
                f"{min(values):.4g} to {max(values):.4g} at {end.input} = {end.at[end.input]:.6g}"
            )
    if not words:
        return ""
    return (
        f"The {len(near)} laws whose held-out error is within 10 % of that of the chosen one foretell "
        f"{listed(words, 6)}."
    )


def _constants(document: LawsDocument) -> list[tuple[str, str, str]]:
    drawn = document.bootstrap or (None,) * len(document.law.constants)
    return [
        (
            _number(each.value, 5),
            f"{_number(each.low)} to {_number(each.high)}",
            f"{_number(also.low)} to {_number(also.high)}" if also is not None else "",
        )
        for each, also in zip(document.law.constants, drawn, strict=True)
    ]


def _shared(document: LawsDocument) -> list[tuple[str, str]]:
    """Each constant's mean over groups, and whether all groups share it."""
    found = []
    for row in document.shared or ():
        words = "the same in all"
        if not row.shared:
            kind = "by factors, " if row.by_factor else ""
            words = f"of each {' and '.join(row.by)} ({kind}standard deviation {row.between:.3g})"
        found.append((_number(row.value, 5), words))
    return found


def _given(document: LawsDocument) -> LawTable | None:
    """The formulas that were to be judged, as the terminal shows them."""
    if document.comparisons is None:
        return None
    from taskmix.laws import LawTable, describe_laws

    tables = [part for part in describe_laws(document) if isinstance(part, LawTable)]
    return tables[-1]


def _number(value: float, digits: int = 4) -> str:
    if not math.isfinite(value):
        return UNKNOWN
    return f"{value:.{digits}g}".replace("-", MINUS)

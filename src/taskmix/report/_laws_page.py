"""The page of a law: its formula, its curves beyond the data, and the alternatives."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from taskmix.report._figures import Figure
from taskmix.report._laws_figures import (
    curve_figure_of_laws,
    front_figure,
    observed_figure,
    point_words,
    root_words,
)
from taskmix.report._shell import by_name, check_page, render_page, write_whole
from taskmix.report._words import MINUS, UNKNOWN, counted, listed, number

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


def laws_contents(document: LawsDocument, figures: Mapping[str, Figure]) -> dict[str, Any]:
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
    return {
        "title": f"{document.target} by {listed(document.inputs, 6)}",
        "formula": document.law.formula,
        "first": _first(document),
        "lines": _lines(document),
        "warnings": warnings,
        "facts": _facts(document),
        "sections": [pair for pair in _SECTIONS.items() if not absent.get(pair[0], False)],
        "far_ends": [point_words({each.input: each.at[each.input]}) for each in picture.far_ends]
        if picture
        else [],
        "alternatives": _alternatives(document),
        "disagreement": _disagreement(document),
        "stack": [(f"{row.weight:.2f}", row.formula) for row in document.stack or ()],
        "constants": _constants(document),
        "groups": groups,
        "shared": _shared(document),
        "given": given,
        "left_out": (
            f"Beyond: the {counted(document.left_out.rows, 'row')} with the largest "
            f"{document.left_out.input}, with constants fitted to the others."
        ),
        "notes": list(document.notes),
        "command": document.command,
        "seconds": f"{document.seconds:.1f} s",
    }


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


def _alternatives(document: LawsDocument) -> list[dict[str, Any]]:
    picture = document.picture
    ends = picture.far_ends if picture is not None else ()
    return [
        {
            "formula": row.formula,
            "signs": str(row.complexity),
            "r_squared": number(row.held_out_r2, 4) if math.isfinite(row.held_out_r2) else UNKNOWN,
            "held_out": root_words(row.held_out_mse),
            "left_out": root_words(row.left_out_mse),
            "foretold": [_number(end.values[place]) for end in ends],
            "chosen": row.chosen,
            "disqualified": row.disqualified or "",
        }
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


def laws_page_html(document: LawsDocument) -> str:
    """The page as text. It asks for nothing from outside and runs no script but its own.

    `taskmix laws TABLE --page laws.html` writes it; it takes seconds.
    """
    found = (curve_figure_of_laws, front_figure, observed_figure)
    figures = by_name(figure(document) for figure in found)
    return render_page("laws.html.j2", laws_contents(document, figures), figures=figures)


def check_laws_page(path: Path) -> None:
    """Raises where the page cannot be written to that file, before any work is done.

    >>> from pathlib import Path
    >>> check_laws_page(Path("laws.html"))
    """
    check_page(path)


def write_laws_page(document: LawsDocument, path: Path | str) -> Path:
    """Writes the page of a law and gives its path; `read_laws` reads a document that was kept.

    `taskmix laws TABLE --page laws.html` does it.
    """
    check_page(Path(path))
    page = laws_page_html(document).encode("utf-8", "replace")
    return write_whole(Path(path), page, "the page")

"""What people see of a laws document: the same lines and tables in a terminal and in a notebook."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from html import escape

from taskmix.laws._compare import FormulaComparison
from taskmix.laws._document import GainRow, LawsDocument, PredictionRow
from taskmix.laws._rows import FrontRow

LACKS_FIT = 0.01  # probability below which a note has told of it


@dataclass(frozen=True)
class LawTable:
    """A table of words, ready to be drawn: one of the parts that `describe_laws` gives."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    formula: int  # the column that may be folded; those beside it are short


def describe_laws(document: LawsDocument) -> Iterator[str | LawTable]:
    """Lines and tables, in the order in which they are read.

    >>> n = np.arange(1.0, 21.0)
    >>> model = LawRegressor(enough=0.99)
    >>> found = learn_laws({"n": n, "f1": 3 * n}, target="f1", inputs=["n"], model=model)
    >>> table, law, *_ = describe_laws(found.document)
    >>> table.columns, law
    (('signs', 'f1 =', 'R²', 'MSE', 'beyond', 'ranges'), 'Law: f1 = 3*n')
    """
    yield from document.notes
    yield _front_table(document)
    yield from _law_lines(document)
    if document.comparisons is not None:
        yield _comparison_table(document.comparisons)
    yield from _answer_lines(document)


def laws_html(document: LawsDocument) -> str:
    """The same for notebooks."""
    parts = [
        _html_table(part) if isinstance(part, LawTable) else f"<div>{escape(part)}</div>"
        for part in describe_laws(document)
    ]
    return f"<div>{''.join(parts)}</div>"


def _front_table(document: LawsDocument) -> LawTable:
    """The front; an arrow points at the chosen law."""
    title = (
        "Mean squares on held-out rows, over folds where asked for, and on the largest "
        f"{document.left_out.input} with constants from the other rows (beyond)"
    )
    has_folds = any(not math.isnan(row.cross_mse) for row in document.front)
    has_ranges = bool(document.ranges)
    if document.ranges:
        title += f"; typically over {len(document.ranges)} ranges left out in turn (ranges)"
    rows = [
        (
            str(row.complexity),
            ("→ " if row.chosen else "  ") + row.formula + _reason(row),
            _shown(row.held_out_r2),
            _shown(row.held_out_mse),
            *((_shown(row.cross_mse),) if has_folds else ()),
            _shown(row.left_out_mse),
            *((_shown(row.ranges_mse),) if has_ranges else ()),
        )
        for row in document.front
    ]
    folds = ("folds",) if has_folds else ()
    ranges = ("ranges",) if has_ranges else ()
    columns = ("signs", f"{document.target} =", "R²", "MSE", *folds, "beyond", *ranges)
    return LawTable(title, columns, tuple(rows), formula=1)


def _reason(row: FrontRow) -> str:
    return f" [disqualified: {row.disqualified}]" if row.disqualified else ""


def _comparison_table(comparisons: tuple[FormulaComparison, ...]) -> LawTable:
    """The given formulas on the same rows."""
    rows = [
        (
            row.formula if row.name.startswith("given") else f"{row.name}: {row.formula}",
            _shown(row.as_given),
            _shown(row.rescaled),
            _shown(row.refitted),
            _shown(row.refitted_r2),
        )
        for row in comparisons
    ]
    columns = ("formula", "MSE as given", "rescaled", "refitted", "R²")
    return LawTable("Given formulas", columns, tuple(rows), formula=0)


def _law_lines(document: LawsDocument) -> list[str]:
    """The chosen law, its constants and how it grows."""
    law = document.law
    lines = [f"Law: {law.formula}"]
    for place, constant in enumerate(law.constants):
        drawn = document.bootstrap[place] if document.bootstrap is not None else None
        also = f"; bootstrap {drawn.low:.4g} to {drawn.high:.4g}" if drawn else ""
        lines.append(f"  {constant.value:.5g} ({constant.low:.4g} to {constant.high:.4g}{also})")
    grows = ", ".join(f"{name}: {rate or 'not known'}" for name, rate in law.growth.items())
    if grows:
        lines.append(f"For large values it grows like {grows}.")
    return [*lines, words] if (words := document.readable_words) else lines


def _answer_lines(document: LawsDocument) -> list[str]:
    """What was asked of the law: its groups, a prediction, a gain."""
    lines = group_lines(document)
    asked = [document.prediction] if document.prediction is not None else []
    for row in document.target_predictions or asked:
        value = f"{row.value:.4g} ({_ends(row)})"
        lines.append(f"At {_point(row.at, row.group)}: {value}. {row.warning}".strip())
    if document.stack:
        lines.append(
            "Laws that cannot be distinguished from it, weighted by their errors beyond the ranges:"
        )
        lines += [f"  {row.weight:.2f} {row.formula}" for row in document.stack]
        further = (document.tied or ())[len(document.stack) :]
        if further:
            lines.append(f"Nor can these: {'; '.join(further)}.")
    if (found := document.stack_prediction) is not None:
        lines.append(f"Their mean at {_point(found.at)}: {found.value:.4g} ({_ends(found)}).")
    if (gain := document.gain) is not None:
        lines.append(
            f"Change to {_point(gain.to)}: {gain.value:+.4g} ({_ends(gain)}). {gain.warning}".strip()
        )
    if document.next_runs is not None:
        lines.append(document.next_runs.words)
    if (same := document.lack_of_fit) is not None and same.probability >= LACKS_FIT:
        lines.append(
            f"Rows with equal inputs deviate by {same.deviation:.4g}; the law misses no more than that "
            f"explains (lack of fit: p = {same.probability:.2g})."
        )
    noise = f"{document.noise} noise" + (", Huber's loss" if document.loss == "huber" else "")
    noise += f", weights from {document.weights}" if document.weights else ""
    return [*lines, f"{document.rows} rows, {noise}, {document.seconds:.1f} s."]


def _shown(value: float | None) -> str:
    """Four digits; a dash where a number is not known."""
    return "-" if value is None or math.isnan(value) else f"{value:.4g}"


def group_lines(document: LawsDocument) -> list[str]:
    """Which constants groups share, and each group's law."""
    lines = [f"Constants over {len(document.groups or ())} groups:"] if document.shared else []
    for row in document.shared or ():
        words = "the same in all"
        if not row.shared:
            kind = "by factors, " if row.by_factor else ""
            words = f"of each {' and '.join(row.by)}, {kind}standard deviation {row.between:.3g}"
        lines.append(f"  {row.value:.5g}: {words}")
    return lines + [
        f"  {row.group} ({row.rows} rows): {row.formula}" for row in document.groups or ()
    ]


def _point(point: Mapping[str, float], group: Mapping[str, str] | None = None) -> str:
    named = [f"{name} = {value}" for name, value in (group or {}).items()]
    return ", ".join([*named, *(f"{name} = {value:g}" for name, value in point.items())])


def _ends(row: PredictionRow | GainRow) -> str:
    return f"{row.low:.4g} to {row.high:.4g}"


def _html_table(table: LawTable) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in table.columns)
    rows = "".join(
        f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in table.rows
    )
    caption = f"<caption>{escape(table.title)}</caption>"
    return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"

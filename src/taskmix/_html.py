"""What notebooks show of a result: words and small tables. Names come from files, so all is escaped."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

from taskmix.errors import printable

SHOWN = 30  # rows of a table; a notebook is not the place for thousands


def html_lines(lines: Sequence[str]) -> str:
    """Sentences as a list."""
    return f"<ul>{''.join(f'<li>{_text(line)}</li>' for line in lines)}</ul>"


def html_table(rows: Sequence[Mapping[str, object]], *, caption: str = "") -> str:
    """Rows that have the same keys as a table, the keys its header."""
    if not rows:
        return f"<p>{_text(caption)}</p>" if caption else ""
    head = "".join(f"<th>{_text(name)}</th>" for name in rows[0])
    body = "".join(
        "<tr>" + "".join(f"<td>{_cell(value)}</td>" for value in row.values()) + "</tr>"
        for row in rows[:SHOWN]
    )
    more = f"<p>and {len(rows) - SHOWN:,} more rows</p>" if len(rows) > SHOWN else ""
    title = f"<caption>{_text(caption)}</caption>" if caption else ""
    return f"<table>{title}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def _cell(value: object) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return _text(f"{value:.4g}" if isinstance(value, float) else str(value))


def _text(words: str) -> str:
    return escape(printable(words))

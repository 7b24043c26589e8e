"""Text that a spreadsheet would compute: names and labels come from files, and may be anyone's."""

from __future__ import annotations

import re

_SIGNS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")  # noqa: RUF001 - wide ones too
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def guard_formula(text: str) -> str:
    """The text as a cell of CSV: an apostrophe before what begins as a formula does makes it a text.

    >>> guard_formula("=1+1"), guard_formula("-2"), guard_formula("web")
    ("'=1+1", '-2', 'web')
    """
    return f"'{text}" if text.startswith(_SIGNS) and not _NUMBER.fullmatch(text) else text


def unguard_formula(text: str) -> str:
    """The text that was meant by such a cell.

    >>> unguard_formula("'=1+1"), unguard_formula("'tis")
    ('=1+1', "'tis")
    """
    return text[1:] if text[:1] == "'" and guard_formula(text[1:]) == text else text

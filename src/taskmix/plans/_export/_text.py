"""What the written files have in common: who wrote them, numbers, and words in quotes."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

import numpy as np

MARK = "# Written by `taskmix plan export`"  # how a file of ours is known again
_UNPRINTED = re.compile(
    "[\x7f-\x9f\u2028\u2029\ufeff\ud800-\udfff]"
)  # YAML takes none of them as it is


def header(trainer: str, *lines: str) -> list[str]:
    """The first lines of a file, as comments of Python and YAML alike."""
    return [f"{MARK} for {trainer}.", *(f"# {line}" for line in lines)]


def plain_number(value: float) -> str:
    """All digits and no exponent: YAML reads `1e-05` as a word."""
    return str(np.format_float_positional(value, trim="0"))


def in_quotes(words: str) -> str:
    """In double quotes, as JSON and YAML both read them."""
    return _UNPRINTED.sub(
        lambda found: f"\\u{ord(found[0]):04x}", json.dumps(words, ensure_ascii=False)
    )


def text(lines: Sequence[str]) -> str:
    return "\n".join(lines) + "\n"

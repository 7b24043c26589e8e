"""What is known of a trainer that plans are written for, and what the written files have in common."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from taskmix.plans._export._mixture import Mixture


@dataclass(frozen=True, kw_only=True)
class ExportTarget:
    """A trainer: how a mixture is written for it, by which documentation, and how that was checked."""

    word: str  # what is typed after `--to`
    trainer: str  # its name
    write: Callable[[Mixture], Mapping[str, str]]  # text by the name of its file
    usage: str  # how the trainer is given the files, in a sentence
    documentation: str  # an address
    checked: str  # the version, and by what it was read
    says_stages: bool = False  # whether one file can have shares that change
    tokens: bool = False  # whether it reads token files made beforehand, and no rows
    packs: bool = False  # whether shares are of packed sequences and not of rows
    any_rows: bool = False  # whether rows may have any columns; otherwise texts or conversations
    has_comments: bool = True  # whether every file it reads can say who wrote it


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

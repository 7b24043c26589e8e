"""What is known of a trainer that plans are written for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from taskmix.plans._export._mixture import Mixture


@dataclass(frozen=True, kw_only=True)
class ExportTarget:
    """A trainer: how a mixture is written for it, by which documentation, and how that was checked.

    >>> TARGETS["trl"].trainer, TARGETS["levanter"].says_stages
    ('TRL', True)
    """

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

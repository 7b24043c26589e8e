"""What is found in the data before anything is trained."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

FindingKind = Literal[
    "seen in training",
    "seen in another task",
    "same task twice",
    "same inputs",
    "contradiction",
    "one class",
    "rare class",
    "imbalance",
    "leak",
    "few rows",
    "no dev rows",
    # Only `check_tasks` says these: they are about the files, and change no advice.
    "duplicates",
    "few of a class",
    "missing from dev",
    "telling id",
    "constant column",
    "empty column",
    "many categories",
    "missing cells",
    "empty texts",
    "long texts",
    "shift",
]


@dataclass(frozen=True, kw_only=True)
class Finding:
    """Something a user should know of the data.

    >>> Finding(kind="few rows", tasks=("a",), words="Task `a` has only 9 rows to train on.").kind
    'few rows'
    """

    kind: FindingKind
    tasks: tuple[str, ...]
    words: str
    share: float = float("nan")  # of the rows concerned, where that says something
    is_warning: bool = True  # whether results may mislead because of it

"""What was learned from a table as one document: the JSON of `taskmix laws --document` and `--json`.

NaN and the infinities are null there, which is read back as NaN.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from taskmix.errors import InputError
from taskmix.files import UnreadableError, has_keys, read_plain, write_bytes
from taskmix.laws._compare import FormulaComparison
from taskmix.laws._next_runs import NextLawRuns
from taskmix.laws._noise import LackOfFit
from taskmix.laws._picture import LawPicture
from taskmix.laws._rows import FittedConstant, FrontRow, GroupRow, LawRow, SharedRow, StackRow
from taskmix.records import LEFT_OUT_IF_NONE, from_plain, to_plain


@dataclass(frozen=True)
class LeftOutRange:
    """Which rows were left out in turn: those with the largest values of an input."""

    input: str
    rows: int


@dataclass(frozen=True)
class PredictionRow:
    """What the law says at a point."""

    at: Mapping[str, float]
    value: float
    low: float
    high: float
    warning: str
    # The group that was asked about, by the columns that name groups.
    group: Mapping[str, str] | None = field(default=None, metadata=LEFT_OUT_IF_NONE)


@dataclass(frozen=True)
class GainRow:
    """What changing some inputs from that point is expected to bring."""

    to: Mapping[str, float]
    value: float
    low: float
    high: float
    warning: str


READABLE_SIGNS = 25  # of a law: about what people take in at a glance


@dataclass(frozen=True, kw_only=True)
class LawsDocument:
    """What `learn_laws` found, in plain words and numbers; what was not asked for is None."""

    command: str  # that made it; nothing where it was made from Python
    engine: str
    target: str
    inputs: tuple[str, ...]
    rows: int
    noise: str
    notes: tuple[str, ...]
    law: LawRow
    front: tuple[FrontRow, ...]
    left_out: LeftOutRange
    bootstrap: tuple[FittedConstant, ...] | None = field(default=None, metadata=LEFT_OUT_IF_NONE)
    comparisons: tuple[FormulaComparison, ...] | None = field(
        default=None, metadata=LEFT_OUT_IF_NONE
    )
    groups: tuple[GroupRow, ...] | None = field(default=None, metadata=LEFT_OUT_IF_NONE)
    # The columns that name groups, and which constants all groups share.
    group_columns: tuple[str, ...] | None = field(default=None, metadata=LEFT_OUT_IF_NONE)
    shared: tuple[SharedRow, ...] | None = field(default=None, metadata=LEFT_OUT_IF_NONE)
    # What is said of each column at the point, where several were explained.
    target_predictions: tuple[PredictionRow, ...] | None = field(
        default=None, metadata=LEFT_OUT_IF_NONE
    )
    # Standard deviations of the constants.
    between_groups: tuple[float, ...] | None = field(default=None, metadata=LEFT_OUT_IF_NONE)
    prediction: PredictionRow | None = field(default=None, metadata=LEFT_OUT_IF_NONE)
    gain: GainRow | None = field(default=None, metadata=LEFT_OUT_IF_NONE)
    # What a page draws; None in documents of earlier versions.
    picture: LawPicture | None = field(default=None, metadata=LEFT_OUT_IF_NONE)
    # Ranges that were left out in turn; None in documents of earlier versions.
    ranges: tuple[str, ...] | None = field(default=None, metadata=LEFT_OUT_IF_NONE)
    # Laws that cannot be told from the chosen one, and what their mean says at the point.
    stack: tuple[StackRow, ...] | None = field(default=None, metadata=LEFT_OUT_IF_NONE)
    stack_prediction: PredictionRow | None = field(default=None, metadata=LEFT_OUT_IF_NONE)
    # Runs that would distinguish these, or narrow the interval of the one law.
    next_runs: NextLawRuns | None = field(default=None, metadata=LEFT_OUT_IF_NONE)
    # All forms that cannot be told from the chosen one, which is the first; None where it stands alone.
    tied: tuple[str, ...] | None = field(default=None, metadata=LEFT_OUT_IF_NONE)
    loss: str | None = field(default=None, metadata=LEFT_OUT_IF_NONE)  # `squares` or `huber`
    weights: str | None = field(default=None, metadata=LEFT_OUT_IF_NONE)  # the column of weights
    # What rows with equal inputs say of noise and law; None where there are none.
    lack_of_fit: LackOfFit | None = field(default=None, metadata=LEFT_OUT_IF_NONE)
    seconds: float

    @property
    def readable(self) -> FrontRow | None:
        """The best law on the front that people can read, where the chosen one is longer than that."""
        chosen = next((row for row in self.front if row.chosen), None)
        if chosen is None or chosen.complexity <= READABLE_SIGNS:
            return None
        short = [
            row
            for row in self.front
            if row.complexity <= READABLE_SIGNS and not row.disqualified and row.held_out_r2 > 0
        ]
        return min(short, key=lambda row: row.held_out_mse, default=None)

    @property
    def readable_words(self) -> str:
        """That law in a sentence, with what it explains; empty where there is none."""
        row = self.readable
        if row is None:
            return ""
        longer = next(each.held_out_r2 for each in self.front if each.chosen)
        return (
            f"A shorter law for reading, which explains {row.held_out_r2:.1%} of the held-out rows' "
            f"variance where the chosen one explains {longer:.1%}: {self.target} = {row.formula}"
        )

    def as_json(self) -> dict[str, Any]:
        """The document as JSON has it."""
        plain: dict[str, Any] = to_plain(self)
        return plain


def is_laws_document(begin: bytes) -> bool:
    """Whether a file is such a document, by its first bytes.

    >>> is_laws_document(b'{"command": "", "engine": "search", "law": {'), is_laws_document(b"n,f1")
    (True, False)
    """
    return has_keys("command", "engine", "law")(begin)


def write_laws(document: LawsDocument, path: Path | str) -> Path:
    """Writes the document, whole or not at all.

    >>> n = np.arange(1.0, 21.0)
    >>> model = LawRegressor(enough=0.99)
    >>> found = learn_laws({"n": n, "f1": 3 * n}, target="f1", inputs=["n"], model=model)
    >>> read_laws(write_laws(found.document, "laws.json")).law.formula
    'f1 = 3*n'
    """
    text = json.dumps(document.as_json(), indent=2, ensure_ascii=False) + "\n"
    write_bytes(Path(path), text.encode())
    return Path(path)


def read_laws(path: Path | str) -> LawsDocument:
    """What `write_laws` or `taskmix laws --document` wrote; see `write_laws` for an example.

    >>> read_laws("results.csv")
    Traceback (most recent call last):
    taskmix.errors.InputError: `results.csv` should be a JSON file that `taskmix laws --document`...
    """
    try:
        return from_plain(LawsDocument, json.loads(read_plain(Path(path))))
    except TypeError as error:
        found = f"another kind of file ({error})"
    except UnreadableError as error:
        found = error.found
    except FileNotFoundError:
        found = "no such file"
    except (ValueError, RecursionError):
        found = "something that is no JSON"
    raise InputError(
        f"`{path}` should be a JSON file that `taskmix laws --document` wrote. Found {found}. Check the "
        "path, or run the command again."
    )

"""What was learned from a table as one document: the JSON of `taskmix laws --document` and `--json`.

NaN and the infinities are null there, which is read back as NaN.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from taskmix.errors import InputError
from taskmix.files import UnreadableError, has_keys, read_plain, write_bytes
from taskmix.laws._judging import FittedConstant, FormulaComparison, FrontRow, GroupRow, LawRow
from taskmix.records import without_nan


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


@dataclass(frozen=True)
class GainRow:
    """What changing some inputs from that point is expected to bring."""

    to: Mapping[str, float]
    value: float
    low: float
    high: float
    warning: str


@dataclass(frozen=True, kw_only=True)
class LawsDocument:
    """What `learn_laws` found, in plain words and numbers; what was not asked for is None.

    >>> n = np.arange(1.0, 21.0)
    >>> table = {"n": n, "f1": 3 * np.sqrt(n)}
    >>> model = LawRegressor(enough=0.99)
    >>> document = learn_laws(table, target="f1", inputs=["n"], model=model).document
    >>> document.law.formula, document.law.growth
    ('f1 = 3*sqrt(n)', {'n': 'n^0.5'})
    """

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
    bootstrap: tuple[FittedConstant, ...] | None = None
    comparisons: tuple[FormulaComparison, ...] | None = None
    groups: tuple[GroupRow, ...] | None = None
    between_groups: tuple[float, ...] | None = None  # standard deviations of the constants
    prediction: PredictionRow | None = None
    gain: GainRow | None = None
    seconds: float

    def as_json(self) -> dict[str, Any]:
        """The document as JSON has it."""
        found = {key: value for key, value in asdict(self).items() if value is not None}
        plain: dict[str, Any] = without_nan(found)
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
    taskmix.errors.InputError: `results.csv` should be a JSON file that `taskmix laws --document` wrote...
    """
    try:
        read = json.loads(read_plain(Path(path)))
        try:
            return _document(read)
        except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError):
            found = "another kind of file"
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


def _document(read: Mapping[str, Any]) -> LawsDocument:
    law, left_out = read["law"], read["left_out"]
    return LawsDocument(
        command=str(read["command"]),
        engine=str(read["engine"]),
        target=str(read["target"]),
        inputs=tuple(map(str, read["inputs"])),
        rows=int(read["rows"]),
        noise=str(read["noise"]),
        notes=tuple(map(str, read["notes"])),
        law=LawRow(
            formula=str(law["formula"]),
            complexity=int(law["complexity"]),
            constants=_constants(law["constants"]),
            growth=_growth(law["growth"]),
            ranges={
                name: (_number(low), _number(high)) for name, (low, high) in law["ranges"].items()
            },
            deviation=_number(law["deviation"]),
            latex=str(law["latex"]),
            python=str(law["python"]),
        ),
        front=tuple(map(_front_row, read["front"])),
        left_out=LeftOutRange(str(left_out["input"]), int(left_out["rows"])),
        bootstrap=_constants(read["bootstrap"]) if "bootstrap" in read else None,
        comparisons=tuple(map(_comparison, read["comparisons"])) if "comparisons" in read else None,
        groups=tuple(map(_group, read["groups"])) if "groups" in read else None,
        between_groups=_numbers(read["between_groups"]) if "between_groups" in read else None,
        prediction=PredictionRow(**_at_a_point(read["prediction"], "at"))
        if "prediction" in read
        else None,
        gain=GainRow(**_at_a_point(read["gain"], "to")) if "gain" in read else None,
        seconds=_number(read["seconds"]),
    )


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)


def _numbers(values: list[float | None]) -> tuple[float, ...]:
    return tuple(map(_number, values))


def _growth(read: Mapping[str, str | None]) -> dict[str, str | None]:
    return {name: None if words is None else str(words) for name, words in read.items()}


def _constants(read: list[Mapping[str, Any]]) -> tuple[FittedConstant, ...]:
    return tuple(
        FittedConstant(_number(each["value"]), _number(each["low"]), _number(each["high"]))
        for each in read
    )


def _front_row(read: Mapping[str, Any]) -> FrontRow:
    errors = ("train_mse", "held_out_mse", "held_out_r2", "left_out_mse", "left_out_relative")
    return FrontRow(
        complexity=int(read["complexity"]),
        formula=str(read["formula"]),
        constants=_constants(read["constants"]),
        chosen=bool(read["chosen"]),
        growth=_growth(read["growth"]),
        latex=str(read["latex"]),
        **{name: _number(read[name]) for name in (*errors, "cross_mse", "nats")},
    )


def _comparison(read: Mapping[str, Any]) -> FormulaComparison:
    return FormulaComparison(
        name=str(read["name"]),
        formula=str(read["formula"]),
        complexity=int(read["complexity"]),
        refitted_formula=str(read["refitted_formula"]),
        **{
            name: _number(read[name])
            for name in ("as_given", "rescaled", "refitted", "refitted_r2")
        },
    )


def _group(read: Mapping[str, Any]) -> GroupRow:
    return GroupRow(
        group=str(read["group"]),
        rows=int(read["rows"]),
        formula=str(read["formula"]),
        constants=_constants(read["constants"]),
        alone=_numbers(read["alone"]),
    )


def _at_a_point(read: Mapping[str, Any], where: str) -> dict[str, Any]:
    """The fields of a prediction or a gain; `where` is what the point is called."""
    return {
        where: {str(name): _number(value) for name, value in read[where].items()},
        **{name: _number(read[name]) for name in ("value", "low", "high")},
        "warning": str(read["warning"]),
    }

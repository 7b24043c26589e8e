"""What every experiment needs: its rows beside the paper's, and lines of published data."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from taskmix.errors import InputError
from taskmix.numerics import Interval, mean_interval
from taskmix.tasks import text_lines


@dataclass(frozen=True)
class PaperRow:
    """One quantity as the paper has it and as we found it; None where a figure is not known."""

    quantity: str
    paper: float | None
    ours: float | None
    low: float | None
    high: float | None
    n: int  # seeds, tasks or tables that the interval is over
    formula: str | None = None  # where the figure is the error of one

    def as_json(self) -> dict[str, Any]:
        """The row as `--json` prints it."""
        found = asdict(self)
        if self.formula is None:
            del found["formula"]
        return found


def row(
    quantity: str,
    paper: float | None,
    ours: Interval | Sequence[float] | Any,
    formula: str | None = None,
) -> PaperRow:
    """One row, of an interval or of the values that it is to be over."""
    found = ours if isinstance(ours, Interval) else mean_interval(ours)
    mean, low, high = (
        None if math.isnan(value) else value for value in (found.mean, found.low, found.high)
    )
    return PaperRow(quantity, paper, mean, low, high, found.n, formula)


def task_rows(
    prefix: str,
    table: NDArray[np.float64],  # [seed, task]
    names: Sequence[str],
    paper: Sequence[float | None] | None = None,  # of the average, then of each task
) -> list[PaperRow]:
    """The average over tasks and each task, over seeds."""
    columns = {"average": table.mean(axis=1), **dict(zip(names, table.T, strict=True))}
    theirs = paper or [None] * len(columns)
    return [
        row(f"{prefix}/{name}", given, column)
        for given, (name, column) in zip(theirs, columns.items(), strict=True)
    ]


def single(value: float, count: int = 1) -> Interval:
    """A figure without an interval."""
    return Interval(value, math.nan, math.nan, count)


def read_lines(folder: Path, name: str) -> list[dict[str, Any]] | None:
    """The objects of `name`.jsonl or `name`.jsonl.gz; None where there is no such file."""
    paths = [folder / f"{name}.jsonl{ending}" for ending in ("", ".gz")]
    path = next((path for path in paths if path.exists()), None)
    if path is None:
        return None
    try:
        lines = [json.loads(line) for line in text_lines(path) if line.strip()]
    except (ValueError, RecursionError) as error:
        raise InputError(f"`{path}` should be lines of JSON. Reading it said: {error}.") from error
    if not lines or not all(isinstance(line, dict) for line in lines):
        raise InputError(f"`{path}` should have an object on every line. Found something else.")
    return lines

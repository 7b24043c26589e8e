"""A reproduction's row: a quantity, the paper's figure, ours and its interval."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from taskmix.numerics import Interval


@dataclass(frozen=True)
class PaperRow:
    """One quantity as the paper has it and as we found it; None where a figure is not known.

    >>> row = PaperRow("glue/uniform/average", paper=79.1, ours=78.8, low=78.1, high=79.5, n=3)
    >>> row.low < row.paper < row.high
    True
    """

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


def row(quantity: str, paper: float | None, ours: Interval, formula: str | None = None) -> PaperRow:
    """One row; an interval that is not known is None."""
    mean, low, high = (
        None if math.isnan(value) else value for value in (ours.mean, ours.low, ours.high)
    )
    return PaperRow(quantity, paper, mean, low, high, ours.n, formula)

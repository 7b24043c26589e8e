"""A reproduction's row: a quantity, the paper's figure, ours and its interval."""

from __future__ import annotations

import math
from typing import Any

from taskmix.numerics import Interval


def row(quantity: str, paper: float | None, ours: Interval) -> dict[str, Any]:
    """One row; an interval that is not known is null."""
    return {
        "quantity": quantity,
        "paper": paper,
        "ours": _known(ours.mean),
        "low": _known(ours.low),
        "high": _known(ours.high),
        "n": ours.n,
    }


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value

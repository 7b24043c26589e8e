"""Which rows lie outside the data, and the sentence that says so."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from taskmix.laws._forms import Columns


def outside_rows(columns: Columns, ranges: Mapping[str, tuple[float, float]]) -> NDArray[np.bool_]:
    """[row], whether an input that has a range lies outside it."""
    result = np.zeros(max(map(len, columns.values())), dtype=np.bool_)
    for name, (low, high) in ranges.items():
        result |= (columns[name] < low) | (columns[name] > high)
    return result


def beyond_ranges_words(columns: Columns, ranges: Mapping[str, tuple[float, float]]) -> str:
    """The first value of each input outside its range; empty where there is none."""
    words = []
    for name, column in columns.items():
        if name not in ranges:
            continue
        low, high = ranges[name]
        beyond = column[(column < low) | (column > high)]
        if len(beyond):
            words.append(f"{name} = {beyond[0]:g} (data {low:g} to {high:g})")
    return f"Outside the range of the data: {', '.join(words)}." if words else ""

"""The rows of a table before and after a law is found: weights, those held out, and what stands out."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from taskmix.errors import InputError
from taskmix.laws._fitting import LackOfFit, Observations, Replicates
from taskmix.laws._forms import Array, Columns

FAR_OFF = 3.0  # bounds: rows that are told, about four deviations off
NAMED_ROWS = 5  # of them by their numbers
MISFIT = 0.01  # probability below which a law lacks fit
ENOUGH_EQUAL_ROWS = 10  # beyond the first of each, for that to be told
WHOLE_CELLS = 60  # different inputs, for rows with equal ones to be held out together


def sample_weights(given: Any, rows: int) -> Array | None:
    """How many measurements each row is the mean of, checked."""
    if given is None:
        return None
    sample = np.asarray(given, dtype=np.float64)
    if sample.shape != (rows,) or not np.all(np.isfinite(sample) & (sample > 0)):
        found = f"{len(sample)} of them" if sample.shape != (rows,) else f"{sample.min():g}"
        raise InputError(
            f"There should be a weight above 0 for each of the {rows} rows. Found {found}. Leave rows "
            "that should not count out."
        )
    return np.asarray(sample)


def divided_rows(
    columns: Columns, share: float, seed: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The rows to learn from and those held out, drawn at random.

    Rows with equal inputs go together where there are many different ones, so that no row that is held
    out has its like among the others.
    """
    generator, same = np.random.default_rng(seed), Replicates.of(columns)
    count = len(same.cells)
    aside = max(round(count * share), 2)
    if same.beyond == 0 or len(same.sizes) < WHOLE_CELLS:
        order = generator.permutation(count)
        return np.sort(order[aside:]), np.sort(order[:aside])
    cells = generator.permutation(len(same.sizes))
    taken = cells[: int(np.searchsorted(np.cumsum(same.sizes[cells]), aside)) + 1]
    held_out = np.isin(same.cells, taken)
    return np.flatnonzero(~held_out), np.flatnonzero(held_out)


def row_notes(data: Observations, values: Array, equal: LackOfFit | None) -> list[str]:
    """On rows that lie far off, and on a law that misses more than the noise of equal rows explains."""
    notes = []
    if data.bound < np.inf:
        far = np.flatnonzero(np.abs(data.weight * (values - data.target)) > FAR_OFF * data.bound)
        named = ", ".join(str(place + 1) for place in far[:NAMED_ROWS].tolist())
        more = f" and {len(far) - NAMED_ROWS} more" if len(far) > NAMED_ROWS else ""
        where = f" Far off: row {named}{more}." if len(far) else ""
        notes.append(
            "Deviations have heavy tails, so Huber's loss was used, under which rows that lie far "
            f"off count less.{where}"
        )
    if equal is not None and equal.probability < MISFIT and equal.beyond >= ENOUGH_EQUAL_ROWS:
        notes.append(
            "The law misses more than the noise between rows with equal inputs explains (lack of "
            f"fit: F = {equal.statistic:.3g}, p = {equal.probability:.2g}). Another form, or an "
            "input that is not there, may explain it."
        )
    return notes

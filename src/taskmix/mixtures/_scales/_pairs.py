"""The same mixtures at two sizes of model, and what repeated runs say of the noise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from taskmix.errors import InputError
from taskmix.mixtures._optimum import MixtureTarget
from taskmix.mixtures._table import Floats, MixtureTable

SAME_SHARE = 4  # decimals; tables are often written with three or four


@dataclass(frozen=True, eq=False)
class Mixtures:
    """Distinct mixtures of runs of one size, each with the mean of its runs."""

    shares: Floats  # [mixture, domain]
    values: Floats  # [mixture, column]; columns are the metrics, then the target if there is one
    counts: NDArray[np.intp]  # [mixture], how many runs
    noise: Floats  # [column], variance of a single run by repeated mixtures; NaN where none tell
    freedom: NDArray[np.intp]  # [column], degrees of freedom behind it


def keys_of(shares: Floats) -> list[bytes]:
    """One key a row, equal where the mixtures are."""
    # Adding zero turns the -0.0 that rounding can leave into 0.0, whose bytes differ.
    return [row.tobytes() for row in np.round(shares, SAME_SHARE) + 0.0]


def columns_of(values: Floats, table: MixtureTable, target: MixtureTarget | None) -> Floats:
    """[..., row, column]: the metrics as losses, then the target if there is one."""
    losses = np.asarray(values * table.signs)
    if target is None:
        return losses
    return np.concatenate([losses, target.of(values, table)[..., None]], axis=-1)


def group_mixtures(shares: Floats, columns: Floats) -> Mixtures:
    """One row for each distinct mixture, in the order in which they come."""
    keys = keys_of(shares)
    first: dict[bytes, int] = {}
    groups = np.array([first.setdefault(key, len(first)) for key in keys])
    members = [np.flatnonzero(groups == group) for group in range(len(first))]
    width = columns.shape[1]
    known = ~np.isnan(columns)
    filled = np.where(known, columns, 0.0)
    values = np.full((len(members), width), np.nan)
    squares, freedom = np.zeros(width), np.zeros(width, dtype=np.intp)
    for group, rows in enumerate(members):
        here = known[rows].sum(axis=0)
        sums = filled[rows].sum(axis=0)
        has = here > 0
        values[group, has] = sums[has] / here[has]
        squares += (np.where(known[rows], columns[rows] - values[group], 0.0) ** 2).sum(axis=0)
        freedom += np.maximum(here - 1, 0)
    noise = np.divide(squares, freedom, out=np.full(width, np.nan), where=freedom > 0)
    return Mixtures(
        shares=shares[[rows[0] for rows in members]],
        values=values,
        counts=np.array([len(rows) for rows in members]),
        noise=noise,
        freedom=freedom,
    )


def match_mixtures(small: Mixtures, large: Mixtures) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Places of the mixtures that both have."""
    place = {key: number for number, key in enumerate(keys_of(small.shares))}
    both = [
        (place[key], number) for number, key in enumerate(keys_of(large.shares)) if key in place
    ]
    places = np.array(both, dtype=np.intp).reshape(-1, 2)
    return places[:, 0], places[:, 1]


def pairs_of_sizes(table: MixtureTable) -> list[tuple[float, float]]:
    """Every small size with every larger one."""
    sizes = table.known_sizes
    if len(sizes) < 2:
        raise InputError(
            "To see how ranks carry over, a table should have runs of two or more sizes of model. "
            f"Found {len(sizes) or 1}. Give the sizes of the models, one a run."
        )
    return [(low, high) for place, low in enumerate(sizes) for high in sizes[place + 1 :]]


def size_in_words(size: float) -> str:
    """1 M, 60 M, 1.5 B."""
    for name, unit in (("T", 1e12), ("B", 1e9), ("M", 1e6), ("K", 1e3)):
        if size >= unit:
            return f"{size / unit:.3g} {name}"
    return f"{size:.3g}"

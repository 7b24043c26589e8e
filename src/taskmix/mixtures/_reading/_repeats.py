"""Runs on the same mixture: how much they differ, and whether that is noise or a mistake."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from taskmix.mixtures._table import Floats, MixtureTable

SAME = 4  # digits of a share by which mixtures are the same
LARGE = 0.5  # of the spread over all runs: noise of this size leaves nothing to learn


@dataclass(frozen=True)
class Repeats:
    """What repeated mixtures say."""

    groups: tuple[tuple[int, ...], ...]  # rows of equal mixtures (and sizes), two or more each
    spread: Floats  # [metric], standard deviation of a run around its mixture; NaN where not known
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def find_repeats(table: MixtureTable) -> tuple[tuple[int, ...], ...]:
    """Rows of the same mixture and size, as groups of two or more."""
    rows: dict[bytes, list[int]] = {}
    for place, shares in enumerate(np.round(table.shares, SAME) + 0.0):
        size = b"" if table.sizes is None else table.sizes[place].tobytes()
        rows.setdefault(shares.tobytes() + size, []).append(place)
    return tuple(tuple(group) for group in rows.values() if len(group) > 1)


def describe_repeats(table: MixtureTable) -> Repeats:
    """How far repeated runs differ beside the spread over all runs, with words."""
    groups = find_repeats(table)
    count = len(table.metrics)
    if not groups:
        return Repeats((), np.full(count, np.nan))
    squares, freedom = np.zeros(count), np.zeros(count)
    for group in groups:
        values = table.values[list(group)]
        known = (~np.isnan(values)).sum(axis=0)
        middle = np.nansum(values, axis=0) / np.maximum(known, 1)
        squares += np.nansum((values - middle) ** 2, axis=0)
        freedom += np.maximum(known - 1, 0)
    spread = np.sqrt(np.divide(squares, freedom, out=np.full(count, np.nan), where=freedom > 0))
    whole = _spread_of_all(table)
    share = np.divide(spread, whole, out=np.full(count, np.nan), where=whole > 0)
    if np.isnan(share).all():
        return Repeats(groups, spread)
    runs = sum(map(len, groups))
    mixtures = "1 mixture was" if len(groups) == 1 else f"{len(groups)} mixtures were"
    middle_share = float(np.nanmedian(share))
    notes = [
        f"{mixtures} trained more than once ({runs} runs), which tells the noise: a run differs from "
        f"its mixture by {middle_share:.0%} of the spread over all runs (median over metrics)."
    ]
    warnings = []
    if middle_share > LARGE:
        worst = max(groups, key=lambda group: _distance(table, group))
        names = " and ".join(f"`{table.runs[place]}`" for place in worst[:2])
        warnings.append(
            f"Runs on the same mixture should agree but for noise. Found that they differ by "
            f"{middle_share:.0%} of the spread over all runs (most: {names}). If they differ in size, "
            "length or data, say so in a column of sizes, or leave one of them out."
        )
    return Repeats(groups, spread, tuple(notes), tuple(warnings))


def _spread_of_all(table: MixtureTable) -> Floats:
    if table.sizes is None:
        return np.asarray(np.nanstd(table.values, axis=0))
    each = [np.nanstd(table.values[table.sizes == size], axis=0) for size in table.known_sizes]
    return np.asarray(np.nanmean(each, axis=0))


def _distance(table: MixtureTable, group: tuple[int, ...]) -> float:
    spread = np.nanstd(table.values, axis=0)
    values = table.values[list(group)] / np.where(spread > 0, spread, 1)
    ranges = [np.ptp(column[~np.isnan(column)]) for column in values.T if (~np.isnan(column)).any()]
    return max(map(float, ranges), default=0.0)

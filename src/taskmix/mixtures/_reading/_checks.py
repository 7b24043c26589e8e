"""What a table of mixtures can teach, wherever it came from: refused, mended or said in a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from taskmix.errors import InputError
from taskmix.mixtures._table import WHOLE, Floats, MixtureTable, few_names

LEAST_RUNS = 8  # below it a law of two domains has no run left to be judged by
UNVARIED = (
    1e-3  # shares that differ by less are the same, perhaps rounded: no law can tell them apart
)
SAME = 4  # digits of a share by which mixtures are the same
LARGE = 0.5  # of the spread over all runs: noise of this size leaves nothing to learn


@dataclass(frozen=True)
class CheckedTable:
    """The table without what cannot be used, and what to know about it."""

    table: MixtureTable
    fixed: dict[str, float]  # domains that were never varied, and their share
    warnings: tuple[str, ...]  # by which the answer is less certain than its figures


def check_table(table: MixtureTable, needed: Sequence[str] = ()) -> CheckedTable:
    """Leaves out runs without metrics and metrics that cannot be learned; `needed` ones are refused."""
    _check_shares(table)
    usable = int(np.isfinite(table.values).any(axis=1).sum())
    if usable < LEAST_RUNS:
        raise InputError(
            f"A law of mixtures should have at least {LEAST_RUNS} runs to be learned from. Found "
            f"{usable} with metrics. Train more (`taskmix.mixtures.first_mixtures` says which)."
        )
    table, notes = _measured(table, needed)
    table, fixed = _hold_unvaried(table)
    varied = len(table.domains) - len(fixed)
    if varied < 2:
        raise InputError(
            "The runs should differ in their mixtures. Found the same shares in all of them. Train on "
            "other mixtures too."
        )
    warnings = []
    if fixed:
        names = ", ".join(f"`{name}` ({share:.3g})" for name, share in list(fixed.items())[:8])
        warnings.append(
            f"Never varied, so their effect cannot be told: {names}. Their shares stay what they were."
        )
    if len(table) <= varied:
        warnings.append(
            f"There are {len(table)} runs for {varied} domains: effects of single domains rest on "
            "shrinkage as much as on runs, and intervals are wide."
        )
    more_notes, more_warnings = _describe_repeats(table)
    told = (*table.notes, *notes, *more_notes)
    return CheckedTable(replace(table, notes=told), fixed, (*warnings, *more_warnings))


def _hold_unvaried(table: MixtureTable) -> tuple[MixtureTable, dict[str, float]]:
    """The table with exactly one share of what was never varied, and these shares by name."""
    is_fixed = np.ptp(table.shares, axis=0) <= UNVARIED
    fixed = {
        name: float(np.median(column))
        for name, column, there in zip(table.domains, table.shares.T, is_fixed, strict=True)
        if there
    }
    if not fixed or is_fixed.all():
        return table, fixed
    left = 1.0 - sum(fixed.values())
    varied = table.shares[:, ~is_fixed]
    shares = np.empty_like(table.shares)
    shares[:, is_fixed] = list(fixed.values())
    shares[:, ~is_fixed] = left * varied / varied.sum(axis=1, keepdims=True)
    return replace(table, shares=shares), fixed


def _check_shares(table: MixtureTable) -> None:
    """What Python may hand in and a file's reader has mended before."""
    bad = np.flatnonzero(~np.isfinite(table.shares).all(axis=1) | (table.shares < 0).any(axis=1))
    off = np.abs(table.shares.sum(axis=1) - 1)
    wrong = [*bad, *np.flatnonzero(off > 10 * WHOLE)]
    if len(wrong):
        run = int(wrong[0])
        raise InputError(
            "The shares of a run should be at least 0 and sum to 1. Found "
            f"{table.shares[run].sum():.6g} in run `{table.runs[run]}`. Divide them by their sum, or "
            "read them with `read_mixtures`, which does."
        )


def _measured(table: MixtureTable, needed: Sequence[str]) -> tuple[MixtureTable, list[str]]:
    """The runs and metrics that can be learned from."""
    notes = []
    values = np.where(np.isfinite(table.values), table.values, np.nan)
    known = ~np.isnan(values)
    kept = []
    for place, name in enumerate(table.metrics):
        there = values[known[:, place], place]
        why = ""
        if len(there) < LEAST_RUNS:
            why = f"it was measured in {len(there)} runs, and {LEAST_RUNS} are the fewest"
        elif np.ptp(there) <= 1e-12 * max(abs(float(there[0])), 1e-300):
            why = f"it is {there[0]:g} in every run"
        if not why:
            kept.append(place)
        elif name in needed or not len(table.metrics) > 1:
            raise InputError(
                f"Metric `{name}` should vary over at least {LEAST_RUNS} runs to be learned. Found that "
                f"{why}. Choose another metric, or measure it in more runs."
            )
        else:
            notes.append(f"Metric `{name}` was left out: {why}.")
    if not kept:
        raise InputError(
            f"At least one metric should vary over {LEAST_RUNS} runs or more. Found none in "
            f"{len(table)} runs. {notes[0]}"
        )
    empty = np.asarray(~known[:, kept].any(axis=1))
    if empty.any():
        names = [table.runs[place] for place in np.flatnonzero(empty)]
        count = "1 run has" if len(names) == 1 else f"{len(names)} runs have"
        notes.append(f"{count} no metrics, left out: {few_names(names, 5)}.")
    missing = ~known[:, kept] & ~empty[:, None]
    if missing.any():
        worst = int(missing.sum(axis=0).argmax())
        notes.append(
            f"Missing metrics: {int(missing.sum())}, in {_runs(missing.any(axis=1).sum())} (most often "
            f"`{table.metrics[kept[worst]]}`, in {_runs(missing[:, worst].sum())}). Each metric is "
            "learned from the runs that have it."
        )
    metrics = tuple(table.metrics[place] for place in kept)
    table = replace(
        table,
        metrics=metrics,
        values=values[:, kept],
        larger_is_better=tuple(name for name in table.larger_is_better if name in metrics),
    )
    return table.only(~empty), notes


def _runs(count: int) -> str:
    return "1 run" if count == 1 else f"{count} runs"


def _find_repeats(table: MixtureTable) -> tuple[tuple[int, ...], ...]:
    """Rows of the same mixture and size, as groups of two or more."""
    rows: dict[bytes, list[int]] = {}
    for place, shares in enumerate(np.round(table.shares, SAME) + 0.0):
        size = b"" if table.sizes is None else table.sizes[place].tobytes()
        rows.setdefault(shares.tobytes() + size, []).append(place)
    return tuple(tuple(group) for group in rows.values() if len(group) > 1)


def _describe_repeats(table: MixtureTable) -> tuple[list[str], list[str]]:
    """How far repeated runs differ beside the spread over all runs: notes and warnings."""
    groups = _find_repeats(table)
    count = len(table.metrics)
    if not groups:
        return [], []
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
        return [], []
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
    return notes, warnings


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

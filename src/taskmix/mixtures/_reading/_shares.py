"""Shares as they were written, rounded, in percent or in tokens, as shares that sum to 1."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from taskmix.mixtures._reading._sheet import Sheet
from taskmix.mixtures._table import Floats

ROUNDED = 0.005  # a share may be off by this: two digits, and RegMix writes three
EXACT = 1e-4  # a sum that is off by less needs no word
LEAST_TOKENS = 1000.0  # sums that are all above are tokens or documents, not shares


def read_shares(
    sheet: Sheet, domains: Sequence[str], runs: Sequence[str]
) -> tuple[Floats, list[str]]:
    """[run, domain] with rows that sum to 1, and what was done to them in words."""
    columns = [sheet.numbers(name, "the share of a domain") for name in domains]
    shares = np.stack(columns, axis=1)
    for run, place in np.argwhere(~np.isnan(shares) & ~((shares >= 0) & np.isfinite(shares))):
        sheet.refuse(
            "Shares should be finite numbers of at least 0.",
            f"{shares[run, place]:g} for `{domains[place]}` of run `{runs[run]}`",
            "Mend the cell.",
            int(run),
        )
    notes = []
    empty = np.isnan(shares)
    shares = np.nan_to_num(shares)
    sums = shares.sum(axis=1)
    near = ROUNDED * len(domains)
    if np.all(np.abs(sums / 100 - 1) <= near):
        shares, sums = shares / 100, sums / 100
        notes.append(f"The shares in {sheet.name} sum to 100 and were read as percent.")
    elif np.all(sums >= LEAST_TOKENS):
        shares, sums = shares / sums[:, None], np.ones(len(sums))
        notes.append(
            f"The numbers in {sheet.name} sum to {LEAST_TOKENS:,.0f} or more in every run and were read "
            "as tokens: each run was divided by its sum."
        )
    wrong = np.flatnonzero(np.abs(sums - 1) > near)
    if len(wrong):
        first = int(wrong[0])
        more = f", and {len(wrong) - 1} more runs like it" if len(wrong) > 1 else ""
        blank = " with empty cells" if empty[first].any() else ""
        sheet.refuse(
            f"The shares of a run should sum to 1, give or take {near:.2g} for rounding (or all to 100, "
            "or all be tokens).",
            f"{sums[first]:.4g}{blank} for run `{runs[first]}`{more}",
            "Add the domain that is missing, leave out a column that is no domain with `ignore`, or "
            "mend the row.",
            first,
        )
    off = np.abs(sums - 1)
    if off.max() > EXACT:
        notes.append(
            f"The shares of {int((off > EXACT).sum())} of {len(sums)} runs are rounded (they sum to "
            f"{sums.min():.5g} to {sums.max():.5g}) and were divided by their sums."
        )
    if empty.any():
        notes.append(f"{int(empty.sum())} empty shares in {sheet.name} were read as 0.")
    return shares / sums[:, None], notes

"""Intervals of a group that was not there: how often they hold, in tables of a known form.

Floors differ between groups by 0.5 about 2 and slopes by 30 % about 30, apart or together, 20 rows of a
group, noise 0.02. The law of one more group is foretold with no row of it, at 90 %.

    python benchmarks/laws_groups.py [--quick] [--json]
"""

from __future__ import annotations

from typing import Any

import numpy as np

from _common import report, row
from taskmix.laws import fit_formula, fit_groups

LEVEL, ROWS = 0.9, 20


def held(seed: int, groups: int, *, together: bool) -> float:
    """The share of the new group's points whose value lies in the interval."""
    generator = np.random.default_rng(seed)
    count = groups + 1  # the last is the new one
    n = np.exp(generator.uniform(np.log(1e3), np.log(1e6), count * ROWS))
    place = np.repeat(np.arange(count), ROWS)
    high, steep = generator.normal(size=count), generator.normal(size=count)
    floors, slopes = 2 + 0.5 * high, 30 * np.exp(0.3 * (high if together else steep))
    clean = floors[place] + slopes[place] * n**-0.35
    y = clean + 0.02 * generator.normal(size=len(n))
    known = place < groups
    X, names = {"n": n[known]}, place[known].astype(str)
    found = fit_groups(fit_formula("2 + 30*n^-0.35", X, y[known]), X, y[known], names)
    said = found.predict_group({"n": n[~known]}, "new", level=LEVEL)
    return float(np.mean((said.low <= clean[~known]) & (clean[~known] <= said.high)))


def measure(quick: bool) -> list[dict[str, Any]]:
    rows = []
    for together in (False, True):
        for groups in (3, 5, 10):
            shares = [held(seed, groups, together=together) for seed in range(10 if quick else 60)]
            case = f"{groups} groups, constants {'together' if together else 'apart'}"
            rows.append(row(case, float(np.mean(shares)), LEVEL, "goal", "share held"))
    return rows


if __name__ == "__main__":
    report("laws_groups", measure, __doc__ or "")

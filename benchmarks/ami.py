"""Adjusted mutual information of 10⁶ labels, ours against scikit-learn's."""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.metrics import adjusted_mutual_info_score

from _common import report, row
from taskmix.numerics import adjusted_mutual_information


def seconds(call: Callable[[], float], repeats: int) -> tuple[float, float]:
    """The least CPU time of a few calls, and what they gave."""
    best, value = float("inf"), float("nan")
    for _ in range(repeats):
        begin = time.process_time()
        value = call()
        best = min(best, time.process_time() - begin)
    return best, value


def measure(quick: bool) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    count = 100_000 if quick else 1_000_000
    repeats = 1 if quick else 3
    for classes in (5, 9, 100):
        generator = np.random.default_rng(classes)
        real = generator.integers(0, classes, count)
        kept = generator.random(count) < 0.9
        other = np.where(kept, real, generator.integers(0, classes, count))
        ours, mine = seconds(lambda: adjusted_mutual_information(real, other), repeats)  # noqa: B023
        peer, theirs = seconds(
            lambda: float(adjusted_mutual_info_score(real, other, average_method="max")),  # noqa: B023
            1 if classes == 100 else repeats,
        )
        case = f"{count} labels of {classes} classes"
        rows.append(row(case, ours, peer, "scikit-learn", "s", ratio=peer / ours))
        rows.append(row(f"{case}, difference", abs(mine - theirs), 0.0, "scikit-learn", "AMI"))
    return rows


if __name__ == "__main__":
    report("ami", measure, __doc__ or "")

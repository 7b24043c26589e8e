"""The tables of RegMix, from $TASKMIX_DATA: proxies of 1 M parameters, test mixtures of two sizes."""

from __future__ import annotations

import csv
import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from taskmix.mixtures import MixtureTable

Floats = NDArray[np.float64]
PROXIES, TEST_1M, TEST_60M = "proxies_1m", "test_1m", "test_60m"


def data_folder() -> Path:
    return Path(os.environ.get("TASKMIX_DATA", "data"))


def regmix(name: str, size: float | None = None) -> MixtureTable:
    """One of the tables, all of it of one size of model."""
    domains, shares = _read(f"{name}_ratios.csv")
    metrics, values = _read(f"{name}_metrics.csv")
    return MixtureTable(
        domains=domains,
        metrics=metrics,
        runs=tuple(str(place) for place in range(len(shares))),
        shares=shares / shares.sum(axis=1, keepdims=True),
        values=values,
        sizes=None if size is None else np.full(len(shares), size),
    )


def _read(name: str) -> tuple[tuple[str, ...], Floats]:
    """The names of the columns and the numbers, without those of the runs."""
    with (data_folder() / "regmix" / name).open(newline="") as lines:
        head, *rows = csv.reader(lines)
    return tuple(head[1:]), np.array([[float(cell) for cell in row[1:]] for row in rows])

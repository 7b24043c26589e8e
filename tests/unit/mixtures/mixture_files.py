"""Two files of runs on mixtures, made from a law that is known, for tests to spoil."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from taskmix.mixtures import MixtureTable

DOMAINS = ("web", "code", "books")
METRICS = ("prose", "python")


def losses_of(shares: np.ndarray) -> np.ndarray:
    """[run, metric]: prose likes web and books, python likes code; more of either helps less."""
    prose = 2.0 + (0.1 + shares @ [1.0, 0.1, 0.6]) ** -0.5
    python = 1.0 + (0.1 + shares @ [0.3, 1.0, 0.0]) ** -0.5
    return np.column_stack([prose, python])


def made_table(runs: int = 24, *, seed: int = 0, noise: float = 0.002) -> MixtureTable:
    """A table by that law."""
    random = np.random.default_rng(seed)
    shares = random.dirichlet(np.ones(len(DOMAINS)), size=runs)
    values = losses_of(shares) + noise * random.standard_normal((runs, len(METRICS)))
    return MixtureTable(
        domains=DOMAINS,
        metrics=METRICS,
        runs=tuple(f"r{place}" for place in range(runs)),
        shares=shares,
        values=values,
    )


def write_rows(path: Path, header: Sequence[str], rows: Sequence[Sequence[Any]]) -> Path:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    return path


def write_table(folder: Path, table: MixtureTable | None = None) -> tuple[Path, Path]:
    """`ratios.csv` and `metrics.csv`, shares with four digits."""
    table = made_table() if table is None else table
    ratios = [
        [run, *np.round(shares, 4)] for run, shares in zip(table.runs, table.shares, strict=True)
    ]
    metrics = [[run, *values] for run, values in zip(table.runs, table.values, strict=True)]
    return (
        write_rows(folder / "ratios.csv", ["run", *table.domains], ratios),
        write_rows(folder / "metrics.csv", ["run", *table.metrics], metrics),
    )


def change_cell(path: Path, row: int, column: str, value: Any) -> None:
    """Another value in a cell; rows are counted from 0, without the header."""
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    rows[row][column] = str(value)
    write_rows(path, list(rows[0]), [list(each.values()) for each in rows])


def drop_rows(path: Path, keep: int) -> None:
    """Leaves the first rows."""
    path.write_text("".join(path.read_text().splitlines(keepends=True)[: keep + 1]))

"""The table of a swarm as two files, as Olmix has them: a row a run, a column a domain or a metric."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Sequence
from pathlib import Path

from taskmix.files import check_output, write_bytes
from taskmix.mixtures._table import MixtureTable

RATIOS, METRICS = "ratios.csv", "metrics.csv"
RUN = "run"  # the first column of both


def check_table_files(folder: Path) -> None:
    """Raises where one of the files is there and has not been written by us."""
    for name in (RATIOS, METRICS):
        check_output(folder / name, is_ours=_is_table, what="the table of the swarm")


def write_table_files(table: MixtureTable, folder: Path) -> tuple[Path, Path]:
    """Writes `ratios.csv` and `metrics.csv` into a folder.

    >>> import numpy as np
    >>> from pathlib import Path
    >>> table = MixtureTable(
    ...     domains=("web", "code"), metrics=("loss",), runs=("a",),
    ...     shares=np.array([[0.5, 0.5]]), values=np.array([[3.25]]),
    ... )
    >>> ratios, metrics = write_table_files(table, Path("."))
    >>> ratios.read_text().split(), metrics.read_text().split()
    (['run,web,code', 'a,0.5,0.5'], ['run,loss', 'a,3.25'])
    """
    check_table_files(folder)
    parts = ((RATIOS, table.domains, table.shares), (METRICS, table.metrics, table.values))
    for name, columns, numbers in parts:
        rows = zip(table.runs, numbers.tolist(), strict=True)
        write_bytes(folder / name, _as_csv((RUN, *columns), rows).encode())
    return folder / RATIOS, folder / METRICS


def _as_csv(header: Sequence[str], rows: Iterable[tuple[str, list[float]]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    for name, numbers in rows:
        writer.writerow([name, *("" if math.isnan(each) else repr(each) for each in numbers)])
    return text.getvalue()


def _is_table(begin: bytes) -> bool:
    return begin.startswith(f"{RUN},".encode())

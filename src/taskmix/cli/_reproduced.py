"""The rows of a reproduction: the paper's figures beside ours."""

from __future__ import annotations

import shlex
import sys
from typing import Any

from taskmix.cli._display import echo, show


def tell_rows(
    experiment: str, rows: list[dict[str, Any]], seconds: float, *, as_json: bool
) -> None:
    """The rows as a table, or as one object."""
    if as_json:
        from taskmix.cli._display import print_json

        print_json(
            {
                "experiment": experiment,
                "command": shlex.join(["taskmix", *sys.argv[1:]]),
                "seconds": round(seconds, 1),
                "rows": rows,
            }
        )
        return
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1))
    table.add_column("quantity", overflow="fold")
    for name in ("paper", "ours", "interval", "n"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        known = row["low"] is not None and row["high"] is not None
        table.add_row(
            row["quantity"],
            _shown(row["paper"]),
            _shown(row["ours"]),
            f"{row['low']:.3g} to {row['high']:.3g}" if known else "-",
            str(row["n"]),
        )
    show(table)
    echo(f"{seconds:.0f} s.")


def _shown(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"

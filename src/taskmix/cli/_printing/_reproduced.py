"""The rows of `taskmix reproduce`, as a table or as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from taskmix.cli._printing._display import echo, print_json, show
from taskmix.cli._printing._repeat import this_command

if TYPE_CHECKING:
    from taskmix.papers import PaperRow


def print_reproduction(
    experiment: str, rows: Sequence[PaperRow], seconds: float, *, as_json: bool
) -> None:
    """The paper's figures beside ours, as a table or as one object."""
    if as_json:
        print_json(
            {
                "experiment": experiment,
                "command": this_command(),
                "seconds": round(seconds, 1),
                "rows": [row.as_json() for row in rows],
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
        is_known = row.low is not None and row.high is not None
        table.add_row(
            row.quantity,
            _shown(row.paper),
            _shown(row.ours),
            f"{row.low:.3g} to {row.high:.3g}" if is_known else "-",
            str(row.n),
        )
    show(table)
    echo(f"{seconds:.0f} s.")


def _shown(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"

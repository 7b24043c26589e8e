"""What the commands of `taskmix reproduce` share: how runs are executed, and rows as a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from taskmix.cli._display import echo, print_json, show
from taskmix.cli._repeat import this_command

if TYPE_CHECKING:
    from taskmix.cli._engines import Engine
    from taskmix.papers import Executor, PaperRow


@contextmanager
def executing(
    name: str, out: Path | None, engine: Engine, workers: int | None, *, quiet: bool
) -> Iterator[Executor]:
    """An executor with a bar, which can be stopped; its study is `out`, or NAME-study."""
    from taskmix.cli._display import counting_bar
    from taskmix.cli._stopping import clean_stop
    from taskmix.engine import own_study
    from taskmix.papers import Executor

    with clean_stop() as should_stop, counting_bar(name, quiet=quiet) as tell:
        yield Executor(
            study=own_study(out or Path(f"{name}-study")),
            engine=engine.value,
            workers=workers,
            on_progress=tell,
            should_stop=should_stop,
        )


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

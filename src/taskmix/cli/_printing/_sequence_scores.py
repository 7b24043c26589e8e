"""What `taskmix sequences score`, `sample` and `adapt` print."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from taskmix.cli._printing._display import echo, print_json, show

if TYPE_CHECKING:
    from taskmix.sequences import TaskShares

_WIDTH = 34  # of a sequence that is shown
_ODD = 0.05  # the p-value that is counted


def print_scores(rows: Sequence[Mapping[str, Any]], *, most: int) -> None:
    """The most surprising and the most typical sequences of each task, and how many are odd."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD)
    for name in ("task", "sequence"):
        table.add_column(name)
    for name in ("surprise", "log-ratio", "P(task)", "p (ratio)", "p (surprise)"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("likeliest")
    tasks = list(dict.fromkeys(str(row["task"]) for row in rows))
    for task in tasks:
        mine = sorted(
            (row for row in rows if str(row["task"]) == task), key=lambda row: row["log_ratio"]
        )
        shown = mine if len(mine) <= 2 * most else [*mine[:most], None, *mine[-most:]]
        for row in shown:
            if row is None:
                left_out = f"... {len(mine) - 2 * most:,} more"
                table.add_row(task, left_out, *[""] * 6)
                continue
            text = str(row["sequence"])
            table.add_row(
                task,
                text if len(text) <= _WIDTH else f"{text[: _WIDTH - 3]}...",
                f"{row['surprise']:.3f}",
                f"{row['log_ratio']:+.2f}",
                f"{2.718281828459045 ** row['log_posterior']:.3f}",
                _p(row["p_ratio"]),
                _p(row["p_surprise"]),
                str(row["likeliest"]),
            )
        if len(tasks) > 1:
            table.add_section()
    show(table, wide=True)
    echo(f"{len(rows):,} sequences, those least like their task first.")
    odd = [row["p_ratio"] for row in rows if row["p_ratio"] is not None]
    if odd:
        count = sum(each <= _ODD for each in odd)
        echo(
            f"{count:,} of {len(odd):,} have a p-value of the ratio of at most {_ODD:g}; of the task's "
            f"own sequences about {_ODD * len(odd):.1f} would."
        )


def print_samples(made: Sequence[str], task: str | None, *, as_json: bool) -> None:
    """One sequence a line."""
    if as_json:
        print_json({"task": task, "sequences": list(made)})
        return
    for each in made:
        echo(each)


def print_shares(shares: TaskShares, out: Path | None, *, as_json: bool) -> None:
    """What new tasks are made of, and how well their next sequence is foreseen."""
    if as_json:
        file = None if out is None else str(out)
        print_json({"level": shares.level, "tasks": shares.rows(), "out": file})
        return
    for place, task in enumerate(shares.tasks):
        level = shares.log_likelihood[place]
        echo(f"{task}: {shares.counts[place]:,} sequences.")
        order = (-shares.mean[place]).argsort()
        for which in order[: max(1, int((shares.mean[place] >= 0.01).sum()))]:
            echo(
                f"  generator {which + 1:<3} {shares.mean[place, which]:6.1%}  "
                f"({shares.low[place, which]:.1%} to {shares.high[place, which]:.1%})"
            )
        if level.n > 1:
            echo(
                f"  log-likelihood of a symbol of its next sequence {level.mean:.3f} "
                f"({level.low:.3f} to {level.high:.3f}), from {level.n} sequences, each while it "
                "was held out"
            )
    echo(f"Intervals of {shares.level:.0%}. The generators are as they were.")
    if out is not None:
        echo(f"Wrote {out}.")


def _p(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"

"""What `taskmix improve` tells people."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from taskmix.cli._display import echo, show

if TYPE_CHECKING:
    from taskmix.counterfactual import StagedImprovement
    from taskmix.records import RunFolder, RunSummary

    Recorded = tuple[RunFolder, RunSummary]


def print_improvement(
    rows: list[dict[str, Any]],
    found: StagedImprovement,
    recorded: list[Recorded],
    notes: list[str],
    out: Path,
) -> None:
    """Draws the table of policies and the plan on standard output."""
    from rich import box
    from rich.table import Table

    steps = sum(summary.step for _, summary in recorded)
    title = f"Mean reward a step, from {len(recorded)} runs and {steps:,} steps (95 % intervals)"
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1))
    for name in ("policy", "value", "gain over logged", "effective rows", "ends at"):
        table.add_column(name, justify="left" if name == "policy" else "right", no_wrap=True)
    for row in rows:
        ends = "-" if row["ends_at"] is None else f"{row['ends_at']:.4f}"
        table.add_row(
            row["policy"], _shown(row), _shown(row["gain"]), f"{row['effective_rows']:,.0f}", ends
        )
    show(table)
    names = ["begin", *found.fixed.tasks]
    shares = Table(title="The plan", title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1))
    if len(names) <= 7:
        for name in names:
            shares.add_column(name, justify="right")
        for begin, line in zip(found.begins, found.probabilities, strict=True):
            shares.add_row(f"{100 * begin:.0f} %", *(f"{share:.3f}" for share in line))
    else:  # many tasks go down, stages across
        shares.add_column("task")
        for begin in found.begins:
            shares.add_column(f"from {100 * begin:.0f} %", justify="right")
        for name, line in zip(found.fixed.tasks, found.probabilities.T, strict=True):
            shares.add_row(name, *(f"{share:.3f}" for share in line))
    show(shares)
    echo(f"Weight of the entropy: {found.fixed.entropy:.4g}. {found.reason}")
    for note in notes:
        echo(f"Note: {note}")
    echo(
        "`ends at` is the mean of exp(-loss) at the end of training, by the learning curves of the logs."
    )
    echo(f"Wrote {out}. Train with it: taskmix train FOLDER --plan {out}")


def _shown(figures: dict[str, Any] | None) -> str:
    if figures is None:
        return "-"
    return f"{figures['value']:.4f} ± {(figures['high'] - figures['low']) / 2:.4f}"

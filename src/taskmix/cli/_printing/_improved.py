"""What `taskmix improve` tells people."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from taskmix.cli._printing._display import echo, show

if TYPE_CHECKING:
    from taskmix.counterfactual import PolicyLessons, PolicyValue, Range

DIVIDED_BY = {
    "both": "The plan is the mean of that policy and of the shares by the learning curves.",
    "entropy": "The plan is that policy.",
    "curves": "The plan is the shares by the learning curves, and not that policy.",
}


def print_improvement(
    lessons: PolicyLessons,
    out: Path,
) -> None:
    """Draws the table of policies and the plan on standard output."""
    from rich import box
    from rich.table import Table

    found = lessons.improvement
    title = (
        f"Mean reward a step, from {len(lessons.runs)} runs and {lessons.steps:,} steps "
        "(95 % intervals)"
    )
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1))
    for name in ("policy", "value", "gain over logged", "effective rows", "ends at"):
        table.add_column(name, justify="left" if name == "policy" else "right", no_wrap=True)
    for row in lessons.policies:
        ends = "-" if row.ends_at is None else f"{row.ends_at:.4f}"
        cells = (_shown(row), _shown(row.gain), f"{row.effective_rows:,.0f}", ends)
        table.add_row(row.policy, *cells)
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
    echo(f"Weight of the entropy: {found.fixed.entropy:.4g}. {DIVIDED_BY[found.fixed.division]}")
    echo(found.reason)
    for note in lessons.notes:
        echo(f"Note: {note}")
    echo("`ends at` is the mean of exp(-loss) at the end of training, by the learning curves.")
    above = next((row.ends_above for row in lessons.policies if row.policy == "learned"), None)
    if above is not None:
        echo(
            f"By them the learned shares end {above.value:+.4f} ({above.low:+.4f} to {above.high:+.4f}) "
            "above the logged ones, transfer between tasks not counted."
        )
    echo(f"Wrote {out}. Train with it: taskmix train FOLDER --plan {out}")


def _shown(figures: PolicyValue | Range | None) -> str:
    if figures is None:
        return "-"
    return f"{figures.value:.4f} ± {(figures.high - figures.low) / 2:.4f}"

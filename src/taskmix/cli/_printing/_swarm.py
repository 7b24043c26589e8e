"""What `taskmix swarm` tells when its members are trained."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import numpy as np

from taskmix.cli._printing._display import echo, note, print_json, show
from taskmix.errors import printable

if TYPE_CHECKING:
    from taskmix.mixtures import TrainedSwarm
    from taskmix.records import Study


def print_swarm(swarm: TrainedSwarm, study: Study, *, as_json: bool) -> None:
    """How far apart the members are on each domain, how fast it was, and the next command."""
    table, speed = swarm.table, swarm.speed
    ratios, metrics = study.path / "ratios.csv", study.path / "metrics.csv"
    command = shlex.join(["taskmix", "mix", str(ratios), str(metrics)])
    if as_json:
        print_json(
            {
                "study": str(study.path),
                "domains": table.domains,
                "metrics": table.metrics,
                "runs": table.runs,
                "shares": table.shares.tolist(),
                "values": table.values.tolist(),
                "failed": [{"run": name, "error": error} for name, error in swarm.failed],
                "member_steps": speed.member_steps,
                "seconds": speed.seconds,
                "member_steps_per_second": speed.steps_a_second,
                "share_of_peak": speed.share_of_peak,
                "next": command,
            }
        )
        return
    _show_spread(swarm)
    if speed.member_steps:
        share = speed.share_of_peak
        of_peak = "" if share is None else f", {100 * share:.1f} % of the device's peak"
        fast = speed.steps_a_second
        echo(
            f"{fast:,.0f} member-steps a second{of_peak}."
            if fast >= 10
            else f"{fast:.1f} member-steps a second."
        )
    for name, error in swarm.failed[:5]:
        note(f"Member {name} is not in the table: {error}")
    if len(swarm.failed) > 5:
        note(f"Nor are {len(swarm.failed) - 5} more members.")
    echo(f"Table: {ratios} and {metrics}, {len(table)} runs.")
    echo(f"Next: {command}")


def _show_spread(swarm: TrainedSwarm) -> None:
    from rich import box
    from rich.table import Table

    shown = Table(title="Bits per byte on dev", title_justify="left", box=box.SIMPLE_HEAD)
    shown.add_column("domain")
    for name in ("best", "middle", "worst", "share in the best"):
        shown.add_column(name, justify="right")
    table = swarm.table
    for place, domain in enumerate(table.domains):
        values = table.values[:, place]
        best = int(np.nanargmin(values))
        shown.add_row(
            printable(domain),
            f"{values[best]:.3f}",
            f"{np.nanmedian(values):.3f}",
            f"{np.nanmax(values):.3f}",
            f"{100 * table.shares[best, place]:.1f} %",
        )
    show(shown)

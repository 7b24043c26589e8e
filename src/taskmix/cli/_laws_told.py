"""What `taskmix laws` prints."""

from __future__ import annotations

import math
from typing import Any

from taskmix.cli._display import echo, show


def print_laws(found: dict[str, Any]) -> None:
    """The front, the law and what was asked of it."""

    for note in found["notes"]:
        echo(note)
    show(_front(found))
    law = found["law"]
    echo(f"Law: {law['formula']}")
    for place, constant in enumerate(law["constants"]):
        drawn = found["bootstrap"][place] if "bootstrap" in found else None
        also = f"; bootstrap {drawn['low']:.4g} to {drawn['high']:.4g}" if drawn else ""
        echo(f"  {constant['value']:.5g} ({constant['low']:.4g} to {constant['high']:.4g}{also})")
    grows = ", ".join(f"{name}: {rate or 'not known'}" for name, rate in law["growth"].items())
    if grows:
        echo(f"For large values it grows like {grows}.")
    if "comparisons" in found:
        show(_comparisons(found["comparisons"]))
    for row in found.get("groups", ()):
        echo(f"  {row['group']} ({row['rows']} rows): {row['formula']}")
    if "prediction" in found:
        told = found["prediction"]
        echo(f"At {_point(told['at'])}: {_with_interval(told)}. {told['warning']}".strip())
    if "gain" in found:
        told = found["gain"]
        gain = _with_interval(told, sign=True)
        echo(f"Change to {_point(told['to'])}: {gain}. {told['warning']}".strip())
    echo(f"{found['rows']} rows, {found['noise']} noise, {found['seconds']:.1f} s.")


def _front(found: dict[str, Any]) -> Any:
    from rich import box
    from rich.table import Table

    left_out = found["left_out"]
    title = (
        "Mean squares on held-out rows, over folds where asked for, and on the largest "
        f"{left_out['input']} with constants from the other rows (beyond)"
    )
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1))
    table.add_column("signs", justify="right")
    table.add_column(f"{found['target']} =", overflow="fold", min_width=30)
    cross = any(
        row["cross_mse"] is not None and row["cross_mse"] == row["cross_mse"]
        for row in found["front"]
    )
    names = ["R²", "MSE", *(["folds"] if cross else [])]
    for name in (*names, "beyond"):
        table.add_column(name, justify="right")
    for row in found["front"]:
        cells = [_shown(row["held_out_r2"]), _shown(row["held_out_mse"])]
        cells += [_shown(row["cross_mse"])] if cross else []
        mark = "→ " if row["chosen"] else "  "
        table.add_row(
            str(row["complexity"]), mark + row["formula"], *cells, _shown(row["left_out_mse"])
        )
    return table


def _comparisons(rows: list[dict[str, Any]]) -> Any:
    from rich import box
    from rich.table import Table

    table = Table(title="Given formulas", title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1))
    table.add_column("formula", overflow="fold")
    for name in ("MSE as given", "rescaled", "refitted", "R²"):
        table.add_column(name, justify="right")
    for row in rows:
        label = (
            row["formula"]
            if row["name"].startswith("given")
            else f"{row['name']}: {row['formula']}"
        )
        table.add_row(
            label,
            *(_shown(row[key]) for key in ("as_given", "rescaled", "refitted", "refitted_r2")),
        )
    return table


def _point(point: dict[str, float]) -> str:
    return ", ".join(f"{name} = {value:g}" for name, value in point.items())


def _with_interval(told: dict[str, Any], *, sign: bool = False) -> str:
    value = f"{told['value']:+.4g}" if sign else f"{told['value']:.4g}"
    return f"{value} ({told['low']:.4g} to {told['high']:.4g})"


def _shown(value: float | None) -> str:
    return "-" if value is None or math.isnan(value) else f"{value:.4g}"

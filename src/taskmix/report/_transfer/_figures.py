"""The figures about transfer: who helps whom, by how much, and how far that can be trusted."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from taskmix.report._drawing import Columns, Figure, Panel, Spec, rounded
from taskmix.report._study import count_of, counted, decimals_for, number, or_nan
from taskmix.report._transfer._charts import effect_dots, heat_map, predicted_against_observed

Transfer = Mapping[str, Any]  # a `transfer.json`
Row = Mapping[str, Any]


def transfer_figure(transfer: Transfer | None) -> Figure | None:
    """A heat map of sources down and targets across."""
    if transfer is None:
        return None
    targets = [target["target"] for target in transfer["targets"]]
    held = {row["source"] for target in transfer["targets"] for row in target["sources"]}
    sources = [name for name in transfer["tasks"] if name in held]
    rows = [(target, row) for target in transfer["targets"] for row in target["sources"]]
    strongest = max((_strength(target, row) for target, row in rows), default=0.0)
    columns = _effect_columns([row for _, row in rows])
    columns["target"] = [target["target"] for target, _ in rows]
    columns["strength"] = [
        rounded(_strength(target, row) / strongest) if strongest > 0 else 0.0
        for target, row in rows
    ]
    columns["told"] = [row["verdict"] != "cannot tell" for _, row in rows]
    panel = Panel(
        "chart-transfer",
        "Gain of each target from each source",
        "transfer",
        columns,
        _verdict_words(transfer),
    )
    caption = (
        f"What a source changes of the target's dev {transfer['measure']}, relative to training it "
        "alone; above zero is better. Blue helps and orange harms, the stronger the deeper (as a share "
        "of the target's outcome alone); an empty cell with a broken outline and a question mark "
        "cannot be told from zero (95 % intervals)."
    )
    if transfer.get("estimate"):
        caption += " Outcomes were estimated from gradients, not measured by training."
    if transfer["groups"]:
        words = "; ".join(" + ".join(group) for group in transfer["groups"])
        caption += f" Groups to train together, by predicted gains: {words}."
    specs = {"transfer": heat_map(sources=sources, targets=targets)}
    return Figure("transfer", caption, (panel,), "none", specs)


def effect_figure(transfer: Transfer | None) -> Figure | None:
    """Gains with intervals, a panel a target."""
    if transfer is None:
        return None
    panels: list[Panel] = []
    specs: dict[str, Spec] = {}
    for place, target in enumerate(transfer["targets"]):
        rows = sorted(target["sources"], key=lambda row: -or_nan(row["gain"]))
        name = f"effects-{place}"
        specs[name] = effect_dots(
            sources=[row["source"] for row in rows], x_title=f"gain in dev {transfer['measure']}"
        )
        chosen = ", ".join(target["chosen"]) or "none"
        described = f"Gains of {target['target']} with intervals. Chosen sources: {chosen}."
        runs = counted(target["subset_runs"], "run")
        note = f"{runs} on {counted(target['subsets'], 'subset')}; train with: {chosen}"
        panels.append(
            Panel(f"chart-{name}", target["target"], name, _effect_columns(rows), described, note)
        )
    caption = (
        "Coefficients of the linear surrogate with 95 % intervals, in the unit of the outcome: right of "
        "zero helps. Triangles up help, triangles down harm, squares do not matter, circles cannot be "
        "told."
    )
    return Figure("effects", caption, tuple(panels), "none", specs)


def prediction_figure(transfer: Transfer | None) -> Figure | None:
    """Held-out subsets: what the linear surrogate predicted and what came of them."""
    if transfer is None:
        return None
    panels: list[Panel] = []
    specs: dict[str, Spec] = {}
    for place, target in enumerate(transfer["targets"]):
        held = target["held_out"]
        values = [row[key] for row in held for key in ("observed", "predicted")]
        if len(held) < 2 or min(values) == max(values):
            continue
        name = f"predictions-{place}"
        margin = 0.05 * (max(values) - min(values))
        specs[name] = predicted_against_observed(
            low=min(values) - margin, high=max(values) + margin, title=transfer["measure"]
        )
        decimals = decimals_for(values)
        columns: Columns = {
            "series": ["held out"] * len(held),
            "predicted": [rounded(row["predicted"]) for row in held],
            "mean": [rounded(row["observed"]) for row in held],
            "sources": [", ".join(row["sources"]) for row in held],
            "size": [str(len(row["sources"])) for row in held],
            "shown": [
                f"{number(row['observed'], decimals)}, {number(row['predicted'], decimals)}"
                for row in held
            ],
        }
        test = target["extrapolation"].get("linear", {})
        note = ", ".join(
            f"{words} {number(or_nan(test[key]['value']), 2)}"
            for key, words in (("spearman", "Spearman"), ("r_squared", "R²"))
            if key in test
        )
        described = f"{counted(len(held), 'held-out subset')} of {target['target']}: {note}."
        panels.append(Panel(f"chart-{name}", target["target"], name, columns, described, note))
    if not panels:
        return None
    caption = (
        "Subsets of other sizes, on which the surrogate was not fitted. On the broken line a prediction "
        "is right; a cloud beside it means that effects do not add up as they are assumed to."
    )
    return Figure("predictions", caption, tuple(panels), "none", specs)


def _effect_columns(rows: Sequence[Row]) -> Columns:
    decimals = decimals_for(or_nan(row["gain"]) for row in rows)
    return {
        "source": [row["source"] for row in rows],
        "series": [row["verdict"] for row in rows],
        "mean": [rounded(or_nan(row["gain"])) for row in rows],
        "low": [rounded(or_nan(row["low"])) for row in rows],
        "high": [rounded(or_nan(row["high"])) for row in rows],
        "shown": [_cell(row, decimals) for row in rows],
        "interval": [
            f"{number(or_nan(row['gain']), decimals)} ({number(or_nan(row['low']), decimals)} to "
            f"{number(or_nan(row['high']), decimals)})"
            for row in rows
        ],
        "further": [
            "" if row["further_subsets"] is None else count_of(row["further_subsets"])
            for row in rows
        ],
    }


def _cell(row: Row, decimals: int) -> str:
    shown = number(or_nan(row["gain"]), decimals)
    sign = "+" if or_nan(row["gain"]) > 0 else ""
    return f"{sign}{shown}{'?' if row['verdict'] == 'cannot tell' else ''}"


def _strength(target: Row, row: Row) -> float:
    alone = abs(or_nan(target["alone"]))
    gain = abs(or_nan(row["gain"])) / (alone if alone > 0 else 1.0)
    return gain if math.isfinite(gain) else 0.0


def _verdict_words(transfer: Transfer) -> str:
    parts = []
    for target in transfer["targets"][:12]:
        told = [
            f"{row['source']} {row['verdict']}"
            for row in target["sources"]
            if row["verdict"] in ("helps", "harms")
        ]
        parts.append(f"{target['target']}: {', '.join(told) or 'nothing can be told'}")
    return f"Transfer by target. {'; '.join(parts)}."

"""The figures about transfer: who helps whom, by how much, and how far that can be trusted."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from taskmix.report._drawing import Columns, Figure, Panel, Spec, rounded
from taskmix.report._study import count_of, counted, decimals_for, number, spread_words
from taskmix.report._transfer._charts import effect_dots, heat_map, predicted_against_observed

if TYPE_CHECKING:
    from taskmix.transfer import SourceRow, TargetRow, TransferDocument


def transfer_figure(transfer: TransferDocument | None) -> Figure | None:
    """A heat map of sources down and targets across."""
    if transfer is None:
        return None
    targets = [target.target for target in transfer.targets]
    held = {row.source for target in transfer.targets for row in target.sources}
    sources = [name for name in transfer.tasks if name in held]
    rows = [(target, row) for target in transfer.targets for row in target.sources]
    strongest = max((_strength(target, row) for target, row in rows), default=0.0)
    columns = _effect_columns([row for _, row in rows])
    columns["target"] = [target.target for target, _ in rows]
    columns["strength"] = [
        rounded(_strength(target, row) / strongest) if strongest > 0 else 0.0
        for target, row in rows
    ]
    columns["told"] = [row.verdict != "cannot tell" for _, row in rows]
    panel = Panel(
        "chart-transfer",
        "Gain of each target from each source",
        "transfer",
        columns,
        _verdict_words(transfer),
    )
    caption = (
        f"What a source changes of the target's dev {transfer.measure}, relative to training it "
        "alone; above zero is better. Blue helps and orange harms, the stronger the deeper (as a share "
        "of the target's outcome alone); an empty cell with a broken outline and a question mark "
        "cannot be told from zero (95 % intervals)."
    )
    if transfer.estimate:
        caption += " Outcomes were estimated from gradients, not measured by training."
    if transfer.groups:
        words = "; ".join(" + ".join(group) for group in transfer.groups)
        caption += f" Groups to train together, by predicted gains: {words}."
    specs = {"transfer": heat_map(sources=sources, targets=targets)}
    return Figure("transfer", caption, (panel,), "none", specs)


def effect_figure(transfer: TransferDocument | None) -> Figure | None:
    """Gains with intervals, a panel a target."""
    if transfer is None:
        return None
    panels: list[Panel] = []
    specs: dict[str, Spec] = {}
    for place, target in enumerate(transfer.targets):
        rows = target.best_first
        name = f"effects-{place}"
        specs[name] = effect_dots(
            sources=[row.source for row in rows], x_title=f"gain in dev {transfer.measure}"
        )
        chosen = ", ".join(target.chosen) or "none"
        described = f"Gains of {target.target} with intervals. Chosen sources: {chosen}."
        runs = counted(target.subset_runs, "run")
        note = f"{runs} on {counted(target.subsets, 'subset')}; train with: {chosen}"
        panels.append(
            Panel(f"chart-{name}", target.target, name, _effect_columns(rows), described, note)
        )
    caption = (
        "Coefficients of the linear surrogate with 95 % intervals, in the unit of the outcome: right of "
        "zero helps. Triangles up help, triangles down harm, squares do not matter, circles cannot be "
        "told."
    )
    return Figure("effects", caption, tuple(panels), "none", specs)


def prediction_figure(transfer: TransferDocument | None) -> Figure | None:
    """Held-out subsets: what the linear surrogate predicted and what came of them."""
    if transfer is None:
        return None
    panels: list[Panel] = []
    specs: dict[str, Spec] = {}
    for place, target in enumerate(transfer.targets):
        held = target.held_out
        pairs = ((row.observed, row.predicted) for row in held)
        values = [value for pair in pairs for value in pair if math.isfinite(value)]
        if len(held) < 2 or not values or min(values) == max(values):
            continue
        name = f"predictions-{place}"
        margin = 0.05 * (max(values) - min(values))
        specs[name] = predicted_against_observed(
            low=min(values) - margin, high=max(values) + margin, title=transfer.measure
        )
        decimals = decimals_for(values)
        columns: Columns = {
            "series": ["held out"] * len(held),
            "predicted": [rounded(row.predicted) for row in held],
            "mean": [rounded(row.observed) for row in held],
            "sources": [", ".join(row.sources) for row in held],
            "size": [str(len(row.sources)) for row in held],
            "shown": [
                f"{number(row.observed, decimals)}, {number(row.predicted, decimals)}"
                for row in held
            ],
        }
        note = ""
        if (test := target.extrapolation.get("linear")) is not None:
            spearman, r_squared = (number(x.value, 2) for x in (test.spearman, test.r_squared))
            note = f"Spearman {spearman}, R² {r_squared}"
        described = f"{counted(len(held), 'held-out subset')} of {target.target}: {note}."
        panels.append(Panel(f"chart-{name}", target.target, name, columns, described, note))
    if not panels:
        return None
    caption = (
        "Subsets of other sizes, on which the surrogate was not fitted. On the broken line a prediction "
        "is right; a cloud beside it means that effects do not add up as they are assumed to."
    )
    return Figure("predictions", caption, tuple(panels), "none", specs)


def _effect_columns(rows: Sequence[SourceRow]) -> Columns:
    decimals = decimals_for(row.gain for row in rows)
    return {
        "source": [row.source for row in rows],
        "series": [row.verdict for row in rows],
        "mean": [rounded(row.gain) for row in rows],
        "low": [rounded(row.low) for row in rows],
        "high": [rounded(row.high) for row in rows],
        "shown": [_cell(row, decimals) for row in rows],
        "interval": [spread_words(row.gain, row.low, row.high, decimals) for row in rows],
        "further": [
            "" if row.further_subsets is None else count_of(row.further_subsets) for row in rows
        ],
    }


def _cell(row: SourceRow, decimals: int) -> str:
    shown = number(row.gain, decimals)
    sign = "+" if row.gain > 0 else ""
    return f"{sign}{shown}{'?' if row.verdict == 'cannot tell' else ''}"


def _strength(target: TargetRow, row: SourceRow) -> float:
    alone = abs(target.alone)
    gain = abs(row.gain) / (alone if alone > 0 else 1.0)
    return gain if math.isfinite(gain) else 0.0


def _verdict_words(transfer: TransferDocument) -> str:
    parts = []
    for target in transfer.targets[:12]:
        told = [
            f"{row.source} {row.verdict}"
            for row in target.sources
            if row.verdict in ("helps", "harms")
        ]
        parts.append(f"{target.target}: {', '.join(told) or 'nothing can be told'}")
    return f"Transfer by target. {'; '.join(parts)}."

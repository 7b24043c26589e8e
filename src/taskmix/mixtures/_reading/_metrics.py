"""Metrics as they were written: numbers or nothing, and which of them should rise."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from taskmix.errors import InputError
from taskmix.mixtures._reading._sheet import Sheet
from taskmix.mixtures._table import Floats

# Words in a name by which a metric is better when it is larger, unless another word says that it falls.
_RISES = frozenset(
    {"acc", "accuracy", "f1", "score", "auc", "bleu", "rouge", "em", "recall", "precision"}
)
_FALLS = frozenset({"loss", "bpb", "bits", "ppl", "perplexity", "error", "err", "nll", "entropy"})


def read_metrics(sheet: Sheet, names: Sequence[str]) -> tuple[Floats, list[str]]:
    """[run, metric], NaN where there is no finite number, and notes."""
    values = np.stack([sheet.numbers(name, "a metric") for name in names], axis=1)
    notes = []
    endless = np.isinf(values)
    if endless.any():
        run, place = np.argwhere(endless)[0]
        values[endless] = np.nan
        notes.append(
            f"{_times(int(endless.sum()), 'infinite metric')} left out as not measured; the first is "
            f"`{names[place]}` in {sheet.place(int(run))}."
        )
    return values, notes


def which_rise(
    metrics: Sequence[str], rising: Sequence[str], falling: Sequence[str]
) -> tuple[tuple[str, ...], list[str]]:
    """Metrics that are better when larger: those that were named, and those whose names say so."""
    for argument, given in (("larger_is_better", rising), ("lower_is_better", falling)):
        unknown = [name for name in given if name not in metrics]
        if unknown:
            raise InputError(
                f"`{argument}` should name metrics. Found `{unknown[0]}`, and the metrics "
                f"{', '.join(metrics[:12])}. Check the spelling.",
                arguments=(argument,),
            )
    guessed = [
        name
        for name in metrics
        if name not in rising and name not in falling and _rises_by_name(name)
    ]
    notes = []
    if guessed:
        notes.append(
            f"Taken to be better when larger, by their names: {', '.join(f'`{n}`' for n in guessed)}. "
            "Name those that should fall in `lower_is_better` (`--minimise`)."
        )
    kept = {*rising, *guessed}
    return tuple(name for name in metrics if name in kept), notes


def _rises_by_name(name: str) -> bool:
    words = set(re.split(r"[^a-z0-9]+", name.lower()))
    return bool(words & _RISES) and not words & _FALLS


def _times(count: int, noun: str) -> str:
    return f"{count} {noun} was" if count == 1 else f"{count} {noun}s were"

"""Held-out figures of models in plain numbers: as they are written, printed and shown on the page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan, nan
from typing import Any, Self

from taskmix.numerics import Interval
from taskmix.sequences._comparison import Compared, MixtureComparison


@dataclass(frozen=True)
class HeldOutFigures:
    """One model on held-out sequences."""

    model: str
    perplexity: float
    accuracy: float | None  # of the next symbol; None for vectors
    error: float | None  # root mean squared, of the next vector; None for symbols
    gain: Interval | None  # of the shared generators over this model; None for themselves

    def to_json(self) -> dict[str, object]:
        """As it is written."""
        gain = self.gain
        return {
            "model": self.model,
            "perplexity": self.perplexity,
            "accuracy": self.accuracy,
            "error": self.error,
            "gain": None
            if gain is None
            else {
                "value": gain.mean,
                "low": None if isnan(gain.low) else gain.low,  # of one sequence
                "high": None if isnan(gain.high) else gain.high,
                "n": gain.n,
            },
        }

    @classmethod
    def from_json(cls, found: Any) -> Self:
        """What `to_json` gave; a LookupError, TypeError or ValueError where it is something else."""
        gain = found["gain"]
        if gain is not None:
            mean = float(gain["value"])
            low, high = (
                nan if gain[name] is None else float(gain[name]) for name in ("low", "high")
            )
            gain = Interval(mean, low, high, n=int(gain["n"]))
        return cls(
            str(found["model"]),
            float(found["perplexity"]),
            None if found["accuracy"] is None else float(found["accuracy"]),
            None if found["error"] is None else float(found["error"]),
            gain,
        )


@dataclass(frozen=True)
class FiguresTable:
    """The figures as words, one cell each; the first column names the model."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def held_out_figures(comparison: MixtureComparison | None) -> tuple[HeldOutFigures, ...]:
    """The rows of a comparison in plain numbers; none where nothing was compared.

    >>> held_out_figures(None)
    ()
    """
    return tuple(_figures(row) for row in comparison.rows) if comparison is not None else ()


def mixture_table(figures: Sequence[HeldOutFigures]) -> FiguresTable:
    """What terminal and page show; columns are as short as 80 characters for a line ask for.

    >>> rows = [HeldOutFigures("shared generators", 6.5, accuracy=0.25, error=None, gain=None)]
    >>> mixture_table(rows).rows
    (('shared generators', '6.5', '25.0%', ''),)
    """
    vectors = any(row.error is not None for row in figures)
    second = "RMS error" if vectors else "next right"
    rows = tuple(
        (row.model, f"{row.perplexity:.4g}", _second_cell(row), _gain_cell(row.gain))
        for row in figures
    )
    return FiguresTable(("model", "perplexity", second, "gain of sharing"), rows)


def held_out_verdict(figures: Sequence[HeldOutFigures]) -> str:
    """What the intervals of the gains say, in a sentence or two.

    >>> from taskmix.numerics import Interval
    >>> gain = Interval(0.2, 0.1, 0.3, n=9)
    >>> held_out_verdict([HeldOutFigures("one pooled model", 7.0, 0.2, None, gain)])
    'Shared generators predict held-out sequences significantly better (95 %) than one pooled model.'
    """
    better: list[str] = []
    worse: list[str] = []
    level: list[str] = []
    for row in figures:
        if row.gain is not None and not isnan(row.gain.low):
            group = better if row.gain.low > 0 else worse if row.gain.high < 0 else level
            group.append(row.model)
    sentences = (
        (
            better,
            "Shared generators predict held-out sequences significantly better (95 %) than {}.",
        ),
        (worse, "They are significantly worse (95 %) than {}."),
        (level, "They do not differ significantly (95 %) from {}."),
    )
    return " ".join(words.format(" and ".join(group)) for group, words in sentences if group)


def _figures(row: Compared) -> HeldOutFigures:
    accuracy = None if isnan(row.accuracy) else row.accuracy
    error = None if isnan(row.error) else row.error
    return HeldOutFigures(row.name, row.perplexity, accuracy, error, row.gain)


def _second_cell(row: HeldOutFigures) -> str:
    if row.error is not None:
        return f"{row.error:.4g}"
    return "" if row.accuracy is None else f"{row.accuracy:.1%}"


def _gain_cell(gain: Interval | None) -> str:
    if gain is None:
        return ""
    if isnan(gain.low):
        return f"{gain.mean:+.3f}"
    return f"{gain.mean:+.3f} ({gain.low:+.3f} to {gain.high:+.3f})"

"""What a page needs to draw a law: curves with bands, the rows behind them, and what others foretell.

It only asks laws for their values: which law is chosen is decided elsewhere, and before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from taskmix.laws._evaluate import Array
from taskmix.laws._front import Front
from taskmix.laws._law import Law

POINTS = 81  # of a curve
MOST_ROWS = 300  # that are drawn; of more, every so many
FURTHER = 2.0  # times the largest value, as far as curves go beyond the data
WIDE = 30.0  # the largest over the smallest value, from which on an axis is logarithmic
OUT_OF_SIGHT = 20.0  # times the largest target: a curve that goes there has a pole, or nearly
QUANTILES = (0.1, 0.9)  # of the input beside, for two more lines


@dataclass(frozen=True)
class LawLine:
    """The law once more, with the input beside at another value."""

    value: float  # of the input beside
    values: tuple[float, ...]


@dataclass(frozen=True)
class LawCurve:
    """The law against one input, the others at their medians."""

    input: str
    others: Mapping[str, float]
    inside: tuple[float, float]  # the range of the data
    by_logarithm: bool
    at: tuple[float, ...]
    values: tuple[float, ...]
    low: tuple[float, ...]  # the ends of the 95 % interval of the law
    high: tuple[float, ...]
    lowest: tuple[float, ...]  # and of one more measurement, which has noise of its own
    highest: tuple[float, ...]
    beside: str = ""  # the other input that matters most
    lines: tuple[LawLine, ...] = ()


@dataclass(frozen=True)
class FarEnd:
    """A point beyond the data, and what each law of the front foretells there."""

    input: str
    at: Mapping[str, float]
    values: tuple[float, ...]  # [law], in the order of the front


@dataclass(frozen=True)
class ObservedRow:
    """A row of the table beside what the law says of it."""

    at: Mapping[str, float]
    observed: float
    predicted: float


@dataclass(frozen=True, kw_only=True)
class LawPicture:
    """Everything a page draws; inputs by how much the law changes with them."""

    curves: tuple[LawCurve, ...]
    far_ends: tuple[FarEnd, ...]
    rows: tuple[ObservedRow, ...]
    warnings: tuple[str, ...]


def picture_laws(front: Front, X: Mapping[str, Any], y: Any) -> LawPicture:
    """The chosen law over the table that it was found in, and a little beyond."""
    law = front.chosen
    columns = {name: np.asarray(X[name], dtype=np.float64) for name in law.ranges}
    target = np.asarray(y, dtype=np.float64)
    order = sorted(law.inputs, key=lambda name: -_effect(law, name))
    curves = tuple(_curve(law, name, order, columns) for name in order)
    return LawPicture(
        curves=curves,
        far_ends=tuple(
            FarEnd(curve.input, point, tuple(_value(each, point) for each in front))
            for curve in curves
            if (point := {**curve.others, curve.input: curve.at[-1]})
            and curve.at[-1] > curve.inside[1]
        ),
        rows=_rows(law, columns, target),
        warnings=tuple(
            words for curve in curves if (words := _warning(law, curve, np.abs(target).max()))
        ),
    )


def _effect(law: Law, name: str) -> float:
    """By how much the law changes over the range of an input, the others at their medians."""
    grid = {other: np.full(POINTS, law.typical[other]) for other in law.ranges}
    values = law.predict(grid | {name: np.linspace(*law.ranges[name], POINTS)}).values
    known = values[np.isfinite(values)]
    return float(np.ptp(known)) if len(known) else 0.0


def _curve(law: Law, name: str, order: Sequence[str], columns: Mapping[str, Array]) -> LawCurve:
    inside = law.ranges[name]
    by_logarithm = inside[0] > 0 and inside[1] / inside[0] >= WIDE
    at = _grid(inside, by_logarithm=by_logarithm)
    others = {other: law.typical[other] for other in law.inputs if other != name}
    grid = {other: np.full(POINTS, law.typical[other]) for other in law.ranges} | {name: at}
    found, measured = law.predict(grid), law.predict(grid, measurement=True)
    beside = next((other for other in order if other != name), "")
    lines: list[LawLine] = []
    for value in np.unique(np.quantile(columns[beside], QUANTILES)) if beside else ():
        moved = law.predict(grid | {beside: np.full(POINTS, value)}).values
        lines.append(LawLine(float(value), _plain(moved)))
    return LawCurve(
        input=name,
        others=others,
        inside=inside,
        by_logarithm=by_logarithm,
        at=_plain(at),
        values=_plain(found.values),
        low=_plain(found.low),
        high=_plain(found.high),
        lowest=_plain(measured.low),
        highest=_plain(measured.high),
        beside=beside,
        lines=tuple(lines),
    )


def _grid(inside: tuple[float, float], *, by_logarithm: bool) -> Array:
    """From the smallest value to beyond the largest; shares end at 1."""
    low, high = inside
    far = high * FURTHER if low > 0 else high + (FURTHER - 1) * (high - low)
    if low >= -0.05 and high <= 1:  # a share, whose estimate may be a little below zero
        far = 1.0
    space = np.geomspace if by_logarithm else np.linspace
    # The edge of the data is a point of its own, so that the shaded part begins where it says.
    return (
        np.union1d(space(low, far, POINTS - 1), [high])[:POINTS]
        if far > high
        else np.linspace(low, high, POINTS)
    )


def _value(law: Law, point: Mapping[str, float]) -> float:
    whole = {**law.typical, **point}
    return float(law.predict({name: [value] for name, value in whole.items()}).values[0])


def _rows(law: Law, columns: Mapping[str, Array], target: Array) -> tuple[ObservedRow, ...]:
    places = np.unique(np.linspace(0, len(target) - 1, min(len(target), MOST_ROWS)).astype(int))
    predicted = law.predict({name: column[places] for name, column in columns.items()}).values
    return tuple(
        ObservedRow(
            {name: float(columns[name][place]) for name in law.inputs},
            float(target[place]),
            float(value),
        )
        for place, value in zip(places, predicted, strict=True)
    )


def _warning(law: Law, curve: LawCurve, largest: float) -> str:
    values = np.array(curve.values)
    wild = ~np.isfinite(values) | (np.abs(values) > OUT_OF_SIGHT * largest)
    if not wild.any():
        return ""
    first = curve.at[int(np.argmax(wild))]
    where = "beyond the data" if first > curve.inside[1] else "inside the range of the data"
    return (
        f"Near {curve.input} = {first:.4g}, {where}, the law has no value that {law.target} could have: "
        "a pole, or the edge of where the formula is defined. Do not use it there."
    )


def _plain(values: Array) -> tuple[float, ...]:
    """Five digits, which is more than a drawing shows."""
    return tuple(float(f"{value:.5g}") for value in values)

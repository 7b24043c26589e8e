"""Changes of scale of the target, under which many laws are sums."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from taskmix.laws._evaluate import Array, Columns
from taskmix.laws._expression import Expression, Number, free
from taskmix.laws._fit import Observations
from taskmix.laws._normal import log, multiply, raise_to


@dataclass(frozen=True)
class Scale:
    """A change of scale of the target: there, its slope, and back for a tree."""

    name: str
    there: Callable[[Array], Array]
    slope: Callable[[Array], Array]
    back: Callable[[Expression], Expression]


def _to(power: float) -> Callable[[Expression], Expression]:
    return lambda total: raise_to(total, Number(power))


PLAIN = Scale("plain", lambda y: y, np.ones_like, lambda total: total)
SCALES = (
    Scale("square", np.square, lambda y: 2 * y, _to(0.5)),
    Scale("reciprocal", lambda y: 1 / y, lambda y: 1 / y**2, _to(-1.0)),
    Scale("root", np.sqrt, lambda y: 0.5 / np.sqrt(y), _to(2.0)),
)
LOGARITHMS = (0.1, 0.2, 0.4, 0.7, 1.2, 2.5)  # a of y = a log(sum), in spans of the target


def _exponential(a: float) -> Scale:
    return Scale(
        f"exp {a:g}",
        lambda y: np.exp(y / a),
        lambda y: np.exp(y / a) / a,
        lambda total: multiply(free(a), log(total)),
    )


def scales_of(data: Observations) -> list[Scale]:
    span = float(np.ptp(data.target)) or 1.0
    return [PLAIN, *SCALES, *(_exponential(span * share) for share in LOGARITHMS)]


def beyond(sign: float, offset: float) -> Scale:
    return Scale(
        f"log beyond {offset:g}",
        lambda y: np.log(sign * (y - offset)),
        lambda y: 1 / np.abs(y - offset),
        lambda total: total,
    )


LOGARITHM = Scale("log", np.log, lambda y: 1 / y, lambda total: total)


@dataclass(frozen=True, eq=False)
class ScaledRows:
    """The rows under a scale; those it cannot take are left out."""

    columns: Columns
    wanted: Array  # weighted
    weight: Array


def scaled_rows(data: Observations, scale: Scale) -> ScaledRows | None:
    with np.errstate(all="ignore"):
        slope = scale.slope(data.target)
        kept = np.isfinite(scale.there(data.target)) & np.isfinite(slope) & (slope > 0)
    if kept.mean() < 0.9:
        return None
    rows = data.rows(np.flatnonzero(kept)) if not kept.all() else data
    weight = rows.weight / np.abs(scale.slope(rows.target))
    weight = weight / weight.mean()
    return ScaledRows(rows.columns, scale.there(rows.target) * weight, weight)

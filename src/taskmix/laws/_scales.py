"""Changes of scale of the target, under which many laws are sums.

A product is a sum in logarithms, and so is a law that holds a product inside: `scales_inside` undoes
what is around it, c + P, 1 / (c + P), a log(1 + P) or a (1 - exp(-P)), with c and a in a few places.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from taskmix.laws._evaluate import Array, Columns
from taskmix.laws._expression import ONE, Expression, Number, free
from taskmix.laws._fit import Observations
from taskmix.laws._normal import add, exp, log, multiply, negative, raise_to


@dataclass(frozen=True)
class Scale:
    """A change of scale of the target: there, its slope, and back for a tree."""

    name: str
    there: Callable[[Array], Array]
    slope: Callable[[Array], Array]
    back: Callable[[Expression], Expression]


def _to(power: float, *, is_free: bool = False) -> Callable[[Expression], Expression]:
    return lambda total: raise_to(total, Number(power, free=is_free))


PLAIN = Scale("plain", lambda y: y, np.ones_like, lambda total: total)
SQUARE = Scale("square", np.square, lambda y: 2 * y, _to(0.5))
RECIPROCAL = Scale("reciprocal", lambda y: 1 / y, lambda y: 1 / y**2, _to(-1.0))
LOGARITHM = Scale("log", np.log, lambda y: 1 / y, exp)
PRODUCT = Scale("log of a product", np.log, lambda y: 1 / y, lambda product: product)
SCALES = (
    SQUARE,
    RECIPROCAL,
    Scale("root", np.sqrt, lambda y: 0.5 / np.sqrt(y), _to(2.0)),
    # Other powers of sums: the fit that follows moves the exponent.
    Scale("cube", lambda y: y**3, lambda y: 3 * y**2, _to(1 / 3, is_free=True)),
    Scale("square below", lambda y: y**-2, lambda y: 2 / y**3, _to(-0.5, is_free=True)),
)
OFFSETS = (0.03, 0.2, 1.0)  # of the constant beside a product, in spans of the target
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
    return [PLAIN, *SCALES, LOGARITHM, *(_exponential(span * share) for share in LOGARITHMS)]


def _beside(sign: float, offset: float, outer: Scale) -> Scale:
    """The logarithm of P where the target is c + P or c - P under another scale."""
    return Scale(
        f"log of {outer.name} beyond {offset:g}",
        lambda y: np.log(sign * (outer.there(y) - offset)),
        lambda y: outer.slope(y) / np.abs(outer.there(y) - offset),
        lambda product: outer.back(add(free(offset), multiply(Number(sign), product))),
    )


def _in_logarithm(a: float) -> Scale:
    """The logarithm of P where the target is a log(1 + P)."""
    return Scale(
        f"log in {a:g} log",
        lambda y: np.log(np.expm1(y / a)),
        lambda y: 1 / (-a * np.expm1(-y / a)),
        lambda product: multiply(free(a), log(add(ONE, product))),
    )


def _in_approach(a: float) -> Scale:
    """The logarithm of P where the target is a (1 - exp(-P))."""
    return Scale(
        f"log in approach to {a:g}",
        lambda y: np.log(-np.log1p(-y / a)),
        lambda y: -1 / ((a - y) * np.log1p(-y / a)),
        lambda product: multiply(free(a), add(ONE, negative(exp(negative(product))))),
    )


def scales_beside(data: Observations, outer: Scale = PLAIN) -> Iterator[Scale]:
    """What leaves the logarithm of a product that a constant stands beside."""
    with np.errstate(all="ignore"):
        values = outer.there(data.target)
    if not np.isfinite(values).all():
        return
    low, high = float(values.min()), float(values.max())
    for share in OFFSETS:
        yield _beside(1.0, low - share * (high - low), outer)
        yield _beside(-1.0, high + share * (high - low), outer)


def scales_inside(data: Observations) -> Iterator[Scale]:
    """What leaves the logarithm of a product inside other functions."""
    if np.any(data.target <= 0):
        return
    for outer in (RECIPROCAL, SQUARE, LOGARITHM):
        yield from scales_beside(data, outer)
    low, high = float(data.target.min()), float(data.target.max())
    for share in LOGARITHMS:
        yield _in_logarithm(share * (high - low))
    for share in OFFSETS:
        yield _in_approach(high + share * (high - low))


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
    wanted = scale.there(rows.target) * weight
    # The exponential of a value that is large beside how much values vary: no regression can square it.
    if not np.isfinite(wanted @ wanted):
        return None
    return ScaledRows(rows.columns, wanted, weight)

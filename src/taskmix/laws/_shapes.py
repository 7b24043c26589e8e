"""What a variable can do in a law: the one-variable shapes the search knows.

A *factor* multiplies: x^p, (log x + c)^p, (x + c)^p, (c - x)^p, (x / (x + c))^p, (x + c sqrt(x))^p,
(1 - exp(-kx))^p, (1 + c exp(-kx))^p, log(1 + kx)^p,
log(x + c)^p, exp(kx), and of signed variables exp(-k (x - m)^2).
A *term* is added: a x^p, a log x, a x / (x + c), a exp(-kx), a log(x + c).

Exponents p of factors and coefficients a of terms are found by linear regression, so only the inner
constants c and k need a grid; the fit that follows moves them freely. Shapes that a column's values do
not allow (a logarithm of zero) are left out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from taskmix.laws._evaluate import Array, Columns
from taskmix.laws._expression import ONE, Expression, Number, Variable, free
from taskmix.laws._normal import add, exp, log, multiply, negative, quotient, raise_to

Build = Callable[[float], Expression]
POLYNOMIAL = {1.0: "power", 2.0: "square", 3.0: "cube"}  # what negative values can be raised to
EXPONENTS = (-2.0, -1.0, -0.5, -1 / 3, -0.25, 0.25, 1 / 3, 0.5, 1.0, 2.0)


@dataclass(frozen=True, eq=False)
class Feature:
    """A shape with its inner constant: `values` is what a regression sees, `build` the tree.

    Of a factor, `values` is its logarithm and `build(p)` the factor to the power p, which is free; of
    a term, `build(a)` is a times the term. `base` is the factor itself where it has a constant inside
    that can make up for a fixed exponent.
    """

    kind: str
    variables: tuple[str, ...]
    values: Array
    build: Build
    base: Expression | None = None


def factor_features(name: str, column: Array, count: int = 12) -> list[Feature]:
    """The factors a variable can be."""
    x = Variable(name)
    found = []

    def offer(kind: str, values: Array, build: Expression | Build) -> None:
        if np.isfinite(values).all() and np.ptp(values) > 0:
            if isinstance(build, Expression):
                found.append(Feature(kind, (name,), values, _powered(build), build))
            else:
                found.append(Feature(kind, (name,), values, build))

    with np.errstate(all="ignore"):
        offer("power", np.log(column), _powered(x))
        offer("exponential", column.copy(), _exponential(x))
        if np.all(column > 0):
            for value in (-1.0, -0.5, 0.5):
                inner = raise_to(x, Number(value))
                offer(f"exponential {value}", column**value, _exponential(inner))
        else:  # a bell, of what can lie on both sides of its middle
            for middle in np.quantile(column, np.linspace(0.1, 0.9, count)):
                inner = raise_to(add(x, free(-middle)), Number(2.0))
                offer("bell", (column - middle) ** 2, _exponential(inner))
        for c in _log_shifts(column, count):
            offer("log", np.log(np.log(column) + c), add(log(x), free(c)))
        for c in _scales(column, count):
            saturating = np.log(column / (column + c))
            offer("shift", np.log(column + c), add(x, free(c)))
            offer("saturation", saturating, quotient(x, add(x, free(c))))
            if np.all(column > 0):
                mixed = add(x, multiply(free(np.sqrt(c)), raise_to(x, Number(0.5))))
                offer("mixed", np.log(column + np.sqrt(c * column)), mixed)
            offer(
                "log shift", np.log(np.log1p(column / c)), log(add(ONE, multiply(free(1 / c), x)))
            )
            approach = add(ONE, negative(exp(multiply(free(-1 / c), x))))
            offer("approach", np.log(-np.expm1(-column / c)), approach)
        for c in _ceilings(column, count // 2):
            offer("gap", np.log(c - column), add(free(c), negative(x)))
        for k, middle in _bends(column, count // 2):
            bend = add(ONE, multiply(free(np.exp(k * middle)), exp(multiply(free(-k), x))))
            offer("logistic", np.log1p(np.exp(-k * (column - middle))), bend)
    return found


def term_features(name: str, column: Array, count: int = 12) -> list[Feature]:
    """The terms a variable can add."""
    x = Variable(name)
    found = []

    def offer(kind: str, values: Array, term: Expression) -> None:
        if np.isfinite(values).all() and np.ptp(values) > 0:
            found.append(Feature(kind, (name,), values, _scaled(term)))

    with np.errstate(all="ignore"):
        for p in (*EXPONENTS, 3.0) if np.any(column < 0) else EXPONENTS:
            roots = np.all(column > 0) or (p > 0 and np.all(column >= 0))
            if roots or p in POLYNOMIAL:
                offer(POLYNOMIAL.get(p, "power"), column**p, raise_to(x, Number(p)))
            if roots:
                offer("free power", column**p, raise_to(x, free(p)))
        if np.all(column > 0):
            offer("log", np.log(column), log(x))
        for c in _scales(column, count):
            offer("saturation", column / (column + c), quotient(x, add(x, free(c))))
            offer("exponential", np.exp(-column / c), exp(multiply(free(-1 / c), x)))
            offer("log shift", np.log(column + c), log(add(x, free(c))))
    return found


def cross_features(columns: Columns) -> list[Feature]:
    """Products of powers of two variables, as terms."""
    positive = [name for name, column in columns.items() if np.all(column > 0)]
    found = []
    for place, first in enumerate(positive):
        for second in positive[place + 1 :]:
            for p, q in ((1, 1), (1, -1), (-1, 1), (0.5, 0.5), (0.5, 1), (1, 0.5), (-0.5, -0.5)):
                term = multiply(
                    raise_to(Variable(first), free(p)), raise_to(Variable(second), free(q))
                )
                values = columns[first] ** p * columns[second] ** q
                found.append(Feature("cross", (first, second), values, _scaled(term)))
    return found


def joint_factors(columns: Columns, count: int = 8) -> list[Feature]:
    """GroupFactors of two variables that are no products: x + c z and 1 + c x z."""
    found = []
    kept = [name for name, column in columns.items() if np.all(column > 0)]
    for first, second in combinations(kept, 2):
        x, z = Variable(first), Variable(second)
        ratio, both = columns[first] / columns[second], columns[first] * columns[second]
        for c in np.geomspace(ratio.min() / 3, ratio.max() * 3, count):
            total = add(x, multiply(free(c), z))
            values = np.log(columns[first] + c * columns[second])
            found.append(Feature("joint sum", (first, second), values, _powered(total), total))
        for c in np.geomspace(1 / (3 * both.max()), 3 / both.min(), count):
            total = add(ONE, multiply(free(c), x, z))
            values = np.log1p(c * both)
            found.append(Feature("joint product", (first, second), values, _powered(total), total))
    return found


def _powered(base: Expression) -> Build:
    return lambda p: raise_to(base, free(p))


def _exponential(inner: Expression) -> Build:
    return lambda k: exp(multiply(free(k), inner))


def _scaled(term: Expression) -> Build:
    return lambda a: multiply(free(a), term)


def _scales(column: Array, count: int) -> Array:
    """Places for c of x + c: from a fraction of the smallest value to well above the largest."""
    if np.any(column < 0):
        return np.array([])
    positive = column[column > 0]
    return np.geomspace(positive.min() / 10, positive.max() * 5, count)


def _ceilings(column: Array, count: int) -> Array:
    """Places for c of c - x: above the largest value, then further and further."""
    return np.asarray(column.max() + np.ptp(column) * np.geomspace(0.02, 2, count))


def _bends(column: Array, count: int) -> list[tuple[float, float]]:
    """Steepness and middle of 1 + exp(-k (x - m)), where it bends within the data."""
    steepness = np.geomspace(2, 20, count) / np.ptp(column)
    middles = np.quantile(column, [0.2, 0.5, 0.8])
    return [(float(k), float(m)) for k in steepness for m in middles]


def _log_shifts(column: Array, count: int) -> Array:
    """Places for c of log x + c: above zero everywhere, then further and further."""
    if np.any(column <= 0):
        return np.array([])
    lowest = np.log(column.min())
    found = -lowest + np.geomspace(0.05, 20, count)
    # No shift at all where the logarithm is positive by itself.
    return np.append(found, 0.0) if lowest > 0.05 else found

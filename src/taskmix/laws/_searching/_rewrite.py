"""Formulas said otherwise: a factor that terms share, and functions that hardly bend."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from taskmix.laws._forms import (
    Columns,
    Exponential,
    Expression,
    Logarithm,
    Number,
    Power,
    Product,
    Program,
    Sum,
    add,
    exchange,
    free,
    multiply,
)


def factored(expression: Expression) -> Iterator[Expression]:
    """Terms of a sum that have like factors, with one such factor before them all.

    Like factors differ in constants at most: a u T^p + b v T^q becomes (a u + b v) T^p.
    """
    for node in expression.walk():
        if not isinstance(node, Sum):
            continue
        shared: dict[tuple[str, bool], list[tuple[Expression, Expression]]] = {}
        for term in node.terms:
            for factor in term.factors if isinstance(term, Product) else (term,):
                if not isinstance(factor, Number):
                    shared.setdefault(_likeness(factor), []).append((term, factor))
        for pairs in shared.values():
            if len(pairs) > 1:
                terms = [term for term, _ in pairs]
                inner = add(*(_without(term, factor) for term, factor in pairs))
                others = [term for term in node.terms if term not in terms]
                yield exchange(expression, node, add(*others, multiply(inner, pairs[0][1])))


def _likeness(factor: Expression) -> tuple[str, bool]:
    """What like factors have in common: the base, and on which side of the line it is."""
    if isinstance(factor, Power) and isinstance(factor.exponent, Number):
        return factor.base.key, factor.exponent.value > 0
    return factor.key, True


def _without(term: Expression, factor: Expression) -> Expression:
    if not isinstance(term, Product):
        return Number(1.0)
    return multiply(*(other for other in term.factors if other is not factor))


def straightened(program: Program, columns: Columns) -> Iterator[Expression]:
    """The formula with one logarithm, exponential or power of a sum made its tangent.

    The tangent is at the middle of what the function is taken of, on the rows at hand.
    """
    values, _ = program.sensitivities(columns, program.start)
    for node, step in zip(program.nodes, program.steps, strict=True):
        if not (isinstance(node, Logarithm | Exponential) or _is_power_of_sum(node)):
            continue
        middle = float(np.median(values[step.children[0]]))
        try:
            height, slope = _tangent(node, middle)
        except (ValueError, OverflowError, ZeroDivisionError):
            continue
        line = add(free(height - slope * middle), multiply(free(slope), node.children[0]))
        yield exchange(program.expression, node, line)


def _is_power_of_sum(node: Expression) -> bool:
    return isinstance(node, Power) and isinstance(node.base, Sum) and not node.exponent.variables


def _tangent(node: Expression, at: float) -> tuple[float, float]:
    """Height and slope of a function."""
    if isinstance(node, Logarithm):
        return math.log(at), 1 / at
    if isinstance(node, Exponential):
        return math.exp(at), math.exp(at)
    power = node.children[1].value if isinstance(node.children[1], Number) else 1.0
    return math.pow(at, power), power * math.pow(at, power - 1)

"""Whether two formulas are one but for constants: each, every number free, can become the other."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from taskmix.laws._evaluate import Array, evaluate_formula
from taskmix.laws._expression import Expression, Number, Power, Sum, free
from taskmix.laws._fit import Observations, fit_constants
from taskmix.laws._normal import add, multiply, substitute
from taskmix.laws._parse import free_numbers, parse_formula


def is_same_form(
    expression: Expression, formula: str, ranges: Mapping[str, tuple[float, float]]
) -> bool:
    """Fits each to the other's values at points over the ranges."""
    other = free_numbers(parse_formula(formula))
    if not other.variables <= set(ranges):
        return False
    grid = _grid(ranges)
    return _contains(expression, evaluate_formula(other, grid), grid) and _contains(
        other, evaluate_formula(expression, grid), grid
    )


def _open(expression: Expression, *, exponents: bool) -> Expression:
    """The formula with every number free, the exponents if asked, and factors where it has none."""

    def change(node: Expression) -> Expression | None:
        if isinstance(node, Sum):
            return add(*(multiply(free(1.0), substitute(term, change)) for term in node.terms))
        if isinstance(node, Power) and isinstance(node.exponent, Number):
            moves = exponents or node.exponent.free
            return Power(substitute(node.base, change), Number(node.exponent.value, free=moves))
        return None

    return multiply(free(1.0), substitute(free_numbers(expression), change))


def _grid(ranges: Mapping[str, tuple[float, float]]) -> dict[str, Array]:
    """Points spread over the ranges, the same each time."""
    generator = np.random.default_rng(0)
    return {name: generator.uniform(low, high, 200) for name, (low, high) in ranges.items()}


def _contains(form: Expression, values: Array, grid: dict[str, Array]) -> bool:
    """Whether some constants make the form these values."""
    if not np.isfinite(values).all():
        return False
    size = np.abs(values).max()
    data = Observations(grid, values, 1 / np.maximum(np.abs(values), 1e-3 * size))
    # An exponent cannot move where what it raises is negative somewhere.
    return any(
        fit_constants(_open(form, exponents=moves), data, steps=400, tolerance=1e-15).mean_square
        < 1e-10
        for moves in (True, False)
    )

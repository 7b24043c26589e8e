"""Laws drawn at random, so that nobody chose them: one shape for each of one to three variables, joined
by products, quotients and sums, mostly inside another function. The balanced design, 2 % noise.

A draw is kept where the law can be seen at all: it is positive, its values span less than a factor of
10,000, and shuffling any of its variables moves them by more than twice the noise.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from _laws_known import NOISE, Columns, Known, balanced, far_outside
from taskmix.laws import evaluate_formula, parse_formula

MATTERS = 2.5 * NOISE
VARIES = 4 * NOISE
SHAPES = ("power", "power", "power", "log", "log + c", "saturation", "approach", "shift", "decay")
AROUND = ("nothing", "nothing", "nothing", "above", "below", "root", "log", "reciprocal", "square")


def drawn(count: int, seed: int = 0) -> Iterator[tuple[str, Known]]:
    """Laws with their tables."""
    number = 0
    while count:
        generator = np.random.default_rng([seed, number])
        number += 1
        formula = _formula(generator)
        if formula is not None:
            count -= 1
            yield formula, _table(formula, generator)


def _table(formula: str, generator: np.random.Generator) -> Known:
    expression = parse_formula(formula)
    columns, outside = (
        {name: column for name, column in design(generator).items() if name in expression.variables}
        for design in (balanced, far_outside)
    )
    values = evaluate_formula(expression, columns)
    target = values * (1 + NOISE * generator.normal(size=len(values)))
    return Known(formula, columns, target, outside, evaluate_formula(expression, outside))


def _formula(generator: np.random.Generator) -> str | None:
    columns = balanced(generator)
    names = generator.permutation(list(columns))[: generator.choice([1, 2, 2, 3, 3])].tolist()
    parts = [_shape(name, columns[name], generator) for name in names]
    inner = parts[0]
    for part in parts[1:]:
        sign = generator.choice(["*", "*", "/", "+", "+"])
        if sign == "+":  # terms that vary about as much
            ratio = np.std(_values(inner, columns)) / np.std(_values(part, columns))
            inner = f"({inner} + {_near(ratio, generator)}*{part})"
        else:
            inner = f"{inner}{sign}({part})"
    typical = float(np.median(_values(inner, columns)))
    if typical <= 0:
        return None
    formula = _around(inner, _values(inner, columns), generator)
    return formula if _can_be_seen(formula, columns, generator) else None


def _shape(name: str, column: NDArray[np.float64], generator: np.random.Generator) -> str:
    low, high = float(column.min()), float(column.max())
    c = _between(np.sqrt(low * high) / 3, high, generator)
    odd = _between(0.15, 0.9, generator)
    exponent = generator.choice([0.5, 1.0, -0.5, -1.0, 2.0, odd, -odd])
    return {
        "power": f"{name}^{exponent:g}",
        "log": f"log({name})" if low > 1.5 else f"log({name} + 1)",
        "log + c": f"(log({name}) + {_between(0.5, 4, generator) if low >= 1 else 3})",
        "saturation": f"{name}/({name} + {c})",
        "approach": f"(1 - exp(-{name}/{c}))",
        "shift": f"({name} + {c})",
        "decay": f"exp(-{name}/{c})",
    }[str(generator.choice(SHAPES))]


def _around(inner: str, values: NDArray[np.float64], generator: np.random.Generator) -> str:
    typical = float(f"{np.median(values):.2g}")
    above = float(f"{values.max() / typical * generator.uniform(1.1, 1.6):.2g}")
    return {
        "nothing": inner,
        "above": f"{_between(0.3, 2, generator)} + ({inner})/{typical:g}",
        "below": f"{above:g} - ({inner})/{typical:g}",
        "root": f"sqrt({inner})",
        "log": f"log(1 + ({inner})/{typical:g})",
        "reciprocal": f"1/(1 + ({inner})/{typical:g})",
        "square": f"({inner})^2",
    }[str(generator.choice(AROUND))]


def _can_be_seen(formula: str, columns: Columns, generator: np.random.Generator) -> bool:
    values = _values(formula, columns)
    if not np.isfinite(values).all() or values.min() <= 0 or values.max() > 1e4 * values.min():
        return False
    for name in parse_formula(formula).variables:
        shuffled = {**columns, name: generator.permutation(columns[name])}
        if np.sqrt(np.mean((_values(formula, shuffled) / values - 1) ** 2)) < MATTERS:
            return False
    return bool(np.std(np.log(values)) >= VARIES)


def _values(formula: str, columns: Columns) -> NDArray[np.float64]:
    return evaluate_formula(parse_formula(formula), columns)


def _between(low: float, high: float, generator: np.random.Generator) -> float:
    return float(f"{np.exp(generator.uniform(np.log(low), np.log(high))):.2g}")


def _near(value: float, generator: np.random.Generator) -> float:
    return float(f"{value * _between(0.4, 2.5, generator):.2g}")

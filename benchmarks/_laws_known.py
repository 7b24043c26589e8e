"""Laws whose tables are made here, so that what should be found is known: those required, and others
drawn at random.

Laws drawn at random, so that nobody chose them: one shape for each of one to three variables, joined
by products, quotients and sums, mostly inside another function. The balanced design, 2 % noise.

A draw is kept where the law can be seen at all: it is positive, its values span less than a factor of
10,000, and shuffling any of its variables moves them by more than twice the noise.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from taskmix.laws import PAPER_LAWS, evaluate_formula, parse_formula

Columns = dict[str, NDArray[np.float64]]
NOISE = 0.02
MATTERS = 2.5 * NOISE
VARIES = 4 * NOISE
SHAPES = ("power", "power", "power", "log", "log + c", "saturation", "approach", "shift", "decay")
AROUND = ("nothing", "nothing", "nothing", "above", "below", "root", "log", "reciprocal", "square")

REQUIRED = {
    **{name: PAPER_LAWS[name] for name in ("eq3", "eq4", "eq5", "eq6", "eq9", "eq10", "eq11")},
    "G1": "20 + 4000*n^-0.34 + 10*T^-0.28",
    "G2": "sqrt(n*ami + 300*T)",
    "G3": "n^0.37*(1 - exp(-T/4))/(1 + 2*ami)",
}


@dataclass(frozen=True, eq=False)
class Known:
    """A table with noise, and the truth far outside it."""

    formula: str
    columns: Columns
    target: NDArray[np.float64]
    far: Columns
    far_target: NDArray[np.float64]

    def error_outside(self, predicted: NDArray[np.float64]) -> float:
        """The 90th percentile of relative errors; infinite where nothing is predicted."""
        with np.errstate(all="ignore"):
            errors = np.abs(predicted / self.far_target - 1)[self.far_target != 0]
        worst = np.where(np.isfinite(errors), errors, np.inf)
        return float(np.quantile(worst, 0.9, method="higher"))


def make(formula: str, seed: int, *, rows: int | None = None, noise: float = NOISE) -> Known:
    """The paper's designs with 2 % noise, or fewer rows and another noise; outside, n is 10 times
    smaller to 5 times larger.
    """
    expression = parse_formula(formula)
    generator = np.random.default_rng(seed)
    small = not expression.variables & {"n_ner", "n_syn"} and formula not in (
        REQUIRED["eq9"],
        REQUIRED["eq10"],
    )
    design = balanced if small else unbalanced
    columns = design(generator) if rows is None else design(generator, rows)
    return _table(formula, columns, generator, noise)


def _table(formula: str, columns: Columns, generator: np.random.Generator, noise: float) -> Known:
    expression, outside = parse_formula(formula), far_outside(generator)
    used, far = (
        {name: column for name, column in each.items() if name in expression.variables}
        for each in (columns, outside)
    )
    values = evaluate_formula(expression, used)
    target = values * (1 + noise * generator.normal(size=len(values)))
    return Known(formula, used, target, far, evaluate_formula(expression, far))


def balanced(generator: np.random.Generator, rows: int = 1002) -> Columns:
    return {
        "n": generator.choice(np.arange(1000.0, 20001.0, 500.0), rows),
        "T": generator.integers(1, 16, rows).astype(np.float64),
        "ami": generator.uniform(0.13, 1.0, rows),
    }


def unbalanced(generator: np.random.Generator, rows: int = 1555) -> Columns:
    return {
        "n_ner": generator.choice([1000.0, 1500.0, 2000.0, 2500.0], rows),
        "n_syn": generator.choice(np.arange(2000.0, 6001.0, 1000.0), rows),
        "T": generator.integers(1, 31, rows).astype(np.float64),
        "ami": generator.choice([0.13, 0.22, 0.43, 0.55, 0.61, 0.71, 0.8, 0.91], rows),
    }


def far_outside(generator: np.random.Generator, rows: int = 2000) -> Columns:
    def spread(low: float, high: float) -> NDArray[np.float64]:
        return np.exp(generator.uniform(np.log(low), np.log(high), rows))

    return {
        "n": spread(100, 100_000),
        "n_ner": spread(100, 12_500),
        "n_syn": spread(200, 30_000),
        "T": generator.integers(1, 61, rows).astype(np.float64),
        "ami": generator.uniform(0.05, 1.0, rows),
    }


def drawn(count: int, seed: int = 0) -> Iterator[tuple[str, Known]]:
    """Laws with their tables."""
    number = 0
    while count:
        generator = np.random.default_rng([seed, number])
        number += 1
        formula = _formula(generator)
        if formula is not None:
            count -= 1
            yield formula, _table(formula, balanced(generator), generator, NOISE)


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

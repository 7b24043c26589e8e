"""Tables made from known laws, with noise in proportion to the value."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from taskmix.laws import PAPER_LAWS, evaluate_formula, parse_formula

Columns = dict[str, NDArray[np.float64]]

FURTHER_LAWS = {
    "G1": "20 + 4000*n^-0.34 + 10*T^-0.28",
    "G2": "sqrt(n*ami + 300*T)",
    "G3": "n^0.37*(1 - exp(-T/4))/(1 + 2*ami)",
}


def balanced(seed: int, rows: int = 1002) -> Columns:
    """The paper's balanced design, drawn at random."""
    generator = np.random.default_rng(seed)
    return {
        "n": generator.choice(np.arange(1000.0, 20001.0, 500.0), rows),
        "ami": generator.uniform(0.13, 1.0, rows),
        "T": generator.integers(1, 16, rows).astype(np.float64),
    }


def unbalanced(seed: int, rows: int = 1555) -> Columns:
    """The paper's unbalanced design."""
    generator = np.random.default_rng(seed)
    return {
        "n_ner": generator.choice([1000.0, 1500.0, 2000.0, 2500.0], rows),
        "n_syn": generator.choice([2000.0, 3000.0, 4000.0, 5000.0, 6000.0], rows),
        "T": generator.integers(1, 31, rows).astype(np.float64),
        "ami": generator.choice([0.13, 0.22, 0.43, 0.55, 0.61, 0.71, 0.8, 0.91], rows),
    }


def table_of(
    formula: str, seed: int, *, noise: float = 0.02, design: Callable[[int], Columns] = balanced
) -> tuple[Columns, NDArray[np.float64]]:
    """The columns that a formula uses, and its values with noise."""
    expression = parse_formula(formula)
    columns = {k: v for k, v in design(seed).items() if k in expression.variables}
    values = evaluate_formula(expression, columns)
    generator = np.random.default_rng(seed + 1000)
    return columns, values * (1 + noise * generator.normal(size=len(values)))


def formula_of(name: str) -> str:
    return {**PAPER_LAWS, **FURTHER_LAWS}[name]

"""Laws of the field with the ranges and units that people measure in: 10⁶ to 10¹⁰ parameters, rates of
10⁻⁴.

Each is a published form, with constants near the published ones; see `laws/_searching/_field.py`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from _laws_known import NOISE, Columns, Known
from taskmix.laws import evaluate_formula, parse_formula

RANGES = {  # of the rows, and outside
    "n": ((1e6, 1e10), (1e6, 1e12)),  # parameters
    "d": ((1e8, 1e12), (1e8, 1e14)),  # tokens
    "u": ((1e8, 1e11), (1e8, 1e12)),  # tokens that differ
    "e": ((1.0, 60.0), (1.0, 120.0)),  # passes over them
    "k": ((1.0, 512.0), (1.0, 2048.0)),  # experts
    "lr": ((1e-5, 1e-2), (1e-5, 1e-2)),
    "s": ((0.02, 0.95), (0.01, 0.99)),  # the share of a domain in a mixture
    "b": ((16.0, 4096.0), (16.0, 16384.0)),  # batch size
}


@dataclass(frozen=True)
class FieldLaw:
    """A formula; where it should end up, `d` is drawn as passes over `u`."""

    formula: str
    repeated: bool = False


FIELD = {
    # Hoffmann et al., 2022, Eq. 10 and the same with a third input.
    "chinchilla": FieldLaw("1.69 + 406.4*n^-0.34 + 410.7*d^-0.28"),
    "three power laws": FieldLaw("1.5 + 300*n^-0.31 + 250*d^-0.26 + 3*b^-0.5"),
    # Kaplan et al., 2020, Eq. 1.5.
    "kaplan joint": FieldLaw("((8.8e13/n)^0.8 + 5.4e13/d)^0.095"),
    # Muennighoff et al., 2023, Eq. 5, with total tokens and with passes.
    "repetition, tokens": FieldLaw(
        "1.87 + 521*n^-0.35 + 1488*(u + 15.4*u*(1 - exp((1 - d/u)/15.4)))^-0.35", True
    ),
    "repetition, passes": FieldLaw("1.9 + 1488*(u*(1 + 15.4*(1 - exp((1 - e)/15.4))))^-0.35"),
    # Saturation: Michaelis and Menten; Hill; an approach.
    "saturation": FieldLaw("0.92*n/(n + 3e8)"),
    "hill": FieldLaw("0.2 + 0.7*d^0.6/(d^0.6 + 2.5e6)"),
    "approach": FieldLaw("0.35 + 0.5*(1 - exp(-d/6e10))"),
    # Caballero et al., 2022, Eq. 1 with one break, with and without a floor.
    "broken": FieldLaw("60*n^-0.12*(1 + (n/1e8)^2)^-0.1"),
    "broken with a floor": FieldLaw("0.5 + 60*n^-0.15*(1 + (n/1e8)^1.5)^-0.14"),
    # Products with a floor, and mixtures of experts: Clark et al., 2022, Eq. 2.
    "product with a floor": FieldLaw("1.7 + 900*n^-0.2*d^-0.12"),
    "experts": FieldLaw("exp(4.2 - 0.15*log(n) - 0.09*log(k) + 0.0035*log(n)*log(k))"),
    "effective parameters": FieldLaw("1.6 + 120*(n*k^0.4)^-0.25"),
    # Mixtures: Ye et al., 2024, Eq. 6; Que et al., 2024.
    "mixture": FieldLaw("2.1 + 1.3*exp(-3.5*s)"),
    "mixture and size": FieldLaw("1.5 + 300*n^-0.3 + 0.08*s^-0.4"),
    # The best learning rate falls with size: a bowl in its logarithm.
    "rate": FieldLaw("2.3 + 0.06*(log(lr) + 7.5)^2"),
    # Li et al., 2025: the best rate and batch size move with the data.
    "rate and batch": FieldLaw(
        "2.6 + 0.06*(log(lr) + 0.3*log(d) - 1)^2 + 0.03*(log(b) - 0.57*log(d) + 9)^2 + 420*d^-0.28"
    ),
}


def make_field(name: str, seed: int, *, rows: int = 1000, noise: float = NOISE) -> Known:
    """A table with noise in proportion, inputs spread evenly in logarithms on grids of 12 values."""
    law = FIELD[name]
    expression = parse_formula(law.formula)
    generator = np.random.default_rng(seed)
    columns = _drawn(expression.variables, generator, rows, 0, law.repeated)
    far = _drawn(expression.variables, generator, 2000, 1, law.repeated)
    values = evaluate_formula(expression, columns)
    target = values * (1 + noise * generator.normal(size=rows))
    return Known(law.formula, columns, target, far, evaluate_formula(expression, far))


def _drawn(
    names: frozenset[str] | set[str],
    generator: np.random.Generator,
    rows: int,
    part: int,
    repeated: bool,
) -> Columns:
    columns: Columns = {}
    for name in sorted(names):
        low, high = RANGES[name][part]
        columns[name] = generator.choice(np.geomspace(low, high, 12), rows)
    if repeated:
        columns["d"] = columns["u"] * generator.choice(np.geomspace(1, 100, 10), rows)
    return columns

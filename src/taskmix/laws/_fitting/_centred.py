"""Steps that do not depend on the unit of a column: powers are centred where the data are.

In c x^p with x about 10⁹ a change of p by 0.1 has to be made up by a factor of 8 in c, and a straight
step in both goes astray. About the geometric mean g of x it is c' (x/g)^p with c' = c g^p, and c' hardly
depends on p. Steps are taken in c' and p and translated back, so a fit takes the same steps whether
parameters are counted in ones or in billions, and formulas stay in the unit of the table.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from taskmix.laws._forms import Array, Columns, Number, Power, Product, Program

MOST = 690.0  # of an exponent of e, so that its power is a number


@dataclass(frozen=True)
class Centring:
    """Each coefficient with an exponent beside it, and the logarithm of the base in its middle."""

    coefficients: tuple[int, ...]
    exponents: tuple[int, ...]
    middles: tuple[float, ...]

    @classmethod
    def of(cls, program: Program, columns: Columns) -> Centring:
        """The pairs of a formula, the middles with its first constants."""
        pairs = _pairs(program)
        values = program.node_values(columns) if pairs else []
        found = []
        for coefficient, exponent, base in pairs:
            with np.errstate(all="ignore"):
                middle = float(np.mean(np.log(values[base])))
            if np.isfinite(middle):
                found.append((coefficient, exponent, middle))
        first, second, third = zip(*found, strict=True) if found else ((), (), ())
        return cls(first, second, third)

    def turn(
        self,
        jacobian: Array,  # [row, constant]
        constants: Array,
    ) -> Array:
        """The derivatives where a change of an exponent leaves the middle of its term in place."""
        if not self.middles:
            return jacobian
        turned = jacobian.copy()
        with np.errstate(over="ignore", invalid="ignore"):  # what is not finite ends the fit
            for coefficient, exponent, middle in zip(
                self.coefficients, self.exponents, self.middles, strict=True
            ):
                turned[:, exponent] -= constants[coefficient] * middle * jacobian[:, coefficient]
        return turned

    def moved(self, constants: Array, move: Array) -> Array:
        """The constants after a step of that kind."""
        result = constants + move
        with np.errstate(over="ignore", invalid="ignore"):  # a step too large is refused later
            for coefficient, exponent, middle in zip(
                self.coefficients, self.exponents, self.middles, strict=True
            ):
                result[coefficient] *= np.exp(np.clip(-move[exponent] * middle, -MOST, MOST))
        return np.asarray(result)


def _pairs(program: Program) -> list[tuple[int, int, int]]:
    """Places of a coefficient, of an exponent in its product, and the step of the power's base."""
    found = []
    for step in program.steps:
        if step.kind is not Product:
            continue
        first = program.steps[step.children[0]]
        if first.kind is not Number or first.constant < 0:
            continue
        for child in step.children[1:]:
            if program.steps[child].kind is Power:
                base, exponent = program.steps[child].children
                place = program.steps[exponent].constant
                if place >= 0:
                    found.append((first.constant, place, base))
    return found

r"""The constants of a form as numbers that may vary between groups.

A form a + b n^c has constants that a group may have of its own, and which of them vary depends on how
they are written: with n in the thousands, a group with another exponent has another b as well, by a
factor of thousands, though its values near the data hardly differ. So a coefficient is taken as the
value of its term at a typical point (φ = ψ + C ψ, where ψ are the constants and C what a constant
inside the term adds to the term's logarithm there). Positive (or negative) coefficients may vary by
factors: ψ is then their logarithm.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from taskmix.laws._forms import Array, Columns, Expression, Number, Power, Product, Program


@dataclass(frozen=True, eq=False)
class WrittenConstants:
    """How the constants of a form are written for groups, and back."""

    expression: Expression
    by_factor: NDArray[np.bool_]  # [constant], whether it is told by its logarithm
    back: Array  # [constant, constant], the inverse of I + C
    signs: Array  # [constant], of those told by logarithms

    @classmethod
    def of(
        cls, expression: Expression, by_factor: Sequence[bool], columns: Columns, *, centred: bool
    ) -> WrittenConstants:
        """`centred` tells coefficients at a typical point of the columns."""
        logs = np.array(by_factor, dtype=np.bool_)
        constants = np.array(expression.constants)
        slopes = np.where(logs, constants, 1.0)  # of a constant by what it is told by
        there = np.eye(len(constants))
        if centred:
            point = {name: np.array([_typical(column)]) for name, column in columns.items()}
            for place, rest, inside in _coefficients(expression):
                value, slope = Program(rest).jacobian(point, np.array(rest.constants))
                with np.errstate(all="ignore"):
                    added = slope[0] / value[0] * slopes[inside]
                    added = added if logs[place] else added * constants[place]
                if np.isfinite(added).all():
                    there[place, inside] = added
        return cls(
            expression, logs, np.asarray(np.linalg.inv(there), np.float64), np.sign(constants)
        )

    def told(self, constants: Array) -> Array:
        """Constants [constant] as groups have them."""
        plain = np.where(self.by_factor, np.log(np.abs(constants) + 1e-300), constants)
        return np.asarray(np.linalg.solve(self.back, plain), dtype=np.float64)

    def constants(
        self,
        told: Array,  # [..., constant]
    ) -> Array:
        """Constants of the formula [..., constant]."""
        plain = told @ self.back.T
        with np.errstate(over="ignore"):
            return np.where(
                self.by_factor, self.signs * np.exp(np.where(self.by_factor, plain, 0.0)), plain
            )

    def slopes(
        self,
        constants: Array,  # [..., constant], of the formula
    ) -> Array:
        """Derivatives of the formula's constants by those that are told, [..., constant, constant]."""
        inner = np.where(self.by_factor, constants, 1.0)
        return np.asarray(inner[..., :, None] * self.back)


def may_vary_by_factor(expression: Expression) -> NDArray[np.bool_]:
    """[constant], whether it is no exponent, and not zero."""
    exponents = {id(node.exponent) for node in expression.walk() if isinstance(node, Power)}
    found = [id(node) not in exponents and node.value != 0 for node in _free_numbers(expression)]
    return np.array(found, dtype=np.bool_)


def _free_numbers(node: Expression) -> Iterator[Number]:
    """In the order in which constants are."""
    if isinstance(node, Number):
        if node.free:
            yield node
        return
    for child in node.children:
        yield from _free_numbers(child)


def _coefficients(
    node: Expression, first: int = 0
) -> Iterator[tuple[int, Expression, NDArray[np.intp]]]:
    """The place of each coefficient, what it multiplies, and the places of the constants in there."""
    if isinstance(node, Product) and isinstance(node.factors[0], Number) and node.factors[0].free:
        rest = Product(node.factors[1:]) if len(node.factors) > 2 else node.factors[1]
        if rest.constants:
            yield first, rest, first + 1 + np.arange(len(rest.constants))
    for child in node.children:
        yield from _coefficients(child, first)
        first += len(child.constants)


def _typical(column: Array) -> float:
    return float(np.exp(np.mean(np.log(column))) if np.all(column > 0) else np.mean(column))

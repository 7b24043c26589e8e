"""Values of a formula over rows, and their derivatives by every free number and every node.

The output of a formula is one number a row, so one backward sweep gives, row by row, the derivative
by each node of the tree, and with it the whole Jacobian [row, constant] at about twice the cost of the
values. Where a formula is not defined (the logarithm of a negative number) its value is NaN.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from taskmix.errors import InputError
from taskmix.laws._expression import (
    Exponential,
    Expression,
    Logarithm,
    Number,
    Power,
    Product,
    Sum,
    Variable,
)

Array = NDArray[np.float64]
Columns = Mapping[str, Array]


@dataclass(frozen=True)
class _Step:
    """One node: what it is, where its children and its free number are."""

    kind: type[Expression]
    children: tuple[int, ...]
    constant: int = -1
    value: float = 0.0
    name: str = ""


class Program:
    """A formula as a list of steps, children before parents; `nodes[i]` is computed by `steps[i]`."""

    def __init__(self, expression: Expression) -> None:
        self.expression = expression
        self.nodes: list[Expression] = []
        self.steps: list[_Step] = []
        self.start = np.array(expression.constants, dtype=np.float64)
        self._constants = 0
        self._constant_steps: list[int] = []
        self._compile(expression)

    def _compile(self, node: Expression) -> int:
        if isinstance(node, Number) and node.free:
            step = _Step(Number, (), constant=self._constants)
            self._constants += 1
            self._constant_steps.append(len(self.steps))
        elif isinstance(node, Number):
            step = _Step(Number, (), value=node.value)
        elif isinstance(node, Variable):
            step = _Step(Variable, (), name=node.name)
        else:
            step = _Step(type(node), tuple(self._compile(child) for child in node.children))
        self.nodes.append(node)
        self.steps.append(step)
        return len(self.steps) - 1

    def values(self, columns: Columns, constants: Sequence[float] | Array | None = None) -> Array:
        """[row]."""
        count = _rows(columns)
        with np.errstate(all="ignore"):
            found = self._forward(columns, self.start if constants is None else constants)[-1]
        return np.broadcast_to(np.asarray(found, dtype=np.float64), (count,)).copy()

    def jacobian(self, columns: Columns, constants: Sequence[float] | Array) -> tuple[Array, Array]:
        """The values [row] and their derivatives by the free numbers [row, constant]."""
        count = _rows(columns)
        with np.errstate(all="ignore"):
            values = self._forward(columns, constants)
            adjoints = self._backward(values)
        result = np.empty((count, self._constants))
        for place, step in enumerate(self._constant_steps):
            result[:, place] = adjoints[step]
        return np.broadcast_to(np.asarray(values[-1]), (count,)), result

    def sensitivities(
        self, columns: Columns, constants: Sequence[float] | Array
    ) -> tuple[list[Array], list[Array]]:
        """Of each step its values, and the derivatives of the formula by it."""
        with np.errstate(all="ignore"):
            values = self._forward(columns, constants)
            return values, self._backward(values)

    def node_values(self, columns: Columns) -> list[Array]:
        """Of each step its values, [row] or one number for all rows."""
        with np.errstate(all="ignore"):
            return self._forward(columns, self.start)

    def _forward(self, columns: Columns, constants: Sequence[float] | Array) -> list[Array]:
        values: list[Array] = []
        for step in self.steps:
            kind, children = step.kind, step.children
            found: Array
            if kind is Number:
                found = np.asarray(constants[step.constant] if step.constant >= 0 else step.value)
            elif kind is Variable:
                found = columns[step.name]
            elif kind is Sum:
                found = values[children[0]]
                for child in children[1:]:
                    found = found + values[child]
            elif kind is Product:
                found = values[children[0]]
                for child in children[1:]:
                    found = found * values[child]
            elif kind is Power:
                found = _power(values[children[0]], values[children[1]])
            elif kind is Logarithm:
                found = np.log(values[children[0]])
            else:
                found = np.exp(values[children[0]])
            values.append(found)
        return values

    def _backward(self, values: list[Array]) -> list[Array]:
        adjoints: list[Array] = [np.zeros(())] * len(self.steps)
        adjoints[-1] = np.ones(())
        for place in range(len(self.steps) - 1, -1, -1):
            step, adjoint = self.steps[place], adjoints[place]
            kind, children = step.kind, step.children
            if kind is Sum:
                for child in children:
                    adjoints[child] = adjoint
            elif kind is Product:
                for child in children:
                    others = adjoint
                    for other in children:
                        if other != child:
                            others = others * values[other]
                    adjoints[child] = others
            elif kind is Power:
                base, exponent = children
                adjoints[base] = (
                    adjoint * values[exponent] * _power(values[base], values[exponent] - 1)
                )
                if self.steps[exponent].kind is not Number or self.steps[exponent].constant >= 0:
                    # 0^p stays 0 for all p above 0
                    slope = np.where(values[place] == 0, 0.0, np.log(values[base]))
                    adjoints[exponent] = adjoint * values[place] * slope
            elif kind is Logarithm:
                adjoints[children[0]] = adjoint / values[children[0]]
            elif kind is Exponential:
                adjoints[children[0]] = adjoint * values[place]
        return adjoints


def evaluate_formula(expression: Expression, columns: Columns) -> Array:
    """The values of a formula [row]; a column it needs and does not find is told.

    >>> evaluate_formula(parse_formula("3*n + 1"), {"n": np.array([1.0, 2.0])})
    array([4., 7.])
    """
    missing = sorted(expression.variables - set(columns))
    if missing:
        raise InputError(
            f"The formula should use columns that are there. Found {', '.join(missing)}, and the "
            f"columns are {', '.join(map(str, columns))}. Check the spelling."
        )
    return Program(expression).values(columns)


def _power(base: Array, exponent: Array) -> Array:
    if exponent.ndim == 0:
        if exponent == 0.5:
            return np.sqrt(base)
        if exponent == -1.0:
            return 1.0 / base
        if exponent == 1.0:
            return base
        if exponent == 2.0:
            return base * base
        if exponent == -0.5:
            return 1.0 / np.sqrt(base)
    return np.asarray(np.power(base, exponent))


def _rows(columns: Columns) -> int:
    return max((len(column) for column in columns.values()), default=1)

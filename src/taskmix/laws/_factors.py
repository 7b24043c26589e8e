"""Columns that name the group of a row, one or several that cross, and constants that groups may own.

A form a + b n^c has constants that a group may have of its own, and which of them vary depends on how
they are written: with n in the thousands, a group with another exponent has another b as well, by a
factor of thousands, though its values near the data hardly differ. So a coefficient is taken as the
value of its term at a typical point (φ = ψ + C ψ, where ψ are the constants and C what a constant
inside the term adds to the term's logarithm there). Positive (or negative) coefficients may vary by
factors: ψ is then their logarithm.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from taskmix.errors import InputError, ShapeError
from taskmix.laws._evaluate import Array, Columns, Program
from taskmix.laws._expression import Expression, Number, Power, Product


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


GROUP = "group"  # what the column is called where it has no name
TARGET = "target"  # the column of what a row explains, where several columns are explained
TOGETHER = " / "  # between the names of a cell


@dataclass(frozen=True, eq=False)
class GroupFactors:
    """The levels of each column of groups, and of all together where there are several."""

    levels: Mapping[str, tuple[str, ...]]  # [column][level], names
    codes: Mapping[str, NDArray[np.intp]]  # [column][row], places among the levels; -1 is unknown
    columns: tuple[str, ...]  # without the one of all together

    @classmethod
    def of(cls, groups: Any, rows: int) -> GroupFactors:
        """From labels, or from several columns of labels by name."""
        labels = _labels(groups)
        for name, column in labels.items():
            if len(column) != rows:
                raise ShapeError(
                    f"`{name}` should name a group for each of the {rows} rows. Found {len(column)}."
                )
        kept = {name: column for name, column in labels.items() if len(set(column)) > 1}
        if not kept:
            raise InputError("There should be at least two groups. Found 1.")
        names = tuple(kept)
        if len(kept) > 1:
            kept[TOGETHER.join(names)] = [
                TOGETHER.join(each) for each in zip(*kept.values(), strict=True)
            ]
        levels = {name: tuple(sorted(set(column))) for name, column in kept.items()}
        return cls(levels, _coded(kept, levels), names)

    @property
    def whole(self) -> str:
        """The column of all together."""
        return TOGETHER.join(self.columns)

    @property
    def cells(self) -> tuple[str, ...]:
        """Every group, by all columns."""
        return self.levels[self.whole]

    @property
    def cell(self) -> NDArray[np.intp]:
        """[row], places among the cells."""
        return self.codes[self.whole]

    def __len__(self) -> int:
        return len(self.cell)

    def rows(self, places: NDArray[np.integer[Any]]) -> GroupFactors:
        """Of some rows, the levels as they were."""
        codes = {name: column[places] for name, column in self.codes.items()}
        return GroupFactors(self.levels, codes, self.columns)

    def named(self, groups: Any, rows: int) -> GroupFactors:
        """Other rows by their labels; groups that were not there have no place."""
        labels = _labels(groups)
        if len(self.columns) == 1 and len(labels) == 1:
            labels = {self.columns[0]: next(iter(labels.values()))}
        elif set(labels) == {GROUP}:  # cells, as they are printed
            parts = [label.split(TOGETHER) for label in labels[GROUP]]
            labels = {
                name: [each[place] if len(each) == len(self.columns) else "" for each in parts]
                for place, name in enumerate(self.columns)
            }
        missing = [name for name in self.columns if name not in labels]
        if missing:
            raise InputError(
                f"The group should be given by {', '.join(self.columns)}. Found nothing for "
                f"`{missing[0]}`."
            )
        kept = {name: labels[name] for name in self.columns}
        if len(kept) > 1:
            kept[self.whole] = [TOGETHER.join(each) for each in zip(*kept.values(), strict=True)]
        for name, column in kept.items():
            if len(column) != rows:
                raise ShapeError(
                    f"`{name}` should name a group for each of the {rows} rows. Found {len(column)}."
                )
        return GroupFactors(self.levels, _coded(kept, self.levels), self.columns)

    def of_cell(self, cell: str) -> dict[str, int]:
        """The places of one cell in every column, from a row that has it."""
        row = int(np.flatnonzero(self.cell == self.cells.index(cell))[0])
        return {name: int(column[row]) for name, column in self.codes.items()}


def _labels(groups: Any) -> dict[str, list[str]]:
    if isinstance(groups, Mapping):
        return {str(name): [str(each) for each in column] for name, column in groups.items()}
    if hasattr(groups, "columns"):
        names = getattr(groups, "column_names", groups.columns)  # `columns` of Arrow are values
        return {str(name): [str(each) for each in groups[name]] for name in names}
    name = str(getattr(groups, "name", None) or GROUP)
    return {name: [str(each) for each in _each(groups)]}


def _each(groups: Iterable[Any]) -> Sequence[Any]:
    return groups.tolist() if isinstance(groups, np.ndarray) else list(groups)


def _coded(
    labels: Mapping[str, Sequence[str]], levels: Mapping[str, tuple[str, ...]]
) -> dict[str, NDArray[np.intp]]:
    found = {}
    for name, column in labels.items():
        place = {level: number for number, level in enumerate(levels[name])}
        found[name] = np.array([place.get(each, -1) for each in column], dtype=np.intp)
    return found

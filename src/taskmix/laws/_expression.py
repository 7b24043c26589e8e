"""Formulas as trees: numbers, variables, sums, products, powers, logarithms and exponentials.

Everything else is written with these: a quotient is a power of -1, a root a power of 1/2, a
difference a product with -1. A number is fixed (the 2 of a square) or free, that is, fitted to data.
Trees are built by the functions of `_normal.py`, in one normal form, so that equal forms have equal
keys.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from taskmix.errors import OptionError

MAX_DEPTH = 60  # of a tree; a deeper one is refused rather than recursed into


@dataclass(frozen=True)
class Expression:
    """A node of a formula. Compare `key`s to compare forms, free numbers left open.

    >>> formula = parse_formula("2*sqrt(n) + 1")
    >>> sorted(formula.variables), formula.key
    (['n'], '(+ (* 2.0 (^ n 0.5)) 1.0)')
    """

    @cached_property
    def key(self) -> str:
        """The form as text with every free number replaced by one sign."""
        return self._key()

    def _key(self) -> str:
        raise NotImplementedError

    @property
    def children(self) -> tuple[Expression, ...]:
        return ()

    def walk(self) -> Iterator[Expression]:
        """All nodes, each before its children."""
        yield self
        for child in self.children:
            yield from child.walk()

    @property
    def variables(self) -> frozenset[str]:
        return frozenset(node.name for node in self.walk() if isinstance(node, Variable))

    @cached_property
    def constants(self) -> tuple[float, ...]:
        """The values of the free numbers, in the order of `walk`."""
        return tuple(value for child in self.children for value in child.constants)

    def with_constants(self, values: Sequence[float]) -> Expression:
        """The same tree, number for number, with other values for the free ones."""
        rest = iter(values)
        return _refill(self, rest)


@dataclass(frozen=True)
class Number(Expression):
    value: float
    free: bool = False

    @cached_property
    def constants(self) -> tuple[float, ...]:
        return (self.value,) if self.free else ()

    def _key(self) -> str:
        return "#" if self.free else repr(self.value)


@dataclass(frozen=True)
class Variable(Expression):
    name: str

    def _key(self) -> str:
        return self.name


@dataclass(frozen=True)
class Sum(Expression):
    terms: tuple[Expression, ...]

    def _key(self) -> str:
        return f"(+ {' '.join(term.key for term in self.terms)})"

    @property
    def children(self) -> tuple[Expression, ...]:
        return self.terms


@dataclass(frozen=True)
class Product(Expression):
    factors: tuple[Expression, ...]

    def _key(self) -> str:
        return f"(* {' '.join(factor.key for factor in self.factors)})"

    @property
    def children(self) -> tuple[Expression, ...]:
        return self.factors


@dataclass(frozen=True)
class Power(Expression):
    base: Expression
    exponent: Expression

    def _key(self) -> str:
        return f"(^ {self.base.key} {self.exponent.key})"

    @property
    def children(self) -> tuple[Expression, ...]:
        return (self.base, self.exponent)


@dataclass(frozen=True)
class Logarithm(Expression):
    of: Expression

    def _key(self) -> str:
        return f"(log {self.of.key})"

    @property
    def children(self) -> tuple[Expression, ...]:
        return (self.of,)


@dataclass(frozen=True)
class Exponential(Expression):
    of: Expression

    def _key(self) -> str:
        return f"(exp {self.of.key})"

    @property
    def children(self) -> tuple[Expression, ...]:
        return (self.of,)


ZERO, ONE = Number(0.0), Number(1.0)


def free(value: float) -> Number:
    """A number to be fitted, with its first value."""
    return Number(float(value), free=True)


def split_number(node: Expression) -> tuple[Number, Expression]:
    """A product as its number and the rest."""
    if isinstance(node, Product) and isinstance(node.factors[0], Number):
        rest = node.factors[1:]
        return node.factors[0], rest[0] if len(rest) == 1 else Product(rest)
    if isinstance(node, Number):
        return node, ONE
    return ONE, node


def check_depth(node: Expression) -> None:
    """Refuses a tree too deep to walk."""
    level: list[Expression] = [node]
    for _ in range(MAX_DEPTH):
        level = [child for parent in level for child in parent.children]
        if not level:
            return
    raise OptionError(
        f"A formula should be at most {MAX_DEPTH} levels deep. Found a deeper one. Write it in parts."
    )


def _refill(node: Expression, rest: Iterator[float]) -> Expression:
    # Rebuilt without the normal form: the places of the numbers must not move.
    match node:
        case Number():
            return replace(node, value=float(next(rest))) if node.free else node
        case Sum():
            return Sum(tuple(_refill(child, rest) for child in node.terms))
        case Product():
            return Product(tuple(_refill(child, rest) for child in node.factors))
        case Power():
            base = _refill(node.base, rest)
            return Power(base, _refill(node.exponent, rest))
        case Logarithm():
            return Logarithm(_refill(node.of, rest))
        case Exponential():
            return Exponential(_refill(node.of, rest))
    return node

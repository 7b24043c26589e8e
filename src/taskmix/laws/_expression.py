"""Formulas as trees: numbers, variables, sums, products, powers, logarithms and exponentials.

Everything else is written with these: a quotient is a power of -1, a root a power of 1/2, a
difference a product with -1. A number is fixed (the 2 of a square) or free, that is, fitted to data.
The functions `add`, `multiply`, `raise_to`, `log` and `exp` build trees in one normal form (flat sums
and products, numbers gathered, operands sorted), so that equal forms have equal keys. Powers are
understood where their bases are positive: (x^a)^b is x^(ab).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce

from taskmix.errors import OptionError

MAX_DEPTH = 60  # of a tree; a deeper one is refused rather than recursed into


@dataclass(frozen=True)
class Expression:
    """A node of a formula. Compare `key`s to compare forms, free numbers left open."""

    @cached_property
    def key(self) -> str:
        """The form as text with every free number replaced by one sign."""
        return self._key()

    def _key(self) -> str:
        raise NotImplementedError

    @property
    def children(self) -> tuple[Expression, ...]:
        return ()

    def rebuilt(self, children: Sequence[Expression]) -> Expression:
        """The same node over other children, in normal form."""
        return self

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

    def substitute(self, change: Callable[[Expression], Expression | None]) -> Expression:
        """The tree with nodes exchanged: `change` gives the new one, or None to look below."""
        new = change(self)
        if new is not None:
            return new
        children = [child.substitute(change) for child in self.children]
        if all(a is b for a, b in zip(children, self.children, strict=True)):
            return self
        return self.rebuilt(children)


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

    def rebuilt(self, children: Sequence[Expression]) -> Expression:
        return add(*children)


@dataclass(frozen=True)
class Product(Expression):
    factors: tuple[Expression, ...]

    def _key(self) -> str:
        return f"(* {' '.join(factor.key for factor in self.factors)})"

    @property
    def children(self) -> tuple[Expression, ...]:
        return self.factors

    def rebuilt(self, children: Sequence[Expression]) -> Expression:
        return multiply(*children)


@dataclass(frozen=True)
class Power(Expression):
    base: Expression
    exponent: Expression

    def _key(self) -> str:
        return f"(^ {self.base.key} {self.exponent.key})"

    @property
    def children(self) -> tuple[Expression, ...]:
        return (self.base, self.exponent)

    def rebuilt(self, children: Sequence[Expression]) -> Expression:
        return raise_to(*children)


@dataclass(frozen=True)
class Log(Expression):
    of: Expression

    def _key(self) -> str:
        return f"(log {self.of.key})"

    @property
    def children(self) -> tuple[Expression, ...]:
        return (self.of,)

    def rebuilt(self, children: Sequence[Expression]) -> Expression:
        return log(*children)


@dataclass(frozen=True)
class Exp(Expression):
    of: Expression

    def _key(self) -> str:
        return f"(exp {self.of.key})"

    @property
    def children(self) -> tuple[Expression, ...]:
        return (self.of,)

    def rebuilt(self, children: Sequence[Expression]) -> Expression:
        return exp(*children)


ZERO, ONE = Number(0.0), Number(1.0)


def free(value: float) -> Number:
    """A number to be fitted, with its first value."""
    return Number(float(value), free=True)


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
        case Log():
            return Log(_refill(node.of, rest))
        case Exp():
            return Exp(_refill(node.of, rest))
    return node


def add(*terms: Expression) -> Expression:
    """The sum: flat, one number, like terms together."""
    number = ZERO
    like: dict[str, tuple[Number, Expression]] = {}
    for term in _flat(terms, Sum):
        if isinstance(term, Number):
            number = _joined(number, term, number.value + term.value)
            continue
        coefficient, rest = split_number(term)
        # Two terms of one key are alike only if their own free numbers are; those stay apart.
        name = rest.key if not rest.constants else f"{rest.key}{rest.constants}"
        if name in like:
            before = like[name][0]
            coefficient = _joined(before, coefficient, before.value + coefficient.value)
        like[name] = (coefficient, rest)
    kept = [multiply(c, rest) for c, rest in like.values() if c.free or c.value != 0.0]
    if number.free or number.value != 0.0:
        kept.append(number)
    if not kept:
        return ZERO
    if len(kept) == 1:
        return kept[0]
    return Sum(tuple(sorted(kept, key=_order)))


def multiply(*factors: Expression) -> Expression:
    """The product: flat, one number, powers of one base together."""
    number = ONE
    powers: dict[str, tuple[Expression, Expression]] = {}
    for factor in _flat(factors, Product):
        if isinstance(factor, Number):
            number = _joined(number, factor, number.value * factor.value)
            continue
        base, exponent = (
            (factor.base, factor.exponent) if isinstance(factor, Power) else (factor, ONE)
        )
        name = base.key if not base.constants else f"{base.key}{base.constants}"
        if name in powers:
            exponent = add(powers[name][1], exponent)
        powers[name] = (base, exponent)
    if number.value == 0.0 and not number.free:
        return ZERO
    kept: list[Expression] = []
    for base, exponent in powers.values():
        part = raise_to(base, exponent)
        if isinstance(part, Product | Number):  # a number came out of the base
            inner, part = split_number(part)
            number = _joined(number, inner, number.value * inner.value)
        kept += [part] if not isinstance(part, Number) else []
    if not kept:
        return number
    if number == ONE:
        return kept[0] if len(kept) == 1 else Product(_sorted(kept))
    if len(kept) == 1 and isinstance(kept[0], Sum) and _takes(kept[0], number):
        return Sum(tuple(multiply(number, term) for term in kept[0].terms))
    return Product((number, *_sorted(kept)))


def raise_to(base: Expression, exponent: Expression) -> Expression:
    """The power; a leading number leaves the base where it is positive."""
    if exponent == ZERO:
        return ONE
    if exponent == ONE:
        return base
    if isinstance(base, Number) and isinstance(exponent, Number):
        value = _real_power(base.value, exponent.value)
        if not math.isnan(value) and not base.free and not exponent.free:
            return Number(value)
        return free(value) if base.free and not math.isnan(value) else Power(base, exponent)
    if isinstance(base, Power):
        return raise_to(base.base, multiply(base.exponent, exponent))
    if isinstance(base, Exp):
        return exp(multiply(base.of, exponent))
    if isinstance(exponent, Number) and not exponent.free:
        if isinstance(base, Product):
            number, rest = split_number(base)
            if number.value > 0:
                inside = rest.factors if isinstance(rest, Product) else (rest,)
                return multiply(
                    raise_to(number, exponent), *(raise_to(part, exponent) for part in inside)
                )
        if isinstance(base, Sum):
            scale, rest = _leading(base)
            if scale != ONE:
                return multiply(raise_to(scale, exponent), Power(rest, exponent))
    elif isinstance(base, Product | Sum):
        scale, rest = split_number(base) if isinstance(base, Product) else _leading(base)
        if scale != ONE and scale.value > 0:
            outside = free(_real_power(scale.value, _value(exponent)))
            return multiply(outside, raise_to(rest, exponent))
    return Power(base, exponent)


def log(of: Expression) -> Expression:
    if isinstance(of, Number) and of.value > 0:
        return replace(of, value=math.log(of.value))
    if isinstance(of, Exp):
        return of.of
    if isinstance(of, Power):
        return multiply(of.exponent, log(of.base))
    if isinstance(of, Product) and split_number(of)[0].value > 0:
        return add(*(log(factor) for factor in of.factors))
    return Log(of)


def exp(of: Expression) -> Expression:
    if isinstance(of, Number) and of.value < 700:
        return replace(of, value=math.exp(of.value))
    if isinstance(of, Log):
        return of.of
    return Exp(of)


def negative(of: Expression) -> Expression:
    return multiply(Number(-1.0), of)


def divide(above: Expression, below: Expression) -> Expression:
    return multiply(above, raise_to(below, Number(-1.0)))


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


def _takes(total: Sum, number: Number) -> bool:
    """Whether a number may go into a sum without untying what was tied to one free number."""
    fixed = sum(not split_number(term)[0].free for term in total.terms)
    return not number.free or fixed <= 1


def _leading(total: Sum) -> tuple[Number, Sum]:
    """A sum as a positive number times a sum whose first free term has the coefficient 1."""
    for term in total.terms:
        number, rest = split_number(term)
        if number.free and number.value > 0 and rest != ONE:
            if all(split_number(other)[0].free for other in total.terms):
                inverse = Number(1 / number.value)
                scaled = [
                    rest if other is term else multiply(inverse, other) for other in total.terms
                ]
                return number, Sum(tuple(sorted(scaled, key=_order)))
            break
    return ONE, total


def _flat(nodes: Iterable[Expression], kind: type[Sum] | type[Product]) -> Iterator[Expression]:
    for node in nodes:
        if isinstance(node, kind):
            yield from _flat(node.children, kind)
        else:
            yield node


def _joined(first: Number, second: Number, value: float) -> Number:
    return Number(value, first.free or second.free)


def _real_power(base: float, exponent: float) -> float:
    if base < 0 and exponent != int(exponent):
        return math.nan
    try:
        return float(base**exponent)
    except (OverflowError, ZeroDivisionError):
        return math.nan


def _value(node: Expression) -> float:
    """The value of an expression without variables; 1 where it has some."""
    match node:
        case Number():
            return node.value
        case Sum():
            return sum(_value(term) for term in node.terms)
        case Product():
            return reduce(lambda product, part: product * _value(part), node.factors, 1.0)
    return 1.0


def _order(node: Expression) -> tuple[bool, str, tuple[float, ...]]:
    # Numbers last in a sum; otherwise by key, and by values so that order never depends on history.
    return isinstance(node, Number), split_number(node)[1].key, node.constants


def _sorted(nodes: Iterable[Expression]) -> tuple[Expression, ...]:
    return tuple(sorted(nodes, key=_order))

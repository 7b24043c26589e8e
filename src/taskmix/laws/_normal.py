"""Formulas in normal form: flat sums and products, numbers gathered, operands sorted.

Powers are understood where their bases are positive: (x^a)^b is x^(ab), and the logarithm of a
product is a sum. A free factor of a sum inside a power leaves it, so that every form has as many free
numbers as it has degrees of freedom wherever that can be seen from the tree.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import reduce

from taskmix.laws._expression import (
    ONE,
    ZERO,
    Exponential,
    Expression,
    Logarithm,
    Number,
    Power,
    Product,
    Sum,
    Variable,
    free,
    split_number,
)


def substitute(
    expression: Expression, change: Callable[[Expression], Expression | None]
) -> Expression:
    """The tree with nodes exchanged: `change` gives the new one, or None to look below."""
    new = change(expression)
    if new is not None:
        return new
    children = [substitute(child, change) for child in expression.children]
    if all(a is b for a, b in zip(children, expression.children, strict=True)):
        return expression
    return _rebuilt(expression, children)


def exchange(expression: Expression, old: Expression, new: Expression) -> Expression:
    """The tree with one node, that very object, exchanged."""
    return substitute(expression, lambda node: new if node is old else None)


def _rebuilt(node: Expression, children: Sequence[Expression]) -> Expression:
    """The same kind of node over other children."""
    match node:
        case Sum():
            return add(*children)
        case Product():
            return multiply(*children)
        case Power():
            return raise_to(*children)
        case Logarithm():
            return log(*children)
        case Exponential():
            return exp(*children)
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
    if len(kept) > 1:  # every sum among the factors gives its scale to the number in front
        for place, part in enumerate(kept):
            if isinstance(part, Sum):
                scale, kept[place] = _leading(part)
                number = _joined(number, scale, number.value * scale.value)
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
    if isinstance(base, Exponential):
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
    if isinstance(of, Exponential):
        return of.of
    if isinstance(of, Power):
        return multiply(of.exponent, log(of.base))
    if isinstance(of, Product) and split_number(of)[0].value > 0:
        return add(*(log(factor) for factor in of.factors))
    return Logarithm(of)


def exp(of: Expression) -> Expression:
    if isinstance(of, Number) and of.value < 700:
        return replace(of, value=math.exp(of.value))
    if isinstance(of, Logarithm):
        return of.of
    outside: list[Expression] = []  # numbers and logarithms leave the exponent as factors
    inside: list[Expression] = []
    for term in of.terms if isinstance(of, Sum) else (of,):
        number, rest = split_number(term)
        if isinstance(rest, Logarithm):
            outside.append(raise_to(rest.of, number))
        elif rest == ONE and number.value < 700:
            outside.append(exp(number))
        else:
            inside.append(term)
    if not outside:
        return Exponential(of)
    return multiply(*outside, *([exp(add(*inside))] if inside else []))


def open_key(expression: Expression) -> str:
    """The form as text with every number left open, so that 2*n, n^0.5 and 3*n^0.48 are one form."""
    match expression:
        case Number():
            return "#"
        case Power() if isinstance(expression.exponent, Number):
            inner = open_key(expression.base)
            # x^p is x with a number, but 1 / (x + z) is not x + z with one.
            return inner if isinstance(expression.base, Variable) else f"(^ {inner})"
        case Product():
            parts = sorted(part for part in map(open_key, _open_factors(expression)) if part != "#")
            return f"(* {' '.join(parts)})" if len(parts) > 1 else "".join(parts)
        case Sum():
            return f"(+ {' '.join(sorted(map(open_key, expression.terms)))})"
        case Logarithm() | Exponential():
            return f"({type(expression).__name__} {open_key(expression.of)})"
    return expression.key


def _open_factors(node: Expression) -> Iterator[Expression]:
    """Factors, with those of products that are raised to a number."""
    for factor in node.children if isinstance(node, Product) else (node,):
        power = factor if isinstance(factor, Power) else Power(factor, ONE)
        if isinstance(power.exponent, Number) and isinstance(power.base, Product):
            yield from _open_factors(power.base)
        else:
            yield factor


def negative(of: Expression) -> Expression:
    return multiply(Number(-1.0), of)


def quotient(above: Expression, below: Expression) -> Expression:
    return multiply(above, raise_to(below, Number(-1.0)))


def _takes(total: Sum, number: Number) -> bool:
    """Whether a number may go into a sum without untying what was tied to one free number."""
    fixed = sum(not split_number(term)[0].free for term in total.terms)
    return not number.free or fixed <= 1


def _leading(total: Sum) -> tuple[Number, Sum]:
    """A sum as a positive number times a sum in which a term has the coefficient 1.

    It is the first term that is added, the constant only if no other is.
    """
    parts = [split_number(term) for term in total.terms]
    if all(number.free for number, _ in parts):
        for place, (number, rest) in enumerate(parts):
            if number.value > 0:
                inverse = Number(1 / number.value)
                scaled = [
                    rest if other == place else multiply(inverse, term)
                    for other, term in enumerate(total.terms)
                ]
                return number, Sum(tuple(sorted(scaled, key=_order)))
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

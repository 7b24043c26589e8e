"""Shorter formulas from a fitted one: constants that the data do not ask for become plain numbers.

An exponent may become a simple fraction, a coefficient one or nothing, an additive constant nothing;
terms may share a factor and a bent function become a straight line.
The quadratic approximation of the squares around the fit tells what each change costs; those whose
price is below what the shorter message saves are fitted, the most promising first, until none helps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain, combinations

import numpy as np

from taskmix.laws._complexity import SIMPLE_EXPONENTS, UNMEASURED, form_length
from taskmix.laws._evaluate import Columns, Program
from taskmix.laws._expression import (
    Exponential,
    Expression,
    Logarithm,
    Number,
    Power,
    Product,
    Sum,
    free,
)
from taskmix.laws._fit import Fit, Observations, fit_constants, start_cost
from taskmix.laws._normal import add, exchange, multiply, raise_to, substitute


def factored(expression: Expression) -> Iterator[Expression]:
    """Terms of a sum that have like factors, with one such factor before them all.

    Like factors differ in constants at most: a u T^p + b v T^q becomes (a u + b v) T^p.
    """
    for node in expression.walk():
        if not isinstance(node, Sum):
            continue
        shared: dict[tuple[str, bool], list[tuple[Expression, Expression]]] = {}
        for term in node.terms:
            for factor in term.factors if isinstance(term, Product) else (term,):
                if not isinstance(factor, Number):
                    shared.setdefault(_likeness(factor), []).append((term, factor))
        for pairs in shared.values():
            if len(pairs) > 1:
                terms = [term for term, _ in pairs]
                inner = add(*(_without(term, factor) for term, factor in pairs))
                others = [term for term in node.terms if term not in terms]
                yield exchange(expression, node, add(*others, multiply(inner, pairs[0][1])))


def _likeness(factor: Expression) -> tuple[str, bool]:
    """What like factors have in common: the base, and on which side of the line it is."""
    if isinstance(factor, Power) and isinstance(factor.exponent, Number):
        return factor.base.key, factor.exponent.value > 0
    return factor.key, True


def _without(term: Expression, factor: Expression) -> Expression:
    if not isinstance(term, Product):
        return Number(1.0)
    return multiply(*(other for other in term.factors if other is not factor))


def straightened(program: Program, columns: Columns) -> Iterator[Expression]:
    """The formula with one logarithm, exponential or power of a sum made its tangent.

    The tangent is at the middle of what the function is taken of, on the rows at hand.
    """
    values, _ = program.sensitivities(columns, program.start)
    for node, step in zip(program.nodes, program.steps, strict=True):
        if not (isinstance(node, Logarithm | Exponential) or _is_power_of_sum(node)):
            continue
        middle = float(np.median(values[step.children[0]]))
        try:
            height, slope = _tangent(node, middle)
        except (ValueError, OverflowError, ZeroDivisionError):
            continue
        line = add(free(height - slope * middle), multiply(free(slope), node.children[0]))
        yield exchange(program.expression, node, line)


def _is_power_of_sum(node: Expression) -> bool:
    return isinstance(node, Power) and isinstance(node.base, Sum) and not node.exponent.variables


def _tangent(node: Expression, at: float) -> tuple[float, float]:
    """Height and slope of a function."""
    if isinstance(node, Logarithm):
        return math.log(at), 1 / at
    if isinstance(node, Exponential):
        return math.exp(at), math.exp(at)
    power = node.children[1].value if isinstance(node.children[1], Number) else 1.0
    return math.pow(at, power), power * math.pow(at, power - 1)


FITTED_PER_ROUND = 6  # changes fitted in each round
MOST_LOST = 14.0  # nats: a change that loses more is not looked at


@dataclass(frozen=True)
class _Role:
    """What a free number is in its formula."""

    kind: str  # exponent, coefficient or constant
    outermost: bool


def simplify(
    fit: Fit, data: Observations, length: Callable[[Expression, float], float]
) -> Iterator[Fit]:
    """Ever shorter descriptions; the last is the shortest found."""
    best, best_length = fit, length(fit.expression, fit.mean_square)
    improved = True
    while improved:
        improved = False
        for expression in _shorter(best, data)[:FITTED_PER_ROUND]:
            found = fit_constants(expression, data, steps=25)
            found_length = length(found.expression, found.mean_square)
            if found_length < best_length:
                best, best_length, improved = found, found_length, True
                yield best
                break


def unrounded(expression: Expression) -> Expression:
    """With the exponents free that were rounded to fractions other than roots."""

    def change(node: Expression) -> Expression | None:
        if not isinstance(node, Power) or not isinstance(node.exponent, Number):
            return None
        if abs(node.exponent.value) in UNMEASURED:
            return None
        return raise_to(substitute(node.base, change), free(node.exponent.value))

    return substitute(expression, change)


def _shorter(fit: Fit, data: Observations) -> list[Expression]:
    """Formulas that say less, by what fit and form together would gain, the most first."""
    program = Program(fit.expression)
    constants = program.start
    if len(constants) == 0:
        return []
    _, jacobian = program.jacobian(data.columns, constants)
    weighted = jacobian * data.weight[:, None]
    if not np.isfinite(weighted).all():
        return []
    lengths = np.linalg.norm(weighted, axis=0)
    lengths[lengths == 0] = 1.0
    inverse = np.linalg.pinv((weighted / lengths).T @ (weighted / lengths), rcond=1e-12)
    # The covariance of the constants, in units of their own.
    with np.errstate(over="ignore"):  # of a constant that changes next to nothing: infinite
        covariance = inverse / lengths / lengths[:, None] * max(fit.mean_square, data.floor)
    found: dict[str, tuple[float, Expression]] = {}
    here = form_length(fit.expression, len(data))

    def offer(loss: float, expression: Expression) -> None:
        total = loss + form_length(expression, len(data))
        if total < here and expression.key not in found:
            found[expression.key] = (total, expression)

    for place, role in enumerate(_roles(fit.expression)):
        for value in _plain_values(role):
            moved = float(constants[place]) - value
            loss = _loss(moved, float(covariance[place, place]))
            if loss < MOST_LOST:
                offer(loss, _fixed(fit.expression, place, value))
    for first, second, sign, expression in _tied(fit.expression):
        moved = float(constants[first] - sign * constants[second])
        spread = covariance[first, first] + covariance[second, second]
        spread -= 2 * sign * covariance[first, second]
        offer(_loss(moved, float(spread)), expression)
    for expression in chain(_under_one_root(fit.expression), factored(fit.expression)):
        offer(0.0, expression)
    for expression in straightened(program, data.columns):
        cost = max(start_cost(expression, data), data.floor)
        offer(0.5 * len(data) * float(np.log(cost / max(fit.mean_square, data.floor))), expression)
    return [expression for _, expression in sorted(found.values(), key=lambda entry: entry[0])]


def _loss(moved: float, variance: float) -> float:
    """Nats that moving a constant by so much costs, to second order; infinite if need be."""
    deviations = moved / math.sqrt(max(variance, 1e-200))
    return 0.5 * deviations * deviations


def _tied(expression: Expression) -> Iterator[tuple[int, int, float, Expression]]:
    """Two free exponents of one product made one: their places, the sign between them, the formula."""
    place = 0
    places: dict[int, int] = {}
    for node in expression.walk():
        if isinstance(node, Number) and node.free:
            places[id(node)] = place
            place += 1
    for node in expression.walk():
        if not isinstance(node, Product):
            continue
        powers = [f for f in node.factors if isinstance(f, Power) and f.exponent.key == "#"]
        for first, second in combinations(powers, 2):
            one, other = places[id(first.exponent)], places[id(second.exponent)]
            sign = 1.0 if first.exponent.constants[0] * second.exponent.constants[0] > 0 else -1.0
            inside = multiply(first.base, raise_to(second.base, Number(sign)))
            rest = [
                factor for factor in node.factors if factor is not first and factor is not second
            ]
            new = multiply(*rest, raise_to(inside, first.exponent))
            yield one, other, sign, substitute(expression, _swap(node, new))


def _under_one_root(expression: Expression) -> Iterator[Expression]:
    """A factor with constants of its own given the exponent that the others have."""
    for node in expression.walk():
        if not isinstance(node, Product):
            continue
        parts = [_parted(factor) for factor in node.factors if not isinstance(factor, Number)]
        known = {abs(e.value) for _, e in parts if isinstance(e, Number) and not e.free}
        for base, exponent in parts:
            if not base.constants or not isinstance(exponent, Number):
                continue
            for size in known if exponent.free else known - {abs(exponent.value)}:
                old = raise_to(base, exponent)
                new = Power(base, Number(float(np.copysign(size, exponent.value))))
                if old in node.factors:
                    yield substitute(expression, _swap(old, new))


def _parted(factor: Expression) -> tuple[Expression, Expression]:
    return (factor.base, factor.exponent) if isinstance(factor, Power) else (factor, Number(1.0))


def _swap(old: Expression, new: Expression) -> Callable[[Expression], Expression | None]:
    return lambda node: new if node == old else None


def _roles(expression: Expression) -> list[_Role]:
    """The role of each free number, in the order of `walk`."""
    found: list[_Role] = []

    def visit(node: Expression, kind: str, outermost: bool) -> None:
        if isinstance(node, Number):
            if node.free:
                found.append(_Role(kind, outermost))
            return
        for place, child in enumerate(node.children):
            if isinstance(node, Power):
                visit(child, "exponent" if place == 1 else "constant", False)
            elif isinstance(node, Product):
                visit(child, "coefficient", outermost)
            else:
                visit(child, "constant", outermost and isinstance(node, Sum))

    visit(expression, "constant", True)
    return found


def _plain_values(role: _Role) -> list[float]:
    if role.kind == "exponent":
        return [*(float(p) for p in SIMPLE_EXPONENTS), 0.0]
    if role.kind == "coefficient":
        # A coefficient of one inside a root or a logarithm is form; outermost it would be chance.
        return [0.0] if role.outermost else [0.0, 1.0, -1.0]
    return [0.0] if role.outermost else [0.0, 1.0]


def _fixed(expression: Expression, place: int, value: float) -> Expression:
    """The formula with one free number fixed, in normal form again."""
    count = -1

    def change(node: Expression) -> Expression | None:
        nonlocal count
        if isinstance(node, Number) and node.free:
            count += 1
            if count == place:
                return Number(value)
        return None

    return substitute(expression, change)

"""How long a formula is, for people and as a message.

`complexity` counts what one would write down: variables, numbers, operators and functions, a root
over several factors once.

`description_length` is the length in nats of a message that tells the formula and then the data by
their deviations from it, the minimum description length of Rissanen (Automatica 14, 1978): the
constants cost half the logarithm of the number of rows each, as in BIC, and the form costs what its
signs cost. Prior knowledge of laws enters as the price of signs:

- exponents are mostly simple fractions, so one that is not costs more, and one below 1/10, which is
  hardly told from a logarithm, more still;
- a variable is mostly in one term of a sum;
- one exponent for several factors is as much of a coincidence as two that agree, but for roots;
- forms that laws of models mostly have (`_field_form.py`) need not be spelt out, so their signs cost
  less;
- roots and reciprocals of sums are rarer than sums, other powers of sums, and powers of logarithms,
  rarer still;
- what was measured is mostly positive and stays so: a law that leaves for minus infinity, as
  a - b log T does, costs as much as four signs more. Nothing is forbidden: data outvote every price.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from fractions import Fraction

import numpy as np

from taskmix.laws._evaluate import Program
from taskmix.laws._expression import (
    Exponential,
    Expression,
    Logarithm,
    Number,
    Power,
    Product,
    Sum,
    Variable,
    split_number,
)
from taskmix.laws._field_form import is_field_form
from taskmix.laws._growth import growth

SIGN = 1.0  # nats for each sign of a formula
ODD_EXPONENT = 1.5  # an exponent that is no simple fraction
LEAST_EXPONENT = 0.1
TINY_EXPONENT = 3.0  # one below that
LOGARITHM_POWERS = {1.0: 0.0, 0.5: 0.0, 2.0: 2.0}  # of log x + c, and for all others:
LOGARITHM_POWER = 4.0
STRETCHED = 3.0  # exp(k x^p), or of another function, instead of exp(k x)
POWER_OF_SUM = {0.5: 1.0, -1.0: 2.0}  # of a sum that is no usual shape, and for all others:
OTHER_POWER_OF_SUM = 3.0
HILL = 1.0  # 1 / (x^p + c)
LOGARITHM_OF_SUM = 2.0
MIXED_POWERS = 1.0  # for each exponent beyond the first among the factors of a product
SHARED_EXPONENT = 2.0  # for each factor beyond the first that has the exponent of another
SHARED_FREELY = (0.5, 1.0)  # a root over a whole product, and no exponent at all
UNMEASURED = (0.5, 1.0, 2.0)  # exponents that may be meant as they are, in a sum too
FIELD_SHARE = 0.8  # of what signs and rarities cost, for forms that laws of models mostly have
REPEATED = 3.0  # for each further term of a sum that a variable is in, but for polynomials
LEAVES_POSITIVE = 4.0
FAR = 1e6  # times a typical value
SIMPLE_EXPONENTS = tuple(
    sorted(
        {
            Fraction(sign * above, below)
            for below in (1, 2, 3, 4)
            for above in range(1, 4 * below + 1)
            if above <= 4 or below == 1
            for sign in (1, -1)
        }
        | {Fraction(sign * above, 2) for above in (5,) for sign in (1, -1)}
    )
)


def exponent_price(value: float) -> float:
    """Nats for a fixed exponent beyond the sign that writes it: more for a less usual fraction."""
    fraction = Fraction(value).limit_denominator(8)
    if abs(float(fraction) - value) > 1e-9:
        return ODD_EXPONENT
    below, above = fraction.denominator, abs(fraction.numerator)
    return 0.5 * (below - 1) + 0.5 * (above - 1)


def complexity(expression: Expression) -> int:
    """Variables, numbers, operators and functions."""
    match expression:
        case Sum():
            terms = sum(complexity(_unsigned(term)) for term in expression.terms)
            return terms + len(expression.terms) - 1
        case Product():
            return _product(expression.factors)
        case Power():
            return _product((expression,))
        case Logarithm() | Exponential():
            return 1 + complexity(expression.of)
    return 1


def _product(factors: Iterable[Expression]) -> int:
    total, above, roots = 0, 0, set()
    factors = list(factors)
    for factor in factors:
        if not isinstance(factor, Power):
            above += 1
            total += complexity(factor)
            continue
        total += complexity(factor.base)
        if not (isinstance(factor.exponent, Number) and not factor.exponent.free):
            above += 1
            total += 1 + complexity(factor.exponent)
            continue
        value = factor.exponent.value
        above += value > 0
        if abs(value) != 1 and abs(value) not in roots:
            roots.add(abs(value))
            total += 1 if abs(value) == 0.5 else 2
    return total + len(factors) - 1 + (2 if above == 0 else 0)


def _unsigned(term: Expression) -> Expression:
    """A term without a leading fixed -1, which a minus sign writes."""
    if isinstance(term, Product) and term.factors[0] == Number(-1.0):
        rest = term.factors[1:]
        return rest[0] if len(rest) == 1 else Product(rest)
    return term


def form_length(expression: Expression, rows: int, *, choosing: bool = False) -> float:
    """Nats for the formula: its signs, its constants and what is unusual in it.

    Some prices are for `choosing` a law only. In a search they would close roads: the way to one root
    over three factors is by one free exponent over them.
    """
    constants = len(expression.constants) + _arbitrary(expression)
    spelt = SIGN * complexity(expression) + _unusual(expression)
    if choosing:
        spelt += SHARED_EXPONENT * _sharing(expression)
        if is_field_form(expression):  # but what is no power law in truth stays dear
            tiny = TINY_EXPONENT * sum(map(_is_tiny, expression.walk()))
            spelt = FIELD_SHARE * (spelt - tiny) + tiny
    return spelt + 0.5 * math.log(rows) * constants


def _is_tiny(node: Expression) -> bool:
    """Whether it is a power that is hardly told from a logarithm."""
    exponent = node.exponent if isinstance(node, Power) else None
    return isinstance(exponent, Number) and exponent.free and abs(exponent.value) < LEAST_EXPONENT


def _sharing(node: Expression) -> int:
    """Factors that have the exponent of another, but for roots over products."""
    total = sum(map(_sharing, node.children))
    if isinstance(node, Power) and isinstance(node.base, Product):
        total += sum(not isinstance(factor, Number) for factor in node.base.factors) - 1
    if isinstance(node, Product):
        powers = [factor.exponent for factor in node.factors if isinstance(factor, Power)]
        sizes = [abs(p.value) for p in powers if isinstance(p, Number) and not p.free]
        odd = [size for size in sizes if size not in SHARED_FREELY]
        total += len(odd) - len(set(odd))
    return total


def has_rounded_exponent(node: Expression) -> bool:
    """Whether a fixed exponent that is neither whole nor a root is in a sum.

    The terms of a sum, a floor above all, and an exponent make up for each other, so one that was only
    rounded moves the others, and with them all that is said beyond the data. There, exponents are
    measured.
    """
    if not isinstance(node, Sum):
        return False
    powers = [child.exponent for child in node.walk() if isinstance(child, Power)]
    sizes = [abs(p.value) for p in powers if isinstance(p, Number) and not p.free]
    return any(size not in UNMEASURED for size in sizes)


def _arbitrary(node: Expression) -> int:
    """Fixed coefficients other than 1 and -1: they tell as much as fitted ones."""
    inside = node.children[:1] if isinstance(node, Power) else node.children
    if isinstance(node, Number):
        return int(not node.free and abs(node.value) != 1.0)
    return sum(_arbitrary(child) for child in inside)


def _unusual(node: Expression, shared: set[float] | None = None) -> float:
    """The price of what is rare; `shared` are exponents that earlier factors of a product told."""
    total = 0.0
    if isinstance(node, Power) and isinstance(node.exponent, Number):
        exponent = node.exponent
        if exponent.free:
            total += ODD_EXPONENT + (TINY_EXPONENT if _is_tiny(node) else 0.0)
        elif shared is None or abs(exponent.value) not in shared:
            total += exponent_price(exponent.value)
            if shared is not None:
                shared.add(abs(exponent.value))
        total += _base_price(node.base, exponent.value)
    if isinstance(node, Exponential) and any(
        isinstance(n, Power | Logarithm | Exponential) for n in node.of.walk()
    ):
        total += STRETCHED
    if isinstance(node, Logarithm) and isinstance(node.of, Sum) and not _is_shape(node.of):
        total += LOGARITHM_OF_SUM
    if isinstance(node, Sum):
        total += REPEATED * _repeated(node)
    below = None
    if isinstance(node, Product):
        below = set[float]()
        moving = [factor for factor in node.factors if not isinstance(factor, Number)]
        total += MIXED_POWERS * (len({_size(factor) for factor in moving}) - 1)
    return total + sum(_unusual(child, below) for child in node.children)


def _size(factor: Expression) -> float:
    """The exponent of a factor without its sign."""
    if isinstance(factor, Power) and isinstance(factor.exponent, Number):
        return abs(factor.exponent.value)
    return 1.0


def _base_price(base: Expression, exponent: float) -> float:
    terms = base.terms if isinstance(base, Sum) else (base,)
    if any(isinstance(split_number(term)[1], Logarithm) for term in terms):
        return LOGARITHM_POWERS.get(exponent, LOGARITHM_POWER)
    if isinstance(base, Sum) and not _is_shape(base):
        if exponent == -1.0 and _is_shape(base, hill=True):
            return HILL
        return POWER_OF_SUM.get(exponent, OTHER_POWER_OF_SUM)
    return 0.0


def _is_shape(total: Sum, *, hill: bool = False) -> bool:
    """x + c and 1 - exp(kx), which are raised to powers all the time, and x^p + c below a line."""
    moving = [term for term in total.terms if not isinstance(term, Number)]
    if len(moving) != 1:
        return False
    moved = _unsigned(moving[0])
    if hill and isinstance(moved, Power):
        moved = moved.base
    return isinstance(moved, Variable | Exponential)


def _repeated(total: Sum) -> int:
    """Terms beyond the first of each variable; x and x² count as one."""
    seen: set[tuple[str, str]] = set()
    for place, term in enumerate(total.terms):
        rest = split_number(term)[1]
        if isinstance(rest, Power) and rest.exponent == Number(2.0):
            rest = rest.base
        kind = "polynomial" if isinstance(rest, Variable) else str(place)
        seen |= {(name, kind) for name in term.variables}
    return len(seen) - len({name for name, _ in seen})


def leaves_positive(
    expression: Expression, at: Mapping[str, float], unbounded: Collection[str]
) -> bool:
    """Whether the formula becomes negative as one of the unbounded variables grows."""
    for name in sorted(expression.variables & set(unbounded)):
        found = growth(expression, name, at)
        # A leading term below zero is negative somewhere, where it vanishes too (beyond a pole).
        if (_far_value(expression, name, at) if found is None else found.scale) < 0:
            return True
    return False


def _far_value(expression: Expression, name: str, at: Mapping[str, float]) -> float:
    """The value far beyond the data, where asymptotics give no answer."""
    columns = {n: np.array([v * FAR if n == name else v]) for n, v in at.items()}
    return float(Program(expression).values(columns)[0])


def description_length(
    expression: Expression, *, mean_square: float, rows: int, choosing: bool = False
) -> float:
    """Nats for formula and data."""
    if not math.isfinite(mean_square):
        return math.inf
    count = len(expression.constants)
    # Few rows fit many constants too well: the correction of Hurvich and Tsai, Biometrika 76, 1989.
    few = count * (count + 1) / max(rows - count - 1, 0.5)
    return (
        0.5 * rows * math.log(mean_square) + form_length(expression, rows, choosing=choosing) + few
    )

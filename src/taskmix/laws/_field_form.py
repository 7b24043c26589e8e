"""Whether a formula is one of the forms that laws of models mostly have.

A message may name such a form instead of spelling it sign by sign, as a book of forms known to both
ends allows, so it costs less (`_complexity.py`). Its constants cost as ever. The forms, each with a
floor or without:

- sums of power laws, one input a term (Hoffmann et al., 2022), and powers of them (Kaplan et al., 2020);
- products of power laws;
- of one input, or of more beside a floor: one of them shifted, (x + c)^p, or broken, (1 + c x^q)^p
  (Caballero et al., 2023), a saturation, x^p / (x^p + c) or 1 - exp(-kx), or an exponential, exp(kx);
- an interaction, exp(c log x log z), in a product (Clark et al., 2022);
- tokens that are repeated, (u (1 - exp(-k d / u)))^p, in a sum (Muennighoff et al., 2023).
"""

from __future__ import annotations

from collections.abc import Iterator

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

POWER, SHAPE, INTERACTION, JOINT = "power", "shape", "interaction", "joint"


def is_field_form(expression: Expression) -> bool:
    """Whether it is one of the above."""
    terms = expression.terms if isinstance(expression, Sum) else (expression,)
    moving = [term for term in terms if not isinstance(term, Number)]
    if not moving:
        return False
    shapes, seen = 0, set[str]()
    for term in moving:
        kinds = [_kind(factor) for factor in _factors(split_number(term)[1])]
        if None in kinds or seen & term.variables or (JOINT in kinds and len(kinds) > 1):
            return False
        if len(moving) > 1 and len(term.variables) > 1 and set(kinds) == {POWER}:
            return False
        # A product of shapes of several inputs is no form of the field unless it stands beside a floor.
        if len(term.variables) > 1 and SHAPE in kinds and len(terms) == 1:
            return False
        seen |= term.variables
        shapes += kinds.count(SHAPE)
    return shapes <= 1


def _factors(node: Expression) -> Iterator[Expression]:
    """The factors, those of a product that is raised to a power one by one."""
    for factor in node.factors if isinstance(node, Product) else (node,):
        if isinstance(factor, Power) and isinstance(factor.base, Product):
            yield from (Power(inner, factor.exponent) for inner in factor.base.factors)
        else:
            yield factor


def _kind(factor: Expression) -> str | None:
    """A power of an input, another shape of one or of two, or nothing that is known here."""
    base = factor
    if isinstance(factor, Power):
        if not isinstance(factor.exponent, Number):
            return None
        base = factor.base
    if isinstance(base, Power):  # x^p, spread from a product
        base = base.base
    if isinstance(base, Variable):
        return POWER
    if isinstance(base, Exponential):
        if _is_interaction(base):
            return INTERACTION
        return SHAPE if _is_plain_exponential(base) else None
    known = isinstance(base, Sum) and (_is_bend(base) or _is_approach(base))
    if isinstance(base, Sum) and _is_joint(base):
        return JOINT
    return SHAPE if known else None


def _is_power(node: Expression) -> bool:
    rest = split_number(node)[1]
    if isinstance(rest, Power):
        return isinstance(rest.base, Variable) and isinstance(rest.exponent, Number)
    return isinstance(rest, Variable)


def _is_bend(total: Sum) -> bool:
    """x + c, 1 + c x^q and x^p + c."""
    moving = [term for term in total.terms if not isinstance(term, Number)]
    return len(moving) == 1 < len(total.terms) and _is_power(moving[0])


def _is_joint(total: Sum) -> bool:
    """A sum of power laws of different inputs, without a floor."""
    names = [term.variables for term in total.terms]
    return all(map(_is_power, total.terms)) and len(frozenset().union(*names)) == len(names)


def _is_approach(total: Sum) -> bool:
    """1 - exp(-kx), also with d / u for x."""
    moving = [term for term in total.terms if not isinstance(term, Number)]
    if len(moving) != 1 or len(total.terms) != 2:
        return False
    inner = split_number(moving[0])[1]
    if not isinstance(inner, Exponential):
        return False
    parts = list(_factors(split_number(inner.of)[1]))
    return len(parts) <= 2 and all(
        isinstance(part, Variable) or part == Power(_base(part), Number(-1.0)) for part in parts
    )


def _base(node: Expression) -> Expression:
    return node.base if isinstance(node, Power) else node


def _is_plain_exponential(node: Exponential) -> bool:
    """exp(kx), also of a weighted sum of inputs."""
    terms = node.of.terms if isinstance(node.of, Sum) else (node.of,)
    return all(isinstance(split_number(term)[1], Variable) for term in terms)


def _is_interaction(node: Exponential) -> bool:
    """exp(c log x log z), with one of them perhaps shifted."""
    parts = list(_factors(split_number(node.of)[1]))
    return len(parts) == 2 and all(
        isinstance(part, Logarithm)
        and (isinstance(part.of, Variable) or (isinstance(part.of, Sum) and _is_bend(part.of)))
        for part in parts
    )

"""A formula as text, as LaTeX, as Python source, as a SymPy expression."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from fractions import Fraction
from keyword import iskeyword
from typing import Any

from taskmix.extras import load
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

_SUM, _PRODUCT, _POWER, _ATOM = range(4)  # how tightly a text holds together
Show = Callable[[float], str]


def as_formula(expression: Expression, digits: int = 4) -> str:
    """For people: `0.69*sqrt(n)`. It can be parsed again."""
    return _write(expression, lambda value: _number(value, digits))[0]


def as_python(expression: Expression, name: str = "law") -> str:
    """The source of a function of NumPy arrays, with every digit of the constants."""
    arguments = _argument_names(sorted(expression.variables))
    body = _write(expression, repr)[0].replace("^", "**")
    for column, argument in arguments.items():
        if column != argument:
            body = re.sub(rf"(?<!\w){re.escape(column)}(?!\w)", argument, body)
    inputs = ", ".join(arguments.values())
    for function in ("sqrt", "log", "exp"):
        body = body.replace(f"{function}(", f"np.{function}(")
    return f"import numpy as np\n\n\ndef {name}({inputs}):\n    return {body}\n"


def _argument_names(columns: list[str]) -> dict[str, str]:
    """Columns as names that Python takes: `lambda` becomes `lambda_`, `n²` becomes `n_`."""
    found: dict[str, str] = {}
    taken = {name for name in columns if name.isidentifier() and not iskeyword(name)}
    for column in columns:
        argument = column
        if column not in taken:
            argument = "".join(each if f"_{each}".isidentifier() else "_" for each in column)
            while argument in taken or iskeyword(argument):
                argument += "_"
            taken.add(argument)
        found[column] = argument
    return found


def as_sympy(expression: Expression) -> Any:
    """The SymPy expression; fixed simple numbers are rational, fitted ones are floats."""
    sympy = load("sympy", purpose="A formula as SymPy")

    def visit(node: Expression) -> Any:
        match node:
            case Number():
                simple = _simple(node.value)
                if not node.free and simple is not None:
                    return sympy.Rational(simple.numerator, simple.denominator)
                return sympy.Float(node.value)
            case Variable():
                return sympy.Symbol(node.name)
            case Sum():
                return sympy.Add(*(visit(term) for term in node.terms))
            case Product():
                return sympy.Mul(*(visit(factor) for factor in node.factors))
            case Power():
                return sympy.Pow(visit(node.base), visit(node.exponent))
            case Logarithm():
                return sympy.log(visit(node.of))
            case Exponential():
                return sympy.exp(visit(node.of))
        raise TypeError(type(node))

    return visit(expression)


def as_latex(expression: Expression, digits: int = 4) -> str:
    """The formula as LaTeX mathematics."""
    match expression:
        case Number():
            text = _number(expression.value, digits)
            if "e" in text:
                mantissa, exponent = text.split("e")
                return rf"{mantissa} \cdot 10^{{{int(exponent)}}}"
            return text
        case Variable():
            name = expression.name.replace("_", r"\_")
            return name if len(expression.name) == 1 else rf"\mathrm{{{name}}}"
        case Sum():
            return _joined([as_latex(term, digits) for term in expression.terms])
        case Logarithm():
            return rf"\log\left({as_latex(expression.of, digits)}\right)"
        case Exponential():
            return rf"\exp\left({as_latex(expression.of, digits)}\right)"
        case Product():
            above, below = _divided(expression.factors)
            top = r" \, ".join(_latex_factor(f, digits) for f in above) or "1"
            if above[:1] == [Number(-1.0)]:
                top = "-" + (r" \, ".join(_latex_factor(f, digits) for f in above[1:]) or "1")
            if not below:
                return top
            bottom = r" \, ".join(_latex_factor(f, digits) for f in below)
            return rf"\frac{{{top}}}{{{bottom}}}"
        case Power():
            return _latex_factor(expression, digits)
    raise TypeError(type(expression))


def _latex_factor(factor: Expression, digits: int) -> str:
    if isinstance(factor, Sum):
        return rf"\left({as_latex(factor, digits)}\right)"
    if not isinstance(factor, Power):
        return as_latex(factor, digits)
    if factor.exponent == Number(0.5):
        return rf"\sqrt{{{as_latex(factor.base, digits)}}}"
    base = as_latex(factor.base, digits)
    if not isinstance(factor.base, Variable):
        base = rf"\left({base}\right)"
    return f"{base}^{{{_exponent(factor.exponent, lambda value: _number(value, digits))}}}"


def _joined(parts: list[str]) -> str:
    """A sum, one that is added first."""
    parts = sorted(parts, key=lambda part: part.startswith("-"))
    return " + ".join(parts).replace("+ -", "- ")


def _write(node: Expression, show: Show) -> tuple[str, int]:
    """The text and how tightly it holds together."""
    match node:
        case Number():
            text = show(node.value)
            return text, _ATOM if node.value >= 0 else _SUM
        case Variable():
            return node.name, _ATOM
        case Sum():
            return _joined([_write(term, show)[0] for term in node.terms]), _SUM
        case Logarithm():
            return f"log({_write(node.of, show)[0]})", _ATOM
        case Exponential():
            return f"exp({_write(node.of, show)[0]})", _ATOM
        case Product():
            return _write_product(node, show)
        case Power():
            if node.exponent == Number(0.5):
                return f"sqrt({_write(node.base, show)[0]})", _ATOM
            if isinstance(node.exponent, Number) and node.exponent.value < 0:
                flipped = _flipped(node)
                return f"1/{_held(flipped, _POWER, show)}", _PRODUCT
            exponent = _exponent(node.exponent, show)
            held = exponent if exponent.replace(".", "").isalnum() else f"({exponent})"
            return f"{_held(node.base, _ATOM, show)}^{held}", _POWER
    raise TypeError(type(node))


def _write_product(node: Product, show: Show) -> tuple[str, int]:
    above, below = _divided(node.factors)
    sign = ""
    if above and isinstance(above[0], Number) and above[0].value < 0:
        sign, size = "-", Number(-above[0].value)
        above = above[1:] if size.value == 1.0 else [size, *above[1:]]
    text = sign + ("*".join(_rooted(above, show)) or "1")
    if below:
        parts = _rooted(below, show)
        text += f"/{parts[0]}" if len(parts) == 1 else f"/({'*'.join(parts)})"
    return text, _PRODUCT


def _rooted(factors: list[Expression], show: Show) -> list[str]:
    """The factors, all square roots under one."""
    roots = [f for f in factors if isinstance(f, Power) and f.exponent == Number(0.5)]
    others = [_held(f, _POWER, show) for f in factors if f not in roots]
    if not roots:
        return others
    inside = [root.base for root in roots if isinstance(root, Power)]
    if len(inside) == 1:
        return [*others, f"sqrt({_write(inside[0], show)[0]})"]
    return [*others, f"sqrt({'*'.join(_held(base, _POWER, show) for base in inside)})"]


def _divided(factors: tuple[Expression, ...]) -> tuple[list[Expression], list[Expression]]:
    """What stands above a fraction's line and what below."""
    above: list[Expression] = []
    below: list[Expression] = []
    for factor in factors:
        negative = (
            isinstance(factor, Power)
            and isinstance(factor.exponent, Number)
            and factor.exponent.value < 0
        )
        if negative and isinstance(factor, Power):
            below.append(_flipped(factor))
        else:
            above.append(factor)
    return above, below


def _flipped(power: Power) -> Expression:
    if isinstance(power.exponent, Number):
        size = -power.exponent.value
        if size == 1.0 and not power.exponent.free:
            return power.base
        return Power(power.base, Number(size, power.exponent.free))
    return power


def _held(node: Expression, tightness: int, show: Show) -> str:
    text, own = _write(node, show)
    return text if own >= tightness else f"({text})"


def _exponent(node: Expression, show: Show) -> str:
    if isinstance(node, Number) and not node.free:
        simple = _simple(node.value)
        if simple is not None:
            return str(simple)
    return _write(node, show)[0]


def _simple(value: float) -> Fraction | None:
    if not math.isfinite(value):
        return None
    fraction = Fraction(value).limit_denominator(12)
    return fraction if abs(float(fraction) - value) < 1e-12 else None


def _number(value: float, digits: int) -> str:
    text = f"{value:.{digits}g}"
    return text.replace("e+0", "e").replace("e+", "e").replace("e-0", "e-")

"""How a formula grows as one of its variables does, the others held where they are.

For a variable x without bound the leading term of every formula of our grammar is
a · exp(k x^m) · x^p · (log x)^q · (log log x)^r, and these multiply, add and nest by a few rules: in a
sum the faster term wins, a logarithm turns a power into a logarithm and an exponential into a power.
Where leading terms cancel each other the answer is not known and says so.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

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


@dataclass(frozen=True)
class Growth:
    """A leading term; `scale` is its coefficient and tells the sign."""

    scale: float
    rate: float = 0.0  # k of exp(k x^m)
    rate_power: float = 0.0  # m
    power: float = 0.0
    log_power: float = 0.0
    log_log_power: float = 0.0

    @property
    def is_constant(self) -> bool:
        return not any((self.rate, self.power, self.log_power, self.log_log_power))

    @property
    def grows(self) -> bool:
        """Whether its size has no bound."""
        return self._speed > _STILL

    @property
    def vanishes(self) -> bool:
        return self._speed < _STILL or self.scale == 0.0

    @property
    def limit(self) -> float:
        """Where the formula goes: a number, or plus or minus infinity."""
        if self.vanishes:
            return 0.0
        return math.copysign(math.inf, self.scale) if self.grows else self.scale

    @property
    def _speed(self) -> tuple[float, ...]:
        # Compared from the left: an exponential beats every power, a power every logarithm.
        exponential = math.copysign(self.rate_power, self.rate) if self.rate else 0.0
        return (exponential, self.rate, self.power, self.log_power, self.log_log_power)

    def describe(self, name: str) -> str:
        """In words a formula uses, such as `n^0.5` or `constant`."""
        parts = []
        if self.rate:
            inside = name if self.rate_power == 1 else f"{name}^{self.rate_power:.3g}"
            parts.append(f"exp({self.rate:.3g} {inside})")
        for exponent, base in (
            (self.power, name),
            (self.log_power, f"log({name})"),
            (self.log_log_power, f"log(log({name}))"),
        ):
            if exponent:
                parts.append(base if exponent == 1 else f"{base}^{exponent:.3g}")
        return " ".join(parts) or "constant"


_STILL = (0.0, 0.0, 0.0, 0.0, 0.0)


def growth(expression: Expression, variable: str, at: Mapping[str, float]) -> Growth | None:
    """The leading term for large `variable`, the others at the values given; None if not known."""
    match expression:
        case Number():
            return Growth(expression.value)
        case Variable():
            if expression.name == variable:
                return Growth(1.0, power=1.0)
            return Growth(float(at[expression.name]))
        case Product():
            return _product([growth(child, variable, at) for child in expression.factors])
        case Sum():
            return _sum([growth(child, variable, at) for child in expression.terms])
        case Power():
            exponent = growth(expression.exponent, variable, at)
            if exponent is None or not exponent.is_constant:
                return None
            return _raised(growth(expression.base, variable, at), exponent.scale)
        case Logarithm():
            return _log(growth(expression.of, variable, at))
        case Exponential():
            return _exp(growth(expression.of, variable, at))
    return None


def _product(parts: list[Growth | None]) -> Growth | None:
    result = Growth(1.0)
    for part in parts:
        if part is None:
            return None
        if part.scale == 0.0:
            return Growth(0.0)
        rate, rate_power = result.rate, result.rate_power
        if part.rate_power == rate_power:
            rate += part.rate
        elif part.rate_power > rate_power:
            rate, rate_power = part.rate, part.rate_power
        result = Growth(
            result.scale * part.scale,
            rate,
            rate_power if rate else 0.0,
            result.power + part.power,
            result.log_power + part.log_power,
            result.log_log_power + part.log_log_power,
        )
    return result


def _sum(parts: list[Growth | None]) -> Growth | None:
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    known = [part for part in known if part.scale != 0.0] or [Growth(0.0)]
    fastest = max(part._speed for part in known)
    leading = [part for part in known if part._speed == fastest]
    total = math.fsum(part.scale for part in leading)
    if len(leading) > 1 and abs(total) <= 1e-12 * max(abs(part.scale) for part in leading):
        return None
    return replace(leading[0], scale=total)


def _raised(base: Growth | None, exponent: float) -> Growth | None:
    if base is None or (base.scale < 0 and exponent != int(exponent)):
        return None
    if base.scale == 0.0:
        return Growth(0.0) if exponent > 0 else None
    try:
        scale = base.scale**exponent
    except OverflowError:
        return None
    return Growth(
        scale,
        base.rate * exponent,
        base.rate_power,
        base.power * exponent,
        base.log_power * exponent,
        base.log_log_power * exponent,
    )


def _log(of: Growth | None) -> Growth | None:
    if of is None or of.scale <= 0 or (of.scale == 1.0 and of.is_constant):
        return None
    if of.rate:
        return Growth(of.rate, power=of.rate_power)
    if of.power:
        return Growth(of.power, log_power=1.0)
    if of.log_power:
        return Growth(of.log_power, log_log_power=1.0)
    if of.log_log_power:
        return None
    return Growth(math.log(of.scale))


def _exp(of: Growth | None) -> Growth | None:
    if of is None:
        return None
    if not of.grows:
        return Growth(math.exp(min(of.limit, 700.0)))
    if of.rate == 0.0 and of.log_power == of.log_log_power == 0.0:
        return Growth(1.0, rate=of.scale, rate_power=of.power)
    if of.power == of.rate == of.log_log_power == 0.0 and of.log_power == 1.0:
        return Growth(1.0, power=of.scale)
    return None

"""Formulas of other programs as ours.

gplearn protects its functions: its quotient by something tiny is 1, its logarithm and root are of the
absolute value. A formula is taken as it reads; where that gives other values than a number for some
row, it is left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

import numpy as np

from taskmix.errors import OptionError
from taskmix.laws._fitting import Fit, Observations
from taskmix.laws._forms import (
    FUNCTIONS,
    Expression,
    Number,
    Program,
    Variable,
    add,
    free_numbers,
    multiply,
    negative,
    parse_formula,
    quotient,
)

_TWO: dict[str, Callable[[Expression, Expression], Expression]] = {
    "add": add,
    "sub": lambda first, second: add(first, negative(second)),
    "mul": multiply,
    "div": quotient,
}
_CALL = re.compile(
    r"\s*(?:(?P<name>[^\W\d]\w*)|(?P<number>-?[\d.]+(?:[eE][+-]?\d+)?)|(?P<sign>[(),]))"
)


def fits_of(texts: Iterable[str], data: Observations) -> list[Fit]:
    """The formulas that can be evaluated on every row, the numbers in them free."""
    found: dict[str, Fit] = {}
    for text in texts:
        try:
            expression = free_numbers(_read(text))
        except OptionError:
            continue
        values = Program(expression).values(data.columns)
        square = data.mean_square(values)
        if np.isfinite(square) and (
            expression.key not in found or square < found[expression.key].mean_square
        ):
            found[expression.key] = Fit(expression, square)
    return sorted(found.values(), key=lambda fit: fit.mean_square)


def _read(text: str) -> Expression:
    """An infix formula, or one of nested calls such as add(mul(X0, 2), n)."""
    if re.match(r"\s*(?:add|sub|mul|div)\(", text) or "," in text:
        return _Calls(text).whole()
    return parse_formula(text)


class _Calls:
    """Reads nested calls."""

    def __init__(self, text: str) -> None:
        self.tokens = [(m.lastgroup, m[str(m.lastgroup)]) for m in _CALL.finditer(text)]
        self.place = 0
        self.text = text

    def whole(self) -> Expression:
        result = self._next()
        if self.place != len(self.tokens):
            raise OptionError(f"A formula should end. Found more in {self.text[:60]!r}.")
        return result

    def _next(self) -> Expression:
        if self.place >= len(self.tokens):
            raise OptionError(f"A formula should be whole. Found an end in {self.text[:60]!r}.")
        kind, word = self.tokens[self.place]
        self.place += 1
        if kind == "number":
            return Number(float(word))
        if self.place < len(self.tokens) and self.tokens[self.place] == ("sign", "("):
            parts = []
            while self.place < len(self.tokens) and self.tokens[self.place][1] != ")":
                self.place += 1  # an opening parenthesis or a comma
                parts.append(self._next())
            self.place += 1
            if word in _TWO and len(parts) == 2:
                return _TWO[word](*parts)
            if word in FUNCTIONS and len(parts) == 1:
                return FUNCTIONS[word](parts[0])
            raise OptionError(f"A formula should use known functions. Found {word!r}.")
        return Variable(word)

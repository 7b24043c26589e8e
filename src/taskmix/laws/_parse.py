"""Formulas as people type them: `sqrt((log(T) + 0.45) * ami * n / (ami + 0.6))`.

A small recursive-descent parser of numbers, names, `+ - * / ^ **`, parentheses and the functions
below. Nothing is evaluated, so a formula can be taken from anyone; its length and depth are bounded.
Every number but an exponent is a constant that a fit may move (`free_numbers`), or all are fixed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NoReturn

from taskmix.errors import OptionError
from taskmix.laws._expression import MAX_DEPTH, Expression, Number, Power, Variable, check_depth
from taskmix.laws._normal import add, exp, log, multiply, negative, quotient, raise_to, substitute

MAX_LENGTH = 2000
FUNCTIONS: dict[str, Callable[[Expression], Expression]] = {
    "sqrt": lambda of: raise_to(of, Number(0.5)),
    "log": log,
    "ln": log,
    "exp": exp,
    "neg": negative,
    "inv": lambda of: raise_to(of, Number(-1.0)),
    "square": lambda of: raise_to(of, Number(2.0)),
}
_TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)|(?P<name>[^\W\d]\w*)"
    r"|(?P<sign>\*\*|[-+*/^(),]))"
)


def parse_formula(text: str) -> Expression:
    """The tree of a formula, all its numbers fixed.

    >>> evaluate_formula(parse_formula("sqrt(n) / T"), {"n": np.array([16.0]), "T": np.array([2.0])})
    array([2.])
    """
    parser = _Parser(text)
    result = parser.sum(0)
    if parser.peek():
        parser.wrong(f"{parser.peek()!r}")
    check_depth(result)
    return result


def free_numbers(expression: Expression) -> Expression:
    """The same formula with every number but the exponents left to a fit.

    In a sum or product of numbers the numbers are one; -1 stays, it is a minus sign. Of an exponent
    with a variable the numbers are left to the fit too.
    """

    def change(node: Expression) -> Expression | None:
        if isinstance(node, Number):
            return node if node.value == -1.0 else Number(node.value, free=True)
        if isinstance(node, Power):
            is_number = isinstance(node.exponent, Number)
            exponent = node.exponent if is_number else substitute(node.exponent, change)
            return raise_to(substitute(node.base, change), exponent)
        return None

    return substitute(expression, change)


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        if not text.strip() or len(text) > MAX_LENGTH:
            found = f"{len(text)} characters" if text.strip() else "nothing"
            raise OptionError(f"A formula should have 1 to {MAX_LENGTH} characters. Found {found}.")
        self.tokens: list[tuple[str, str]] = []
        place = 0
        end = len(text.rstrip())
        while place < end:
            match = _TOKEN.match(text, place)
            if match is None:
                self.wrong(f"{text[place:].strip()[:1]!r}")
            self.tokens.append((str(match.lastgroup), match[str(match.lastgroup)]))
            place = match.end()
        self.place = 0

    def wrong(self, found: str) -> NoReturn:
        raise OptionError(
            "A formula should be made of numbers, columns, + - * / ^, parentheses and "
            f"{', '.join(FUNCTIONS)}. Found {found} in {self.text[:80]!r}."
        )

    def peek(self) -> str:
        return self.tokens[self.place][1] if self.place < len(self.tokens) else ""

    def take(self, *wanted: str) -> str:
        """The next sign if it is one of these."""
        found = self.peek()
        if found and found in wanted and self.tokens[self.place][0] == "sign":
            self.place += 1
            return found
        return ""

    def sum(self, depth: int) -> Expression:
        result = self.product(depth)
        while sign := self.take("+", "-"):
            term = self.product(depth)
            result = add(result, term if sign == "+" else negative(term))
        return result

    def product(self, depth: int) -> Expression:
        result = self.signed(depth)
        while sign := self.take("*", "/"):
            factor = self.signed(depth)
            result = multiply(result, factor) if sign == "*" else quotient(result, factor)
        return result

    def signed(self, depth: int) -> Expression:
        minus = False
        while sign := self.take("+", "-"):
            minus ^= sign == "-"
        result = self.power(depth)
        return negative(result) if minus else result

    def power(self, depth: int) -> Expression:
        base = self.atom(depth + 1)
        if self.take("^", "**"):
            minus = bool(self.take("-"))
            exponent = self.power(depth + 1)  # a tower stands on its right foot
            return raise_to(base, negative(exponent) if minus else exponent)
        return base

    def atom(self, depth: int) -> Expression:
        if depth > MAX_DEPTH:
            self.wrong(f"more than {MAX_DEPTH} levels of parentheses")
        if self.take("("):
            result = self.sum(depth + 1)
            self.close()
            return result
        if self.place == len(self.tokens):
            self.wrong("an end where a number or a column should be")
        kind, word = self.tokens[self.place]
        if kind == "sign":
            self.wrong(f"{word!r} where a number or a column should be")
        self.place += 1
        if kind == "number":
            value = float(word)
            if value == float("inf"):
                self.wrong(f"the number {word}")
            return Number(value)
        if self.take("("):
            if word not in FUNCTIONS:
                self.wrong(f"the function {word!r}")
            result = FUNCTIONS[word](self.sum(depth + 1))
            self.close()
            return result
        return Variable(word)

    def close(self) -> None:
        if not self.take(")"):
            self.wrong("a parenthesis that is not closed")

"""Formulas from anyone: nothing in them is run, and none takes long or much memory."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskmix.errors import InputError
from taskmix.laws import evaluate_formula, parse_formula
from taskmix.laws._forms import as_python

REFUSED = [
    "__import__('os').system('true')",
    "n.__class__.__mro__",
    "n.__init__.__globals__",
    "(lambda: 0)()",
    "[n for n in (1,)]",
    "__class__(n)",
    "eval(n)",
    "open(n)",
    "n if n else n",
    "n; n",
    "n := 1",
    "{n}",
    "'n'",
    "n\x00",
    "1e999",
    "n" + "**9" * 600,
    "(" * 1900,
    "(" * 900 + "n" + ")" * 900,
    "log(" * 300 + "n" + ")" * 300,
    "n+" * 5000 + "n",
    "",
    " " * 10_000,
    "\N{FULLWIDTH LEFT PARENTHESIS}n)",
]
ODD = [  # formulas all the same, whatever their values
    "9**9**9",
    "9**9**9**9",
    "n**1e308",
    "exp(exp(exp(9)))",
    "1/0",
    "0**-1",
    "log(-1) + n",
    "1e308*1e308",
    "-" * 1999 + "n",
    "*".join(["(n+1)"] * 300),
    "__builtins__ + n",
]


@pytest.mark.parametrize("text", REFUSED, ids=lambda text: repr(text[:24]))
def test_what_is_no_formula_is_refused_in_a_sentence(text: str) -> None:
    with pytest.raises(InputError, match="A formula should"):
        parse_formula(text)


@pytest.mark.parametrize("text", ODD, ids=lambda text: repr(text[:24]))
def test_huge_numbers_and_towers_are_only_numbers(text: str) -> None:
    columns = {"n": np.array([1.0, 2.0]), "__builtins__": np.array([0.0, 1.0])}
    with np.errstate(all="ignore"):
        values = evaluate_formula(parse_formula(text), columns)
    assert np.broadcast_to(values, (2,)).dtype == np.float64


@given(st.text(alphabet="n1.9e+-*/^() logexpsqrt_'[]{};:=\\\x00²٣ß", max_size=60))
def test_any_text_is_a_formula_or_refused(text: str) -> None:
    told = ""
    try:
        tree = parse_formula(text)
    except InputError as error:
        told = str(error)
    if told:
        assert told.startswith("A formula should ")
        return
    assert all(name in text for name in tree.variables)
    compile(as_python(tree), "law", "exec")

"""What a formula is: its tree, its normal form, and what can be said of it without data.

Formulas are read (`_parse.py`), written (`_print.py`), evaluated with their derivatives
(`_evaluate.py`), and judged by how they grow (`_growth.py`) and how long they are
(`_complexity.py`). Nothing here knows a table.
"""

from taskmix.laws._forms._complexity import (
    LEAVES_POSITIVE,
    SIMPLE_EXPONENTS,
    UNMEASURED,
    complexity,
    description_length,
    form_length,
    has_rounded_exponent,
    leaves_positive,
)
from taskmix.laws._forms._evaluate import Array, Columns, Program, evaluate_formula
from taskmix.laws._forms._expression import (
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
from taskmix.laws._forms._field_form import is_field_form
from taskmix.laws._forms._growth import Growth, growth
from taskmix.laws._forms._normal import (
    add,
    exchange,
    exp,
    log,
    multiply,
    negative,
    open_key,
    quotient,
    raise_to,
    substitute,
)
from taskmix.laws._forms._parse import FUNCTIONS, free_numbers, parse_formula
from taskmix.laws._forms._print import as_formula, as_latex, as_python, as_sympy

__all__ = [
    "FUNCTIONS",
    "LEAVES_POSITIVE",
    "ONE",
    "SIMPLE_EXPONENTS",
    "UNMEASURED",
    "ZERO",
    "Array",
    "Columns",
    "Exponential",
    "Expression",
    "Growth",
    "Logarithm",
    "Number",
    "Power",
    "Product",
    "Program",
    "Sum",
    "Variable",
    "add",
    "as_formula",
    "as_latex",
    "as_python",
    "as_sympy",
    "complexity",
    "description_length",
    "evaluate_formula",
    "exchange",
    "exp",
    "form_length",
    "free",
    "free_numbers",
    "growth",
    "has_rounded_exponent",
    "is_field_form",
    "leaves_positive",
    "log",
    "multiply",
    "negative",
    "open_key",
    "parse_formula",
    "quotient",
    "raise_to",
    "split_number",
    "substitute",
]

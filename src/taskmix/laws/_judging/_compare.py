"""Given formulas on the rows of a table: as they stand, rescaled, and with constants fitted anew."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from taskmix.laws._fitting import Observations, as_columns, check_lengths, fit_constants
from taskmix.laws._forms import (
    Array,
    Columns,
    Expression,
    add,
    as_formula,
    complexity,
    evaluate_formula,
    free,
    free_numbers,
    multiply,
    parse_formula,
)
from taskmix.laws._judging._given import scaled_form
from taskmix.laws._judging._published import BOUND_RATES, HUNDREDTHS, PAPER_LAWS


@dataclass(frozen=True)
class FormulaComparison:
    """Mean squares of a formula's deviations; NaN where it is not defined on every row."""

    name: str
    formula: str
    complexity: int
    as_given: float
    rescaled: float  # times the best factor
    refitted: float  # every number but the exponents fitted
    refitted_formula: str
    refitted_r2: float


def compare_formulas(
    formulas: Mapping[str, str], X: Any, y: Any, *, rates: bool = False
) -> list[FormulaComparison]:
    """Each formula on the same rows; as `rates` they are compared as a + b * formula.

    A formula of columns that are not there raises an `InputError`.

    >>> X, y = {"n": [1, 4, 9]}, [2.0, 4.0, 6.0]
    >>> (found,) = compare_formulas({"mine": "sqrt(n)"}, X, y)
    >>> round(found.as_given, 2), round(found.rescaled, 2), found.refitted_formula
    (4.67, 0.0, '2*sqrt(n)')
    """
    columns = as_columns(X)
    target = as_columns({"y": y})["y"]
    check_lengths(columns, target)
    return [_compared(name, text, columns, target, rates) for name, text in formulas.items()]


def paper_comparisons(X: Any, y: Any) -> list[FormulaComparison]:
    """The paper's formulas and bounds whose columns the table has.

    The paper's scores are in hundredths, so its formulas are divided by 100 where the target is
    a share. In a table with one `n` all tasks have as many samples, the real one and the others.

    >>> found = paper_comparisons({"n": [1, 4, 9]}, [0.69, 1.38, 2.07])
    >>> [row.name for row in found if abs(row.rescaled) < 1e-9]
    ['eq3', 'eq7', 'eq8']
    """
    columns = as_columns(X)
    if "n" in columns:
        columns = {"n_ner": columns["n"], "n_syn": columns["n"], **columns}
    is_share = bool(np.max(as_columns({"y": y})["y"], initial=0.0) <= 1.0)
    found = []
    for formulas, rates in ((PAPER_LAWS, False), (BOUND_RATES, True)):
        fitting = {
            name: f"({text})/{HUNDREDTHS}" if is_share and not rates else text
            for name, text in formulas.items()
            if parse_formula(text).variables <= set(columns)
        }
        found += compare_formulas(fitting, columns, y, rates=rates)
    return found


def _compared(
    name: str, text: str, columns: Columns, target: Array, rates: bool
) -> FormulaComparison:
    given = parse_formula(text)
    values = evaluate_formula(given, columns)
    data = Observations(columns, target, np.ones(len(target)))
    with np.errstate(over="ignore"):
        size = float(values @ values)
    scale = float(values @ target) / size if np.isfinite(size) and size > 0 else np.nan
    form: Expression = multiply(free(1.0), given) if rates else scaled_form(free_numbers(given))
    if rates:
        form = add(free(0.0), form)
    fit = fit_constants(form, data, steps=200, tolerance=1e-12)
    refitted = fit.mean_square if np.isfinite(fit.mean_square) else float("nan")
    with np.errstate(over="ignore", invalid="ignore"):  # an error may be infinite, or unknown
        as_given = float(np.mean((values - target) ** 2))
        rescaled = float(np.mean((scale * values - target) ** 2))
    return FormulaComparison(
        name=name,
        formula=as_formula(given),
        complexity=complexity(given),
        as_given=as_given,
        rescaled=rescaled,
        refitted=refitted,
        refitted_formula=as_formula(fit.expression),
        refitted_r2=1 - refitted / (float(np.var(target)) or float("nan")),
    )

"""The law of a form that is known: its constants fitted to rows, with intervals, without any search."""

from __future__ import annotations

from typing import Any

from taskmix.errors import InputError
from taskmix.laws._fitting import (
    Noise,
    Observations,
    as_columns,
    check_lengths,
    check_noise,
    fit_constants,
    likeliest_noise,
    noise_unit,
    row_weights,
)
from taskmix.laws._forms import (
    Expression,
    Program,
    Sum,
    evaluate_formula,
    free,
    free_numbers,
    multiply,
    parse_formula,
)
from taskmix.laws._judging._law import Errors, Law, law_of
from taskmix.laws._searching import Describer


def fit_formula(formula: str, X: Any, y: Any, *, noise: Noise = "auto", name: str = "y") -> Law:
    """Fits every number of a formula but its exponents, and a factor where it has none of its own.

    >>> fit_formula("10*sqrt(n) + 1", {"n": [1, 4, 9, 16, 25]}, [5.0, 7.0, 9.0, 11.0, 13.0])
    Law('y = 2*sqrt(n) + 3')
    """
    columns = as_columns(X)
    target = as_columns({name: y})[name]
    check_lengths(columns, target)
    form = scaled_form(free_numbers(parse_formula(formula)))
    evaluate_formula(form, columns)  # tells of a column that is not there
    if len(target) <= len(form.constants):
        raise InputError(
            f"A formula with {len(form.constants)} numbers should be fitted to more rows than that. "
            f"Found {len(target)}."
        )
    check_noise(noise, columns)
    kind = likeliest_noise(columns, target) if noise == "auto" else noise
    data = Observations(columns, target, row_weights(columns, target, kind))
    guess = Program(fit_constants(form, data, steps=200).expression).values(columns)
    weight, unit = row_weights(columns, target, kind, guess), noise_unit(kind, target)
    data = Observations(columns, target, weight, unit=unit)
    fit = fit_constants(form, data, steps=200, tolerance=1e-12)
    if not fit.is_usable(data):
        raise InputError(
            f"The formula {formula!r} should have a value on every row. Found rows where it has none."
        )
    length = Describer.of(data).length(fit.expression, fit.mean_square)
    return law_of(fit, data, target=name, length=length, noise=kind, errors=Errors())


def scaled_form(form: Expression) -> Expression:
    """With a factor where the formula has none of its own."""
    return form if isinstance(form, Sum) else multiply(free(1.0), form)

"""Given formulas on the rows of a table: as they stand, rescaled, and with constants fitted anew.

Those of the paper are

    Bettgenhäuser, Hedderich and Klakow, "Learning Functions to Study the Benefit of Multitask
    Learning", 2020: equations 3 to 6 (balanced) and 7 to 11 (unbalanced), and the rates of the bounds
    its section 2 quotes: Baxter 2000, Maurer et al. 2016, Liu et al. 2017, Ciliberto et al. 2017.

`n` are samples per task, `T` tasks, `ami` the adjusted mutual information; `n_ner` and `n_syn` the
samples of the real and of the synthetic tasks. The paper's scores are F1 times a factor, 100 or 1000
"in the different experiments" without saying which; 100 fits equations 3 and 7 to 10, and a
comparison has a column with a scale of its own for the others. A bound is of the excess error and
known up to a factor: it is compared as score = a + b * rate.

Constants are also drawn anew by the bootstrap (Efron, 1979), rows with replacement. Unlike the delta
method it needs no straight lines: a constant at the edge of what the data tell has the skewed interval
it deserves. The form stays; only constants are fitted again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from taskmix.errors import InputError, OptionError
from taskmix.laws._complexity import complexity
from taskmix.laws._evaluate import Array, Columns, Program, evaluate_formula
from taskmix.laws._expression import Expression, Sum, free
from taskmix.laws._fit import Observations, fit_constants
from taskmix.laws._law import Errors, Law, law_of
from taskmix.laws._noise import BEND, Noise, check_noise, likeliest_noise, noise_unit, row_weights
from taskmix.laws._normal import add, multiply
from taskmix.laws._parse import free_numbers, parse_formula
from taskmix.laws._pool import Describer
from taskmix.laws._print import as_formula
from taskmix.laws._table import as_columns, check_lengths
from taskmix.numerics import Interval, check_level


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


HUNDREDTHS = 100
PAPER_LAWS = MappingProxyType(
    {
        "eq3": "sqrt(n) * 0.69",
        "eq4": "sqrt(ami / 0.015)",
        "eq5": "sqrt(T * 20)",
        "eq6": "sqrt((log(T) + 0.45) * (ami * n / (ami + 0.6)))",
        "eq7": "sqrt(n_ner)",
        "eq8": "sqrt(n_syn) * 0.69",
        "eq9": "sqrt(2 * ami) / 0.026",
        "eq10": "log(sqrt(T) + log(T)) / 0.039",
        "eq11": "sqrt(log(n_ner / 0.38) * (sqrt(T) + T)) * sqrt(n_syn * ami)",
    }
)
BOUND_RATES = MappingProxyType(
    {
        "baxter_n": "sqrt(log(n) / n)",
        "baxter_T": "sqrt(log(T) / T)",
        "maurer_n": "sqrt(1 / n)",
        "maurer_T": "sqrt(1 / T)",
        "liu_n": "1 / n",
        "liu_T": "1 / T",
        "ciliberto_unrelated": "(T / n)^0.25",
        "ciliberto_related": "(1 / (n * T))^0.25",
    }
)


@dataclass(frozen=True, eq=False)
class Bootstrap:
    """Constants of a law over resampled tables [repeat, constant]."""

    law: Law
    draws: Array

    def constants(self, level: float = 0.95) -> list[Interval]:
        """Percentile intervals of the constants."""
        check_level(level)
        low, high = np.quantile(self.draws, [(1 - level) / 2, (1 + level) / 2], axis=0)
        return [
            Interval(value, float(a), float(b), self.law.rows, level)
            for value, a, b in zip(self.law.expression.constants, low, high, strict=True)
        ]

    def predict(self, table: Any, level: float = 0.95) -> tuple[Array, Array]:
        """The ends of the interval of each row's value, [row] each."""
        check_level(level)
        program = Program(self.law.expression)
        columns = as_columns(table, sorted(self.law.expression.variables))
        values = np.array([program.values(columns, draw) for draw in self.draws])
        low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2], axis=0)
        return np.asarray(low), np.asarray(high)


def bootstrap_law(
    law: Law,
    X: Any,
    y: Any,
    *,
    generator: np.random.Generator,
    repeats: int = 200,
    loss: str = "squares",
    sample_weight: Any = None,
) -> Bootstrap:
    """Fits the law's constants to `repeats` tables of the rows of `X` and `y`, drawn anew.

    `loss` and `sample_weight` are those the law was fitted with (`LawRegressor.loss_`).

    >>> X, y = {"n": [1, 2, 3, 4]}, [2.1, 3.9, 6.2, 7.9]
    >>> law = fit_formula("n", X, y)
    >>> drawn = bootstrap_law(law, X, y, generator=np.random.default_rng(0), repeats=50)
    >>> drawn.draws.shape, drawn.constants()[0].excludes(2.5)
    ((50, 1), True)
    """
    if repeats < 20:
        raise OptionError(f"`repeats` should be at least 20. Found {repeats}.")
    if loss not in ("squares", "huber"):
        raise OptionError(f"`loss` should be squares or huber. Found {loss!r}.")
    columns = as_columns(X)
    target = as_columns({law.target: y})[law.target]
    guess = Program(law.expression).values(columns)
    sample = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    weight = row_weights(columns, target, law.noise, guess, sample)
    # Where the loss of the fit bent: Huber's scale is the deviation of such a law.
    bound = BEND * law.deviation * noise_unit(law.noise, target) if loss == "huber" else np.inf
    data = Observations(columns, target, weight, bound)
    draws = []
    for _ in range(repeats):
        rows = data.rows(generator.integers(len(data), size=len(data)))
        draws.append(fit_constants(law.expression, rows).expression.constants)
    return Bootstrap(law, np.array(draws, dtype=np.float64))


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

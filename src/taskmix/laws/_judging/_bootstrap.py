"""Constants and predictions over tables drawn anew: the bootstrap (Efron, 1979), rows with replacement.

Unlike the delta method it needs no straight lines: a constant at the edge of what the data tell has
the skewed interval it deserves. The form stays; only constants are fitted again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from taskmix.errors import OptionError
from taskmix.laws._fitting import (
    BEND,
    Observations,
    as_columns,
    fit_constants,
    noise_unit,
    row_weights,
)
from taskmix.laws._forms import Array, Program
from taskmix.laws._judging._law import Law
from taskmix.numerics import Interval, check_level


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

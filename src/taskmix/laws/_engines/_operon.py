"""Operon's genetic search as an engine: formulas with constants fitted by Levenberg and Marquardt.

Burlacu, Kronberger and Kommenda, "Operon C++", GECCO 2020 companion; the package `pyoperon`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from taskmix.errors import OptionError, RunError
from taskmix.extras import load
from taskmix.laws._engines._translate import fits_of
from taskmix.laws._fitting import Fit, Observations, row_weights
from taskmix.laws._forms import Array, Columns


@dataclass(frozen=True, kw_only=True)
class OperonEngine:
    """Options of `pyoperon.sklearn.SymbolicRegressor` that matter here.

    >>> LawRegressor(OperonEngine(evaluations=10_000)).engine.max_length
    30
    >>> OperonEngine(max_length=2)
    Traceback (most recent call last):
    taskmix.errors.OptionError: `evaluations` should be at least 1000 and `max_length` 3. Found...
    """

    symbols: str = "add,sub,mul,div,sqrt,log,exp,constant,variable"
    evaluations: int = 1_000_000
    max_length: int = 30
    local_iterations: int = 5
    polish: bool = True  # fit the constants of what it found again, with our weights

    def __post_init__(self) -> None:
        if self.evaluations < 1000 or self.max_length < 3:
            raise OptionError(
                "`evaluations` should be at least 1000 and `max_length` 3. Found "
                f"{self.evaluations} and {self.max_length}."
            )

    def find(self, columns: Columns, target: Array, *, seed: int) -> list[Fit]:
        """The formulas of its front."""
        operon = load("pyoperon.sklearn", purpose="The engine `operon`")
        names = list(columns)
        model = operon.SymbolicRegressor(
            allowed_symbols=self.symbols,
            optimizer_iterations=self.local_iterations,
            max_length=self.max_length,
            max_evaluations=self.evaluations,
            generations=10_000_000,
            objectives=["r2", "length"],
            n_threads=1,
            random_state=seed,
        )
        inputs = np.column_stack([columns[name] for name in names])
        model.fit(inputs, target)
        texts = [model.get_model_string(found["tree"], 17, names) for found in model.pareto_front_]
        data = Observations(columns, target, row_weights(columns, target, "auto"))
        fits = fits_of(texts, data)
        if not fits:
            raise RunError("Operon should have found a formula that can be evaluated. Found none.")
        return fits

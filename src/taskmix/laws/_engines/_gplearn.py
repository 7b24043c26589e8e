"""gplearn's genetic programming as an engine, with the settings of the paper.

    Bettgenhäuser, Hedderich and Klakow, "Learning Functions to Study the Benefit of Multitask
    Learning", 2020, section 4: operators + - * / log sqrt exp neg, at least 20 generations,
    crossover 0.7, subtree, hoist and point mutation 0.1 each, parsimony 0.2, and the target
    multiplied by 100, without which it returned constants.

The exponential was not in gplearn and is added here as there. gplearn does not fit constants, so what
it found is kept number for number (`polish` False), only divided by the factor again.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from taskmix.errors import OptionError, RunError
from taskmix.extras import load
from taskmix.laws._engines._translate import fits_of
from taskmix.laws._fitting import Fit, Observations, row_weights
from taskmix.laws._forms import Array, Columns


@dataclass(frozen=True, kw_only=True)
class GplearnEngine:
    """The paper's settings; population and range of constants are gplearn's defaults.

    >>> LawRegressor(GplearnEngine(generations=50)).engine.population
    1000
    >>> GplearnEngine(generations=0)
    Traceback (most recent call last):
    taskmix.errors.OptionError: `generations` should be at least 1, `population` 20 and `scale` above...
    """

    generations: int = 20
    population: int = 1000
    parsimony: float = 0.2
    scale: float = 100.0  # the target is multiplied by this
    constants: tuple[float, float] = (-1.0, 1.0)
    polish: bool = False

    def __post_init__(self) -> None:
        if self.generations < 1 or self.population < 20 or self.scale <= 0:
            raise OptionError(
                "`generations` should be at least 1, `population` 20 and `scale` above 0. Found "
                f"{self.generations}, {self.population} and {self.scale}."
            )

    def regressor(self, names: list[str], seed: int, **further: Any) -> Any:
        """gplearn's own regressor with these settings."""
        functions, genetic = (
            load(module, purpose="The engine `gplearn`")
            for module in ("gplearn.functions", "gplearn.genetic")
        )
        exponential = functions.make_function(
            function=_bounded_exponential, name="exp", arity=1, wrap=False
        )
        return genetic.SymbolicRegressor(
            population_size=self.population,
            generations=self.generations,
            function_set=("add", "sub", "mul", "div", "log", "sqrt", "neg", exponential),
            p_crossover=0.7,
            p_subtree_mutation=0.1,
            p_hoist_mutation=0.1,
            p_point_mutation=0.1,
            parsimony_coefficient=self.parsimony,
            const_range=self.constants,
            metric="mse",
            feature_names=names,
            random_state=seed,
            **further,
        )

    def find(self, columns: Columns, target: Array, *, seed: int) -> list[Fit]:
        """The best formula of every length in the last generation."""
        names = list(columns)
        model = self.regressor(names, seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(np.column_stack([columns[name] for name in names]), target * self.scale)
        best: dict[int, Any] = {}
        for program in model._programs[-1]:
            if program is None or not np.isfinite(program.raw_fitness_):
                continue
            if (
                program.length_ not in best
                or program.raw_fitness_ < best[program.length_].raw_fitness_
            ):
                best[program.length_] = program
        texts = [f"div({program}, {self.scale!r})" for program in best.values()]
        data = Observations(columns, target, row_weights(columns, target, "auto"))
        fits = fits_of(texts, data)
        if not fits:
            raise RunError("gplearn should have found a formula that can be evaluated. Found none.")
        return fits


def _bounded_exponential(values: Array) -> Array:
    return np.exp(np.clip(values, -100, 100))

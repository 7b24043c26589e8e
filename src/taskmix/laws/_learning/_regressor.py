"""`LawRegressor`: laws in scikit-learn's manners."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, get_args

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from taskmix.errors import OptionError
from taskmix.laws._engines import GplearnEngine, OperonEngine
from taskmix.laws._fitting import (
    Fit,
    LackOfFit,
    Noise,
    Observations,
    as_columns,
    check_noise,
    check_rows,
    huber_bound,
    lack_of_fit,
    likeliest_noise,
    noise_unit,
    row_weights,
)
from taskmix.laws._forms import Array, Columns, Program
from taskmix.laws._judging import Box, Demands, Front, Holding, Law, Stack, make_front
from taskmix.laws._learning._rows import divided_rows, row_notes, sample_weights
from taskmix.laws._searching import Describer, Loss, SearchOptions, search_laws


class FormulaEngine(Protocol):
    """Another program that finds formulas."""

    polish: bool  # whether its constants may be fitted again

    def find(self, columns: Columns, target: Array, *, seed: int) -> list[Fit]:
        """Formulas with their constants."""
        ...


ENGINES: dict[str, Any] = {
    "search": SearchOptions,
    "operon": OperonEngine,
    "gplearn": GplearnEngine,
}


def engine_name(engine: Any) -> str:
    """The word for an engine, which is given by it or by options."""
    if isinstance(engine, str):
        return engine
    return next((word for word, kind in ENGINES.items() if isinstance(engine, kind)), "other")


class LawRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Finds a formula for `y` in the columns of `X`, and the front of all that were worth having.

    `engine` is `search` (our own: exhaustive, no seed), `operon` or `gplearn`, or the options of one.
    `noise` says what deviations are in proportion to: nothing (`absolute`), the value (`relative`), its
    root (`root`) or a power of an input (`n^-0.5`); `auto` asks the data. `loss` is `squares`, or
    `huber`, under which rows that lie far off count less; `auto` takes the second where deviations have
    much heavier tails than normal noise. A share `test_size` of the rows is held out; besides, the rows
    with the largest values of `range_input` (the first input if None) are left out in turn, since error
    outside the data is what tells a law from a fit. With `folds` the front has cross-validated errors
    too. A search ends early at a law whose held-out R² is `enough`.

    A law that has a pole, is not defined or has the wrong sign in the `box` (ranges of inputs; those of
    the data where none are given) is not chosen; without a box the same is looked at past the data, to
    ten times their range. Nor is one that falls with an input of `increasing`, rises with one of
    `decreasing`, or, where the law is to be `bounded`, has no finite limit as an input grows.

    After `fit`: `front_`, `law_` (the chosen one), `stack_` (it and laws that cannot be told from it,
    weighted; alone where there are none), `loss_` (the one used), `lack_of_fit_` (from rows with equal
    inputs, or None), `notes_`.

    >>> n = np.arange(1.0, 21.0)
    >>> model = LawRegressor(enough=0.99).fit({"n": n}, 3 * np.sqrt(n))
    >>> model.law_, model.predict({"n": [100]})
    (Law('y = 3*sqrt(n)'), array([30.]))
    """

    def __init__(
        self,
        engine: Any = "search",
        *,
        noise: Noise = "auto",
        loss: Loss = "auto",
        test_size: float = 0.1,
        range_input: str | None = None,
        folds: int = 0,
        enough: float | None = None,
        box: Mapping[str, tuple[float, float]] | None = None,
        increasing: Sequence[str] = (),
        decreasing: Sequence[str] = (),
        bounded: bool = False,
        seed: int = 0,
    ) -> None:
        self.engine = engine
        self.noise = noise
        self.loss = loss
        self.test_size = test_size
        self.range_input = range_input
        self.folds = folds
        self.enough = enough
        self.box = box
        self.increasing = increasing
        self.decreasing = decreasing
        self.bounded = bounded
        self.seed = seed

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        name: str | None = None,
        points: Iterable[Mapping[str, float]] = (),
        sample_weight: Any = None,
    ) -> LawRegressor:
        """Finds the laws of a table `X` (mapping, pandas, Arrow, array) and a column `y`.

        The target is called by `name`, or as pandas calls the column, or y. At `points` the law will be
        asked, so it has to hold between them and the data. A row of `sample_weight` 4 counts as the
        mean of four measurements: the variance of its noise is a quarter.
        """
        columns = as_columns(X)
        target_name = str(name or getattr(y, "name", None) or "y")
        target = as_columns({target_name: y})[target_name]
        self._check(columns)
        sample = sample_weights(sample_weight, len(target))
        self.notes_ = check_rows(columns, target, target_name)
        holding = self._holding(columns, list(points))
        train, held_out = divided_rows(columns, self.test_size, self.seed)
        fits, polish, noise = self._find(columns, target, sample, train, held_out)
        guess = Program(fits[0].expression).values(columns)
        weight = row_weights(columns, target, noise, guess, sample)
        bound = self._bound(weight * (guess - target))
        self.loss_ = "huber" if bound < np.inf else "squares"
        data = Observations(columns, target, weight, bound, noise_unit(noise, target))
        fits = (
            [
                Fit(
                    fit.expression,
                    data.rows(train).mean_square(
                        Program(fit.expression).values(
                            {name: column[train] for name, column in columns.items()}
                        )
                    ),
                )
                for fit in fits
            ]
            if bound < np.inf
            else fits
        )
        describer = Describer.of(data)
        for_train = Describer.of(data.rows(train))
        fits.sort(key=lambda fit: for_train.length(fit.expression, fit.mean_square))
        self.front_: Front = make_front(
            fits,
            data,
            train=train,
            held_out=held_out,
            describer=describer,
            target=target_name,
            noise=noise,
            range_input=self.range_input or next(iter(columns)),
            folds=self.folds,
            polish=polish,
            holding=holding,
        )
        if self.front_.warning:
            self.notes_.append(self.front_.warning)
        self.law_: Law = self.front_.chosen
        self._look_at_rows(data)
        self.stack_: Stack = self.front_.stack or Stack((self.law_,), (1.0,))
        self.feature_names_in_ = np.array(list(columns), dtype=object)
        self.n_features_in_ = len(columns)
        return self

    def _bound(self, deviations: Array) -> float:
        """Where the loss bends; infinite for squares."""
        if self.loss == "squares":
            return float("inf")
        return huber_bound(deviations, always=self.loss == "huber")

    def _look_at_rows(self, data: Observations) -> None:
        """Notes on rows that lie far off, and on what rows with equal inputs say of the law."""
        expression = self.law_.expression
        values = Program(expression).values(data.columns)
        self.lack_of_fit_: LackOfFit | None = lack_of_fit(
            data.columns,
            data.target,
            values,
            data.weight,
            len(expression.constants),
            unit=data.unit or 1.0,
        )
        self.notes_ += row_notes(data, values, self.lack_of_fit_)

    def predict(self, X: Any) -> Array:
        """The chosen law's values [row]."""
        check_is_fitted(self, "law_")
        return self.law_.predict(X).values

    def _holding(self, columns: Columns, points: list[Mapping[str, float]]) -> Holding:
        """Where laws have to hold: in the box and at the points, or past the data without a box."""
        asked = Box.asked(columns, self.box or {}, points) if self.box or points else None
        demands = Demands(
            increasing=self.increasing, decreasing=self.decreasing, bounded=self.bounded
        )
        demands.check(list(columns))
        unasked = None if self.box else Box.around(columns)
        return Holding(asked=asked, unasked=unasked, demands=demands)

    def _check(self, columns: Columns) -> None:
        if isinstance(self.engine, str) and self.engine not in ENGINES:
            raise OptionError(
                f"`engine` should be one of {', '.join(ENGINES)}. Found {self.engine!r}."
            )
        if not 0 < self.test_size < 1:
            raise OptionError(f"`test_size` should lie between 0 and 1. Found {self.test_size}.")
        if self.folds < 0 or self.folds == 1:
            raise OptionError(f"`folds` should be 0 or at least 2. Found {self.folds}.")
        check_noise(self.noise, columns)
        if self.loss not in get_args(Loss):
            raise OptionError(f"`loss` should be auto, squares or huber. Found {self.loss!r}.")
        if self.range_input is not None and self.range_input not in columns:
            raise OptionError(
                f"`range_input` should be an input: {', '.join(columns)}. Found "
                f"{self.range_input!r}."
            )

    def _find(
        self,
        columns: Columns,
        target: Array,
        sample: Array | None,
        train: NDArray[np.int64],
        held_out: NDArray[np.int64],
    ) -> tuple[list[Fit], bool, Noise]:
        """The engine's formulas, whether constants may be refitted, and the kind of noise."""
        engine = ENGINES[self.engine]() if isinstance(self.engine, str) else self.engine
        seen, aside = (
            {name: column[places] for name, column in columns.items()}
            for places in (train, held_out)
        )
        spread = float(np.var(target[held_out])) or 1.0

        def is_enough(fit: Fit) -> bool:
            values = Program(fit.expression).values(aside)
            share = 1 - float(np.mean((values - target[held_out]) ** 2)) / spread
            return self.enough is not None and share >= self.enough

        if isinstance(engine, SearchOptions):
            fits, _, noise = search_laws(
                seen,
                target[train],
                noise=self.noise,
                loss=self.loss,
                sample=None if sample is None else sample[train],
                options=engine,
                is_enough=is_enough if self.enough is not None else None,
            )
            return fits, True, noise
        fits = engine.find(seen, target[train], seed=self.seed)
        guess = Program(fits[0].expression).values(columns)
        noise = self.noise
        if noise == "auto":
            noise = likeliest_noise(columns, target, guess, sample)
        return fits, bool(engine.polish), noise

"""`LawRegressor`: laws in scikit-learn's manners."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from taskmix.errors import OptionError
from taskmix.laws._choose import Stack
from taskmix.laws._evaluate import Array, Columns, Program
from taskmix.laws._factors import TARGET, GroupFactors
from taskmix.laws._fit import Fit, Observations
from taskmix.laws._front import Front, make_front
from taskmix.laws._group_levels import level_groups
from taskmix.laws._groups import GroupedLaw
from taskmix.laws._holding import Demands, Holding
from taskmix.laws._law import Law
from taskmix.laws._next_runs import NextLawRuns, next_law_runs
from taskmix.laws._noise import (
    LackOfFit,
    Noise,
    check_noise,
    huber_bound,
    lack_of_fit,
    noise_unit,
    row_weights,
)
from taskmix.laws._pool import Describer
from taskmix.laws._ranges import Box
from taskmix.laws._search import Loss, SearchOptions, search_laws
from taskmix.laws._table import as_columns, check_rows
from taskmix.laws._targets import (
    divided_rows,
    forms_of_all,
    is_vector,
    long_table,
    row_notes,
    rows_to_search,
    sample_weights,
)

SMOOTH_NOTE = (
    "Deviations from the law go together: rows near each other are off alike, so no form found here "
    "is quite the true one. Rows did not count one by one, and a plain law was preferred to a long "
    "one that follows every bend."
)
FORMS_OF_A_GROUP = 4  # that are judged on all rows, where groups were searched alone


class LawRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Finds a formula for `y` in the columns of `X`, and the front of all that were worth having.

    `engine` is `search`, which is exhaustive and needs no seed, or its options.
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
        engine: SearchOptions | Literal["search"] = "search",
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

    # Numbers of extreme size overflow on the way to a law; what is not finite is then not taken.
    @np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore")
    def fit(
        self,
        X: Any,
        y: Any,
        *,
        name: str | None = None,
        points: Iterable[Mapping[str, float]] = (),
        groups: Any = None,
        sample_weight: Any = None,
    ) -> LawRegressor:
        """Finds the laws of a table `X` (mapping, pandas, Arrow, array) and a column `y`.

        The target is called by `name`, or as pandas calls the column, or y. At `points` the law will be
        asked, so it has to hold between them and the data. A row of `sample_weight` 4 counts as the
        mean of four measurements: the variance of its noise is a quarter.

        `groups` names the group of each row (or, a mapping, several columns of names). The form is then
        searched on rows brought to one level, and each constant is shared or the groups' own by
        evidence: `groups_`. Several columns `y` are taken for groups of one law (`targets_`).
        """
        if is_vector(y):
            return self._fit_targets(X, y, points=points, groups=groups)
        columns = as_columns(X)
        own = name or getattr(y, "name", None)
        target_name = own if isinstance(own, str) and own else "y"
        target = as_columns({target_name: y})[target_name]
        self._check(columns)
        sample = sample_weights(sample_weight, len(target))
        self.notes_ = check_rows(columns, target, target_name)
        holding = self._holding(columns, list(points))
        train, held_out = divided_rows(columns, self.test_size, self.seed)
        factors = GroupFactors.of(groups, len(target)) if groups is not None else None
        also: list[Fit] = []
        if factors is None:
            fits, noise = self._find(columns, target, sample, train, held_out)
            guess = Program(fits[0].expression).values(columns)
        else:
            fits, noise, also, guess = self._find_grouped(
                columns, target, sample, factors, held_out
            )
        weight = row_weights(columns, target, noise, guess, sample)
        bound = self._bound(weight * (guess - target)) if factors is None else float("inf")
        self.loss_ = "huber" if bound < np.inf else "squares"
        data = Observations(columns, target, weight, bound, noise_unit(noise, target))
        if bound < np.inf:
            seen = data.rows(train)
            fits = [
                Fit(each, seen.mean_square(Program(each).values(seen.columns)))
                for each in (fit.expression for fit in fits)
            ]
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
            holding=holding,
            factors=factors,
            also=also,
        )
        if self.front_.warning:
            self.notes_.append(self.front_.warning)
        if self.front_.is_smooth:
            self.notes_.append(SMOOTH_NOTE)
        self.law_: Law = self.front_.chosen
        self.groups_: GroupedLaw | None = self.front_.groups
        self.targets_: tuple[str, ...] = ()
        if self.law_.untested:
            self.notes_.append(_untested_note(self.law_.untested))
        self._look_at_rows(data, is_grouped=factors is not None)
        self.stack_: Stack = self.front_.stack or Stack((self.law_,), (1.0,))
        self._ends = {name: np.array([c.min(), c.max()]) for name, c in columns.items()}
        self._whole = tuple(name for name, c in columns.items() if np.array_equal(c, np.round(c)))
        self.feature_names_in_ = np.array(list(columns), dtype=object)
        self.n_features_in_ = len(columns)
        return self

    def _bound(self, deviations: Array) -> float:
        """Where the loss bends; infinite for squares."""
        if self.loss == "squares":
            return float("inf")
        return huber_bound(deviations, always=self.loss == "huber")

    def _look_at_rows(self, data: Observations, *, is_grouped: bool) -> None:
        """Notes on rows that lie far off, and on what rows with equal inputs say of the law."""
        self.lack_of_fit_: LackOfFit | None = None
        if is_grouped:  # whose rows differ from the mean law by their groups
            return
        expression = self.law_.expression
        values = Program(expression).values(data.columns)
        self.lack_of_fit_ = lack_of_fit(
            data.columns,
            data.target,
            values,
            data.weight,
            len(expression.constants),
            unit=data.unit or 1.0,
        )
        self.notes_ += row_notes(data, values, self.lack_of_fit_)

    def predict(self, X: Any, groups: Any = None) -> Array:
        """The chosen law's values [row], of the mean group where `groups` are not named.

        Where several columns were explained, [row, column].
        """
        check_is_fitted(self, "law_")
        if self.groups_ is None or (groups is None and not self.targets_):
            return self.law_.predict(X).values
        if not self.targets_:
            return self.groups_.predict(X, groups)
        columns = as_columns(X, list(self.feature_names_in_))
        rows = max(map(len, columns.values()))
        kept = self.groups_.fit.factors.columns
        unnamed = {name: [""] * rows for name in kept if name != TARGET}
        named = groups if isinstance(groups, Mapping) else dict.fromkeys(unnamed, groups)
        labels = unnamed if groups is None else {name: list(named[name]) for name in unnamed}
        found = [
            self.groups_.predict(columns, {TARGET: [target] * rows, **labels})
            for target in self.targets_
        ]
        return np.stack(found, axis=1)

    def _fit_targets(
        self, X: Any, Y: Any, *, points: Iterable[Mapping[str, float]], groups: Any
    ) -> LawRegressor:
        """Several columns as groups of one long table."""
        table = long_table(X, Y, groups)
        self.fit(table.columns, table.target, name=TARGET, points=points, groups=table.groups)
        self.targets_ = table.names
        if self.groups_ is not None:
            self.groups_ = self.groups_.in_units(table.units)
            self.front_ = replace(self.front_, groups=self.groups_)
        return self

    def next_runs(
        self,
        at: Mapping[str, float] | None = None,
        box: Mapping[str, tuple[float, float]] | None = None,
    ) -> NextLawRuns | None:
        """Runs that would distinguish the tied laws, or make the one law surer `at` a point.

        They lie in the `box`, or in that of the model, or in the range of the data.
        """
        check_is_fitted(self, "law_")
        inside = Box.asked(self._ends, {**(self.box or {}), **(box or {})}, [at] if at else [])
        return next_law_runs(self.stack_.laws, inside, at=at, whole=self._whole)

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
        if self.engine != "search" and not isinstance(self.engine, SearchOptions):
            raise OptionError(
                f"`engine` should be `search`, or `SearchOptions`. Found {self.engine!r}."
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
    ) -> tuple[list[Fit], Noise]:
        """The formulas of the search, and the kind of noise."""
        seen, aside = (
            {name: column[places] for name, column in columns.items()}
            for places in (train, held_out)
        )
        spread = float(np.var(target[held_out])) or 1.0

        def is_enough(fit: Fit) -> bool:
            values = Program(fit.expression).values(aside)
            share = 1 - float(np.mean((values - target[held_out]) ** 2)) / spread
            return self.enough is not None and share >= self.enough

        return search_laws(
            seen,
            target[train],
            noise=self.noise,
            loss=self.loss,
            sample=None if sample is None else sample[train],
            options=self.engine if isinstance(self.engine, SearchOptions) else SearchOptions(),
            is_enough=is_enough if self.enough is not None else None,
        )

    def _find_grouped(
        self,
        columns: Columns,
        target: Array,
        sample: Array | None,
        factors: GroupFactors,
        held_out: NDArray[np.int64],
    ) -> tuple[list[Fit], Noise, list[Fit], Array]:
        """The same over groups, besides forms of other rows or with every input, and rough values."""
        flat = level_groups(columns, target, factors.cell)
        noises, found, also = [], [], [Fit(form, np.inf) for form in forms_of_all(columns)]
        for rows in rows_to_search(columns, target, factors, flat):
            inside = {name: column[rows.places] for name, column in columns.items()}
            aside = np.flatnonzero(np.isin(rows.places, held_out))
            train = np.setdiff1d(np.arange(len(rows.places)), aside)
            aside = aside if len(aside) > 1 else train[-2:]
            counts = None if sample is None else sample[rows.places]
            fits, noise = self._find(inside, rows.target, counts, train, aside)
            noises.append(noise)
            found.append(fits)
        also += [fit for fits in found[1:] for fit in fits[:FORMS_OF_A_GROUP]]
        noise = "absolute" if noises[0] == "absolute" else "relative"
        return found[0], noise, also, flat.values


def _untested_note(names: Sequence[str]) -> str:
    """On inputs with too few values for a range of them to be left out."""
    named = " and ".join(f"`{name}`" for name in names)
    return (
        f"Too few values of {named} for some to be left out, so nothing here says how the law holds "
        "beyond them; intervals there are wide by rule."
    )

"""The formulas that a search has fitted so far, each with its description length."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from taskmix.laws._complexity import (
    LEAVES_POSITIVE,
    description_length,
    has_rounded_exponent,
    leaves_positive,
)
from taskmix.laws._evaluate import Program
from taskmix.laws._expression import Expression, Number
from taskmix.laws._field import plainest_field_forms
from taskmix.laws._field_form import is_field_form
from taskmix.laws._fit import Fit, Observations, fit_constants, start_cost
from taskmix.laws._normal import open_key
from taskmix.laws._simplify import simplify, unrounded

LEAST_FLOOR = 0.02  # of a typical value, for a floor to count as one
EXTENDED_WITHIN = 25.0  # nats of the best; a formula further behind is not extended
STARTS_PER_FAMILY = 25  # forms fitted of each family of first guesses
FIELD_FORMS = 12  # first guesses of forms of the field that are fitted in any case
FIELD_FORMS_SIMPLIFIED = 4
UNROUNDED = 20  # formulas whose rounded exponents in sums are measured again


@dataclass(frozen=True)
class Describer:
    """Description lengths over a table: what is typical of it and what its target allows."""

    rows: int
    floor: float  # a mean square below which a fit is exact but for rounding
    at: Mapping[str, float]  # typical values of the columns
    unbounded: frozenset[str]  # columns that are no shares between 0 and 1
    positive: bool  # whether the target is
    choosing: bool = True  # with the prices that only a choice should see

    @classmethod
    def of(cls, data: Observations) -> Describer:
        columns = data.columns
        return cls(
            rows=len(data),
            floor=data.floor,
            at={name: float(np.median(column)) for name, column in columns.items()},
            unbounded=frozenset(name for name, column in columns.items() if np.max(column) > 1),
            positive=bool(np.all(data.target >= 0)),
        )

    def length(self, expression: Expression, mean_square: float) -> float:
        """Nats for formula and rows."""
        floored = max(mean_square, self.floor)
        choosing = self.choosing and not self._has_idle_floor(expression)
        total = description_length(
            expression, mean_square=floored, rows=self.rows, choosing=choosing
        )
        if self.positive and leaves_positive(expression, self.at, self.unbounded):
            total += LEAVES_POSITIVE
        return total

    def _has_idle_floor(self, expression: Expression) -> bool:
        """Whether a floor is next to nothing, and makes no published form of what is none."""
        floors = [t for t in getattr(expression, "terms", ()) if isinstance(t, Number)]
        if not floors:
            return False
        columns = {name: np.array([value]) for name, value in self.at.items()}
        return abs(floors[0].value) < LEAST_FLOOR * abs(
            float(Program(expression).values(columns)[0])
        )


@dataclass
class Pool:
    """Formulas by their forms, each with its best fit and description length."""

    data: Observations
    describer: Describer
    fits: dict[str, tuple[float, Fit]] = field(default_factory=dict)
    ends: dict[str, str] = field(default_factory=dict)  # where simplifying a form leads
    extended: set[str] = field(default_factory=set)

    def put(self, fit: Fit) -> None:
        if not np.isfinite(fit.mean_square):
            return
        length = self.describer.length(fit.expression, fit.mean_square)
        key = fit.expression.key
        if key not in self.fits or length < self.fits[key][0]:
            self.fits[key] = (length, fit)

    def fit(self, expressions: Iterable[Expression]) -> None:
        for expression in expressions:
            if expression.key not in self.fits and len(expression.key) < 400:
                self.put(fit_constants(expression, self.data, rival=self.rival))

    def fit_best_starts(self, expressions: Iterable[Expression]) -> None:
        """Fits each form from where its constants begin best, the most promising forms."""
        best: dict[str, tuple[float, Expression]] = {}
        for expression in expressions:
            cost = start_cost(expression, self.data)
            if cost < best.get(expression.key, (np.inf, expression))[0]:
                best[expression.key] = (cost, expression)
        lengths = [(self.describer.length(each, cost), each) for cost, each in best.values()]
        ranked = sorted(lengths, key=lambda entry: entry[0])
        self.fit(expression for _, expression in ranked[:STARTS_PER_FAMILY])

    def ranked(self) -> list[tuple[float, Fit]]:
        return sorted(self.fits.values(), key=lambda entry: entry[0])

    def simplify(self, fit: Fit) -> Fit:
        """The shortest description that simplifying leads to."""
        key = fit.expression.key
        if key not in self.ends:
            end = key
            for shorter in simplify(fit, self.data, self.describer.length):
                self.put(shorter)
                end = shorter.expression.key
                if end in self.ends:  # from here the way is known
                    end = self.ends[end]
                    break
            self.ends[key] = self.ends[end] = end
        return self.fits[self.ends[key]][1]

    def simplify_best(self, count: int) -> None:
        for _, fit in self.ranked()[:count]:
            self.simplify(fit)

    def fit_field_forms(self, found: Iterable[Fit]) -> None:
        """Fits and simplifies the best forms of the field, at the prices they are chosen by."""
        forms: dict[str, Expression] = {}
        for fit in found:
            if is_field_form(fit.expression):
                forms.setdefault(open_key(fit.expression), fit.expression)
        self.fit([*list(forms.values())[:FIELD_FORMS], *plainest_field_forms(self.data)])
        for fit in self._field_forms()[:FIELD_FORMS_SIMPLIFIED]:
            for shorter in simplify(fit, self.data, self._chooser.length):
                self.put(shorter)

    def measure_exponents(self) -> None:
        """Takes out what has a rounded exponent in a sum, and fits the best with it free."""
        length = self._chooser.length
        rounded = [fit for _, fit in self.fits.values() if has_rounded_exponent(fit.expression)]
        rounded.sort(key=lambda fit: length(fit.expression, fit.mean_square))
        for fit in rounded:
            del self.fits[fit.expression.key]
        self.fit([unrounded(fit.expression) for fit in rounded[:UNROUNDED]])

    @property
    def _chooser(self) -> Describer:
        return replace(self.describer, choosing=True)

    def _field_forms(self) -> list[Fit]:
        """Those at hand, best first."""
        own = [fit for _, fit in self.fits.values() if is_field_form(fit.expression)]
        length = self._chooser.length
        return sorted(own, key=lambda fit: length(fit.expression, fit.mean_square))

    def unextended(self, count: int) -> Iterator[Fit]:
        """The best formulas that cannot be simplified and have not been given before."""
        ranked = self.ranked()
        for length, fit in ranked:
            key = fit.expression.key
            if count == 0 or length > ranked[0][0] + EXTENDED_WITHIN:
                return
            if key not in self.extended:
                self.extended.add(key)
                if self.simplify(fit).expression.key == key:
                    count -= 1
                    yield fit

    def is_enough(self, asked: Callable[[Fit], bool] | None) -> bool:
        return asked is not None and asked(self.ranked()[0][1])

    @property
    def rival(self) -> float:
        """The least mean square so far."""
        return min((fit.mean_square for _, fit in self.fits.values()), default=0.0)

    @property
    def best(self) -> float:
        return min(length for length, _ in self.fits.values())

"""A law: a formula with fitted constants, how sure they are, and what it predicts.

Intervals are by the delta method: to first order a prediction moves with the constants along the
Jacobian, so their covariance gives its variance. That of the constants is

    White, "A Heteroskedasticity-Consistent Covariance Matrix Estimator", Econometrica 48, 1980.

whose sandwich holds for deviations of unequal size too. Where it cannot be computed it is infinite: of
such constants nothing is known, and zeros would say that everything is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from taskmix.errors import InputError, OptionError
from taskmix.laws._complexity import complexity
from taskmix.laws._discrepancy import UNTESTED_RATE, correlation_beyond, distance_beyond
from taskmix.laws._evaluate import Array, Columns, Program
from taskmix.laws._expression import Expression
from taskmix.laws._fit import Fit, Observations
from taskmix.laws._growth import Growth, growth
from taskmix.laws._noise import BEND, Noise, noise_sizes
from taskmix.laws._print import as_formula, as_latex, as_python, as_sympy
from taskmix.laws._same_form import is_same_form
from taskmix.laws._table import as_columns
from taskmix.numerics import Interval, student_quantile


def outside_rows(columns: Columns, ranges: Mapping[str, tuple[float, float]]) -> NDArray[np.bool_]:
    """[row], whether an input that has a range lies outside it."""
    result = np.zeros(max(map(len, columns.values())), dtype=np.bool_)
    for name, (low, high) in ranges.items():
        result |= (columns[name] < low) | (columns[name] > high)
    return result


def beyond_ranges_words(columns: Columns, ranges: Mapping[str, tuple[float, float]]) -> str:
    """The first value of each input outside its range; empty where there is none."""
    words = []
    for name, column in columns.items():
        if name not in ranges:
            continue
        low, high = ranges[name]
        beyond = column[(column < low) | (column > high)]
        if len(beyond):
            words.append(f"{name} = {beyond[0]:g} (data {low:g} to {high:g})")
    return f"Outside the range of the data: {', '.join(words)}." if words else ""


def sandwich(
    weighted: Array,  # [row, constant], the Jacobian times the weights
    residual: Array,  # [row], weighted
    bound: float,  # where Huber's loss bends
) -> Array:
    """[constant, constant]; infinite where derivatives overflow, since then nothing is known."""
    rows, count = weighted.shape
    with np.errstate(over="ignore"):
        scale = np.linalg.norm(weighted, axis=0)
    scale[scale == 0] = 1.0
    if not (np.isfinite(weighted).all() and np.isfinite(scale).all()):
        return np.full((count, count), np.inf)
    even = weighted / scale
    # Under Huber's loss rows beyond the bound add no curvature, and pull no harder than the bound.
    inside = np.abs(residual) <= bound
    pulls = np.clip(residual, -bound, bound)
    inverse = np.linalg.pinv((even * inside[:, None]).T @ even, rcond=1e-12)
    meat = even.T @ (even * pulls[:, None] ** 2)
    with np.errstate(over="ignore", invalid="ignore"):
        found = inverse @ meat @ inverse / np.outer(scale, scale) * rows / max(rows - count, 1)
    return found if np.isfinite(found).all() else np.full((count, count), np.inf)


# By which a tied form's description is longer where it counts 1/e of the chosen one: with 3, 90 %
# intervals outside the data held 97 % of points of known laws; with 1, fewer of those of real tables.
RIVAL_NATS = 1.5


@dataclass(frozen=True)
class Errors:
    """How far predictions are off: mean squares in the target's unit, and shares of variance.

    `held_out` is on rows kept aside, `left_out` on the rows with the largest values of one input,
    with constants fitted to the others, `ranges` over all ranges that were left out in turn; `cross` is
    over folds where they were asked for.
    """

    train: float = float("nan")
    held_out: float = float("nan")
    held_out_r2: float = float("nan")
    left_out: float = float("nan")
    left_out_relative: float = float("nan")  # root mean square of relative deviations
    cross: float = float("nan")
    ranges: float = float("nan")  # the geometric mean over all left-out ranges


@dataclass(frozen=True, eq=False)
class LawPrediction:
    """What a law says of rows, with the interval of the law itself or of one more measurement."""

    values: Array  # [row]
    low: Array
    high: Array
    outside: NDArray[np.bool_]  # [row], whether an input lies outside the data
    warning: str = ""


@dataclass(frozen=True)
class Gain:
    """The change a step from one point to another is expected to bring."""

    before: float
    after: float
    interval: Interval  # of the difference
    warning: str = ""


@dataclass(frozen=True, eq=False)
class Law:
    """A formula with fitted constants.

    >>> law = fit_formula("sqrt(n)", {"n": [1, 4, 9, 16]}, [2.0, 4.0, 6.0, 8.0])
    >>> law.predict({"n": [25, 100]}).values
    array([10., 20.])
    >>> law.gain({"n": 25}, n=100).warning
    'Outside the range of the data: n = 25 (data 1 to 16).'
    >>> law.growth()["n"].describe("n"), law.latex
    ('n^0.5', '2 \\\\, \\\\sqrt{n}')
    """

    expression: Expression
    target: str
    covariance: Array  # [constant, constant]; infinite where it cannot be computed
    noise: Noise
    deviation: float  # of one measurement: in the target's unit, or as a share of the value
    rows: int
    ranges: Mapping[str, tuple[float, float]]  # of the inputs in the data
    typical: Mapping[str, float]  # the inputs' medians
    length: float  # nats, of the message that tells law and data
    errors: Errors = field(default_factory=Errors)
    disqualified: str = ""  # why it should not be used where it is asked to hold, in a sentence
    # What its form may be off by beyond the data: deviations of a measurement a width of them away.
    discrepancy: float = 0.0
    # Inputs of which no range could be left out, so that nothing says how the form holds beyond them.
    untested: tuple[str, ...] = ()
    # Laws of other forms that may be the true one, and the nats by which their descriptions are longer.
    rivals: tuple[tuple[float, Law], ...] = ()
    freedom: int | None = None  # of the covariance, where it is not rows beyond the constants

    def __str__(self) -> str:
        return f"{self.target} = {as_formula(self.expression)}"

    def __repr__(self) -> str:
        return f"Law({str(self)!r})"

    @property
    def text(self) -> str:
        return as_formula(self.expression)

    @property
    def inputs(self) -> tuple[str, ...]:
        """The columns that the formula uses."""
        return tuple(name for name in self.ranges if name in self.expression.variables)

    @property
    def complexity(self) -> int:
        return complexity(self.expression)

    @property
    def latex(self) -> str:
        return as_latex(self.expression)

    @property
    def python(self) -> str:
        """The source of a function of NumPy arrays."""
        return as_python(self.expression)

    def sympy(self) -> Any:
        """The formula as a SymPy expression (extra `laws`)."""
        return as_sympy(self.expression)

    def function(self) -> Callable[..., Array]:
        """A function of the inputs by name."""
        program, names = Program(self.expression), sorted(self.expression.variables)

        def law(**inputs: Any) -> Array:
            if sorted(inputs) != names:
                raise InputError(
                    f"The law should be called with {', '.join(names)}. Found {', '.join(inputs)}."
                )
            arrays = np.broadcast_arrays(*(np.asarray(inputs[n], np.float64) for n in names))
            shape = arrays[0].shape if arrays else ()
            columns = {n: a.ravel() for n, a in zip(names, arrays, strict=True)}
            return program.values(columns or {"": np.zeros(1)}).reshape(shape)

        return law

    @property
    def degrees(self) -> int:
        """Rows beyond the constants, or groups beyond one where the spread between groups is in it."""
        return self.freedom or max(self.rows - len(self.expression.constants), 1)

    def constants(self, level: float = 0.95) -> list[Interval]:
        """The free numbers, in the order in which the formula has them, with their intervals."""
        half = student_quantile(level, self.degrees) * np.sqrt(np.diag(self.covariance))
        return [
            Interval(value, value - spread, value + spread, self.rows, level)
            for value, spread in zip(self.expression.constants, half.tolist(), strict=True)
        ]

    def growth(self) -> dict[str, Growth | None]:
        """How the law grows in each of its inputs, the others at their medians; None if unknown."""
        return {name: growth(self.expression, name, self.typical) for name in self.inputs}

    def predict(
        self, table: Any, *, level: float = 0.95, measurement: bool = False
    ) -> LawPrediction:
        """Values with intervals of the law, or of one more `measurement`, which has noise of its own."""
        columns = self._columns(table)
        program = Program(self.expression)
        values, jacobian = program.jacobian(columns, program.start)
        variance = self._variance(columns, values, jacobian)
        if measurement:
            variance = variance + self.measurement_deviation(values, columns) ** 2
        half = student_quantile(level, self.degrees) * np.sqrt(np.maximum(variance, 0.0))
        outside = outside_rows(columns, self._known)
        return LawPrediction(
            values.copy(), values - half, values + half, outside, self._warning(columns)
        )

    def gain(self, before: Mapping[str, float], *, level: float = 0.95, **changes: float) -> Gain:
        """What changing some inputs is expected to bring: `law.gain({"n": 2000, "T": 2}, T=5)`."""
        unknown = sorted(set(changes) - set(self.ranges))
        if unknown:
            raise OptionError(
                f"A change should be of an input: {', '.join(self.ranges)}. Found `{unknown[0]}`."
            )
        start = {name: float(before.get(name, self.typical[name])) for name in self.ranges}
        both = {
            name: np.array([value, float(changes.get(name, value))])
            for name, value in start.items()
        }
        program = Program(self.expression)
        values, jacobian = program.jacobian(both, program.start)
        step = jacobian[1] - jacobian[0]
        away = self._beyond(both, values)
        alike = float(correlation_beyond(both, both, self._known)[0, 1])
        variance = float(away @ away - 2 * alike * away[0] * away[1]) + self._over_forms(
            self.constants_variance(step[None]),
            lambda other: other._step_squares_about(both, values[1] - values[0]),
        )
        spread = float(np.sqrt(max(float(variance[0]), 0.0)))
        half = student_quantile(level, self.degrees) * spread
        mean = float(values[1] - values[0])
        interval = Interval(mean, mean - half, mean + half, self.rows, level)
        return Gain(float(values[0]), float(values[1]), interval, self._warning(both))

    def measurement_deviation(self, values: Array, columns: Columns) -> Array:
        """[row], the standard deviation of a measurement where the law has these values."""
        medians = {name: np.full(len(values), value) for name, value in self.typical.items()}
        return np.asarray(self.deviation * noise_sizes(self.noise, values, {**medians, **columns}))

    def constants_variance(self, jacobian: Array) -> Array:
        """[row], of values that move with the constants like this; infinite where nothing is known."""
        if not np.isfinite(self.covariance).all():
            return np.full(len(jacobian), np.inf)
        return np.asarray(np.einsum("nk,kl,nl->n", jacobian, self.covariance, jacobian))

    def _variance(self, columns: Columns, values: Array, jacobian: Array) -> Array:
        """[row], of constants, of the form and of what all forms may miss beyond the data."""
        own = self.constants_variance(jacobian)
        return np.asarray(
            self._over_forms(own, lambda other: other._squares_about(columns, values))
            + self._beyond(columns, values) ** 2
        )

    def _beyond(self, columns: Columns, values: Array) -> Array:
        """[row], the deviation that the left-out ranges speak for, or that is usual without any."""
        known = self._known
        untested = {name: ends for name, ends in known.items() if name in self.untested}
        if not (self.discrepancy or untested):
            return np.zeros(len(values))
        tested = {name: ends for name, ends in known.items() if name not in untested}
        away = np.hypot(
            self.discrepancy * distance_beyond(columns, tested),
            max(self.discrepancy, UNTESTED_RATE) * distance_beyond(columns, untested),
        )
        return np.asarray(away * self.measurement_deviation(values, columns))

    def _over_forms(self, own: Array, squares: Callable[[Law], Array]) -> Array:
        """The mean over forms of squares about this law's values, those left out that have none."""
        total, whole = own, np.ones_like(own)
        for nats, other in self.rivals:
            weight = np.exp(-max(nats, 0.0) / RIVAL_NATS)
            with np.errstate(all="ignore"):
                found = squares(other)
            known = np.isfinite(found)
            total = total + np.where(known, weight * np.where(known, found, 0.0), 0.0)
            whole = whole + weight * known
        return np.asarray(total / whole)

    def _squares_about(self, columns: Columns, values: Array) -> Array:
        """[row], expected squares of what this law has about other values."""
        program = Program(self.expression)
        own, jacobian = program.jacobian(columns, program.start)
        return np.asarray(self.constants_variance(jacobian) + (own - values) ** 2)

    def _step_squares_about(self, both: Columns, change: float) -> Array:
        """[1], the same of the difference between two rows."""
        program = Program(self.expression)
        own, jacobian = program.jacobian(both, program.start)
        step = jacobian[1] - jacobian[0]
        return np.asarray(self.constants_variance(step[None]) + (own[1] - own[0] - change) ** 2)

    @property
    def _known(self) -> dict[str, tuple[float, float]]:
        return {name: self.ranges[name] for name in self.inputs}

    def same_form(self, formula: str) -> bool:
        """Whether the law is the formula but for the values of constants.

        Both are fitted to the other's values with every number free; one form only if each can
        become the other.
        """
        return is_same_form(self.expression, formula, self.ranges)

    def _columns(self, table: Any) -> dict[str, Array]:
        # A law that is a constant still needs to know how many rows are asked for.
        wanted = sorted(self.expression.variables)
        others = sorted({name for _, law in self.rivals for name in law.inputs} - set(wanted))
        found = as_columns(table, wanted or None, also=others, places=list(self.ranges))
        rows = len(next(iter(found.values())))
        return {**{name: np.full(rows, self.typical[name]) for name in others}, **found}

    def _warning(self, columns: Columns) -> str:
        words = beyond_ranges_words(columns, self._known)
        far = self.errors.left_out_relative
        if words and np.isfinite(far):
            words += f" Beyond a left-out range it was off by {far:.1%} in the mean square."
        return words


def law_of(
    fit: Fit, data: Observations, *, target: str, length: float, noise: Noise, errors: Errors
) -> Law:
    """The law of a fitted formula, with the covariance of its constants."""
    program = Program(fit.expression)
    values, jacobian = program.jacobian(data.columns, program.start)
    residual = data.weight * (values - data.target)
    rows, count = jacobian.shape
    deviation = float(np.sqrt(residual @ residual / max(rows - count, 1)))
    if data.bound < np.inf:
        deviation = data.bound / BEND  # Huber's scale, which rows far off hardly move
    if data.unit is not None:
        deviation /= data.unit
    elif noise == "absolute":
        deviation /= float(data.weight[0])
    return Law(
        expression=fit.expression,
        target=target,
        covariance=sandwich(jacobian * data.weight[:, None], residual, data.bound),
        noise=noise,
        deviation=deviation,
        rows=rows,
        ranges={name: (float(c.min()), float(c.max())) for name, c in data.columns.items()},
        typical={name: float(np.median(c)) for name, c in data.columns.items()},
        length=length,
        errors=errors,
    )

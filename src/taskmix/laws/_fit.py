"""The constants of a formula by weighted least squares: Levenberg and Marquardt's method.

    Marquardt, "An Algorithm for Least-Squares Estimation of Nonlinear Parameters", SIAM J. 11, 1963,
    with the gain-ratio rule for the damping of Nielsen, IMM-REP-1999-05, Eq. 2.21.

Columns of the Jacobian are scaled to length one, so exponents and coefficients of any size are treated
alike, and powers are centred where the data are, as below. A step that leads where the formula is
not defined is refused like one that does harm. Where the rows have a bound, Huber's loss takes the
place of squares (`_noise.py`), each step with rows beyond it weighted down.

Steps do not depend on the unit of a column. In c x^p with x about 10⁹ a change of p by 0.1 has to be
made up by a factor of 8 in c, and a straight step in both goes astray. About the geometric mean g of x
it is c' (x/g)^p with c' = c g^p, and c' hardly depends on p. Steps are taken in c' and p and translated
back, so a fit takes the same steps whether parameters are counted in ones or in billions, and formulas
stay in the unit of the table.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from taskmix.laws._evaluate import Array, Columns, Program
from taskmix.laws._expression import Expression, Number, Power, Product, Sum, split_number
from taskmix.laws._noise import huber_loss, huber_weights

MOST = 690.0  # of an exponent of e, so that its power is a number


@dataclass(frozen=True)
class Centring:
    """Each coefficient with an exponent beside it, and the logarithm of the base in its middle."""

    coefficients: tuple[int, ...]
    exponents: tuple[int, ...]
    middles: tuple[float, ...]

    @classmethod
    def of(cls, program: Program, columns: Columns) -> Centring:
        """The pairs of a formula, the middles with its first constants."""
        pairs = _pairs(program)
        values = program.node_values(columns) if pairs else []
        found = []
        for coefficient, exponent, base in pairs:
            with np.errstate(all="ignore"):
                middle = float(np.mean(np.log(values[base])))
            if np.isfinite(middle):
                found.append((coefficient, exponent, middle))
        first, second, third = zip(*found, strict=True) if found else ((), (), ())
        return cls(first, second, third)

    def turn(
        self,
        jacobian: Array,  # [row, constant]
        constants: Array,
    ) -> Array:
        """The derivatives where a change of an exponent leaves the middle of its term in place."""
        if not self.middles:
            return jacobian
        turned = jacobian.copy()
        with np.errstate(over="ignore", invalid="ignore"):  # what is not finite ends the fit
            for coefficient, exponent, middle in zip(
                self.coefficients, self.exponents, self.middles, strict=True
            ):
                turned[:, exponent] -= constants[coefficient] * middle * jacobian[:, coefficient]
        return turned

    def moved(self, constants: Array, move: Array) -> Array:
        """The constants after a step of that kind."""
        result = constants + move
        with np.errstate(over="ignore", invalid="ignore"):  # a step too large is refused later
            for coefficient, exponent, middle in zip(
                self.coefficients, self.exponents, self.middles, strict=True
            ):
                result[coefficient] *= np.exp(np.clip(-move[exponent] * middle, -MOST, MOST))
        return np.asarray(result)


def _pairs(program: Program) -> list[tuple[int, int, int]]:
    """Places of a coefficient, of an exponent in its product, and the step of the power's base."""
    found = []
    for step in program.steps:
        if step.kind is not Product:
            continue
        first = program.steps[step.children[0]]
        if first.kind is not Number or first.constant < 0:
            continue
        for child in step.children[1:]:
            if program.steps[child].kind is Power:
                base, exponent = program.steps[child].children
                place = program.steps[exponent].constant
                if place >= 0:
                    found.append((first.constant, place, base))
    return found


PATIENCE = 6  # steps before a fit may be given up; forms that start badly need some
STARTING_STEPS = 5  # of reweighting, before the first step of a fit with a bound
HOPELESS = 4.0  # times the rival's mean square: a fit that stays above it is given up


@dataclass(frozen=True, eq=False)
class Observations:
    """Rows to fit: columns, what was measured, and how much each row's deviation counts."""

    columns: Columns
    target: Array  # [row]
    weight: Array  # [row], one over the row's noise, up to a common factor
    bound: float = (
        math.inf
    )  # of weighted deviations: beyond it they count in proportion, not squared
    unit: float | None = None  # the weight of a row whose noise has the size 1, where it is known

    def __len__(self) -> int:
        return len(self.target)

    def rows(self, places: NDArray[np.integer[Any]]) -> Observations:
        """Some of the rows."""
        columns = {name: column[places] for name, column in self.columns.items()}
        return replace(
            self, columns=columns, target=self.target[places], weight=self.weight[places]
        )

    @property
    def floor(self) -> float:
        """A mean square below which a fit is exact but for rounding."""
        return float(np.mean((self.weight * self.target) ** 2)) * 1e-18 + 1e-300

    def losses(
        self,
        deviations: Array,  # weighted
    ) -> Array:
        """Squares, or Huber's loss where there is a bound."""
        return huber_loss(deviations, self.bound)

    def mean_square(self, predicted: Array) -> float:
        """The mean loss of the weighted deviations; infinite where a prediction is missing."""
        with np.errstate(all="ignore"):
            found = float(np.mean(self.losses(self.weight * (predicted - self.target))))
        return found if np.isfinite(found) else float("inf")


@dataclass(frozen=True, eq=False)
class Fit:
    """A formula with fitted constants."""

    expression: Expression
    mean_square: float  # weighted

    def is_usable(self, data: Observations) -> bool:
        """Whether the formula and its derivatives are defined on every row."""
        program = Program(self.expression)
        values, jacobian = program.jacobian(data.columns, program.start)
        return bool(np.isfinite(values).all() and np.isfinite(jacobian).all())


def fit_constants(
    expression: Expression,
    data: Observations,
    *,
    steps: int = 40,
    tolerance: float = 1e-6,
    rival: float = 0.0,
) -> Fit:
    """The formula with the constants that fit best, from those it has on.

    With the mean square of a `rival`, a fit that stays far behind it is given up early.
    """
    program = Program(expression)
    if len(program.start) == 0:
        return Fit(expression, data.mean_square(program.values(data.columns)))
    constants, values, jacobian = _start(program, data)
    cost = data.mean_square(values)
    if not np.isfinite(cost):
        return Fit(expression, float("inf"))
    damping, growth, floor = 1e-3, 2.0, data.floor
    centring = Centring.of(program, data.columns)
    fresh = True
    for step in range(steps):
        if fresh:
            weighted = centring.turn(jacobian, constants) * data.weight[:, None]
            if not np.isfinite(weighted).all():
                break
            scale = np.sqrt(np.einsum("nk,nk->k", weighted, weighted))
            scale[scale == 0] = 1.0
            weighted /= scale
            residual = data.weight * (values - data.target)
            counted = weighted
            if data.bound < math.inf:
                counted = weighted * huber_weights(residual, data.bound)[:, None]
            gramian, gradient = counted.T @ weighted, counted.T @ residual
        try:
            move = -np.linalg.solve(gramian + damping * np.eye(len(gradient)), gradient)
        except np.linalg.LinAlgError:
            move = np.full_like(gradient, np.nan)
        trial = centring.moved(constants, move / scale)
        trial_values = program.values(data.columns, trial)
        trial_cost = data.mean_square(trial_values)
        if trial_cost < cost:
            expected = float(move @ (damping * move - gradient)) / len(data)
            ratio = (cost - trial_cost) / expected if expected > 0 else 1.0
            gain = cost - trial_cost
            constants, cost = trial, trial_cost
            if rival and step >= PATIENCE and cost > HOPELESS * rival and gain < 0.3 * cost:
                break
            damping = max(damping * max(1 / 3, 1 - (2 * ratio - 1) ** 3), 1e-12)
            growth, fresh = 2.0, True
            if gain <= tolerance * cost or cost <= floor:
                break
            values, jacobian = program.jacobian(data.columns, constants)
        else:
            damping, growth, fresh = damping * growth, growth * 2, False
            if damping > 1e9:
                break
    return Fit(expression.with_constants(constants.tolist()), cost)


def start_cost(expression: Expression, data: Observations) -> float:
    """The weighted mean square before the fit, the linear constants solved."""
    _, values, _ = _start(Program(expression), data)
    return data.mean_square(values)


def _start(program: Program, data: Observations) -> tuple[Array, Array, Array]:
    """The first constants, those that enter linearly solved exactly; values and Jacobian there."""
    constants = program.start
    values, jacobian = program.jacobian(data.columns, constants)
    linear = linear_places(program.expression)
    if not linear:
        return constants, values, jacobian
    # The formula is the rest plus its linear part; the columns of that do not depend on it.
    columns = jacobian[:, linear]
    with np.errstate(all="ignore"):
        rest = values - columns @ constants[linear]
    design = columns * data.weight[:, None]
    wanted = (data.target - rest) * data.weight
    if not (np.isfinite(design).all() and np.isfinite(wanted).all()):
        return constants, values, jacobian
    scale = np.sqrt(np.einsum("nk,nk->k", design, design))
    scale[scale == 0] = 1.0
    solved, *_ = np.linalg.lstsq(design / scale, wanted, rcond=1e-10)
    if data.bound < math.inf:
        for _ in range(STARTING_STEPS):
            root = np.sqrt(huber_weights(design / scale @ solved - wanted, data.bound))
            solved, *_ = np.linalg.lstsq(design / scale * root[:, None], wanted * root, rcond=1e-10)
    constants = constants.copy()
    constants[linear] = solved / scale
    return constants, *program.jacobian(data.columns, constants)


def linear_places(expression: Expression) -> list[int]:
    """Which of the constants are coefficients of the outermost sum or product."""
    places, place = [], 0
    for term in expression.terms if isinstance(expression, Sum) else (expression,):
        if split_number(term)[0].free:
            places.append(place)
        place += len(term.constants)
    return places

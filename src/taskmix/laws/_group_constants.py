"""The constants of one group, and how well they are known: of a group that was there, of a new one,
and of a new one with a few rows.

A known group has its posterior under the mixed model (`_sharing.py`). A new one has the mean over groups
and the spread between them, and rows of it move the constants from there by Gauss-Newton steps, as in an
extended Kalman filter.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from taskmix.errors import ShapeError
from taskmix.laws._evaluate import Array, Program
from taskmix.laws._expression import Number, Product, Sum
from taskmix.laws._factors import GroupFactors
from taskmix.laws._fit import linear_places
from taskmix.laws._law import Law
from taskmix.laws._sharing import SharedFit


def law_in_unit(law: Law, unit: float) -> Law:
    """A law of a target that was divided by a unit, as a law of the target."""
    if unit == 1:
        return law
    places = linear_places(law.expression)
    terms = law.expression.terms if isinstance(law.expression, Sum) else (law.expression,)
    deviation = law.deviation * (unit if law.noise == "absolute" else 1.0)
    if len(places) < len(terms):  # some term has no coefficient that could hold the unit
        whole = Product((Number(unit), law.expression))
        return replace(law, expression=whole, deviation=deviation)
    scale = np.ones(len(law.expression.constants))
    scale[places] = unit
    constants = scale * np.array(law.expression.constants)
    return replace(
        law,
        expression=law.expression.with_constants(constants.tolist()),
        covariance=law.covariance * np.outer(scale, scale),
        deviation=deviation,
    )


APART = 2.0  # groups: three that happen to go together say little
ADAPTING = 12  # tangents at most, for the constants of a group with a few rows


def spread_of(fit: SharedFit, codes: GroupFactors | None) -> Array:
    """The covariance of what varies and is not known of a group [constant, constant].

    The model has own constants vary apart; where those of the groups go together, so do a new one's.
    """
    found = np.zeros((len(fit.mixed.mean),) * 2)
    deviations = np.sqrt(fit.mixed.ratios * fit.mixed.variance)
    for one, (place, column) in enumerate(fit.blocks):
        if codes is not None and codes.codes[column][0] >= 0:
            continue
        for two, (other, same) in enumerate(fit.blocks):
            if same == column:
                alike = (
                    1.0 if one == two else _together(fit.mixed.effects[one], fit.mixed.effects[two])
                )
                found[place, other] += alike * deviations[one] * deviations[two]
    return found


def _together(one: Array, other: Array) -> float:
    """The correlation of two constants over groups, drawn to 0 as by so many groups without any."""
    squares = float(np.sqrt((one @ one) * (other @ other)))
    return float(one @ other) / squares * len(one) / (len(one) + APART) if squares > 0 else 0.0


def posterior_of(fit: SharedFit, codes: GroupFactors) -> tuple[Array, Array]:
    """Mean and covariance of a group's constants, by what is known of it."""
    count = len(fit.mixed.mean)
    chosen = np.zeros((count, len(fit.mixed.covariance)))
    chosen[:, :count] = np.eye(count)
    first = count
    for (place, column), effect in zip(fit.blocks, fit.mixed.effects, strict=True):
        code = int(codes.codes[column][0])
        if code >= 0:
            chosen[place, first + code] = 1.0
        first += len(effect)
    return fit.told(codes)[0], chosen @ fit.mixed.covariance @ chosen.T


def prior_of(fit: SharedFit, codes: GroupFactors) -> tuple[Array, Array]:
    """The same of a group that was not there, with the spread of what is not known."""
    told, covariance = posterior_of(fit, codes)
    return told, covariance + spread_of(fit, codes)


def freedom_of(fit: SharedFit, codes: GroupFactors) -> int | None:
    """Levels beyond one, of the column with the fewest that a spread is known from."""
    unknown = [
        len(fit.factors.levels[column]) - 1
        for _, column in fit.blocks
        if codes.codes[column][0] < 0
    ]
    return max(min(unknown), 1) if unknown else None


def adapted_to(
    fit: SharedFit,
    prior: Array,
    spread: Array,
    columns: dict[str, Array],
    target: Array,
    noise: Any,  # from values to standard deviations
) -> tuple[Array, Array]:
    """Constants after a few rows: Gauss-Newton steps from the prior, as in an extended Kalman filter."""
    if len(target) == 0:
        raise ShapeError("There should be at least one row of the new group. Found none.")
    program = Program(fit.written.expression)
    told, covariance = prior, spread
    for _ in range(ADAPTING):
        constants = fit.written.constants(told)
        values, jacobian = program.jacobian(columns, constants)
        slopes = jacobian @ fit.written.slopes(constants)
        across = slopes @ spread
        total = across @ slopes.T + np.diag(noise(values) ** 2 + 1e-300)
        if not np.isfinite(total).all():
            break
        gain = np.linalg.solve(total, across).T
        moved = prior + gain @ (target - values - slopes @ (prior - told))
        covariance = spread - gain @ across
        for _ in range(ADAPTING):  # back from where the form has no value
            if np.isfinite(program.values(columns, fit.written.constants(moved))).all():
                break
            moved = (moved + told) / 2
        else:
            break
        settled = np.allclose(moved, told, rtol=1e-8, atol=1e-12)
        told = moved
        if settled:
            break
    return told, covariance

"""A law of a target that was divided by a unit, in the unit that the column has."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from taskmix.laws._fitting import linear_places
from taskmix.laws._forms import Number, Product, Sum
from taskmix.laws._judging._law import Law


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

"""The chosen law with all that its form leaves open, so that its intervals widen beyond the data.

Three things besides the constants are uncertain. Another form may be the true one: laws that are tied
with the chosen one count by how little longer their descriptions are. An exponent that was rounded to a
simple fraction may be another: the form with every exponent measured is one more rival. And all of them
may be wrong: the left-out ranges say by how much (`_discrepancy.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from taskmix.laws._fitting import Observations, fit_constants
from taskmix.laws._forms import Expression, Number, Power, substitute
from taskmix.laws._judging._discrepancy import discrepancy_rate
from taskmix.laws._judging._law import Law, law_of
from taskmix.laws._judging._ranges import RangeRows
from taskmix.laws._searching import Describer

MOST_RIVALS = 8  # beyond which a rival's description is so much longer that it hardly counts


def with_rivals(
    chosen: Law,
    rivals: Sequence[tuple[float, Law]],  # nats by which each is longer
    data: Observations,
    ranges: Sequence[RangeRows],
    without: Sequence[Expression],  # [range], the law that its other rows alone choose
    describer: Describer,
) -> Law:
    """The law with its rivals and the rate of its discrepancy."""
    found = sorted(rivals, key=lambda each: each[0])[:MOST_RIVALS]
    measured = _measured(chosen, data, describer)
    if measured is not None:
        found.append((max(measured.length - chosen.length, 0.0), measured))
    rate = discrepancy_rate(chosen.expression, data, ranges, without)
    tested = {each.of for each in ranges}
    untested = tuple(name for name in chosen.inputs if name not in tested)
    return replace(chosen, rivals=tuple(found), discrepancy=rate, untested=untested)


def _measured(law: Law, data: Observations, describer: Describer) -> Law | None:
    """The form with every exponent free; None where they are, or where it cannot be fitted."""

    def change(node: Expression) -> Expression | None:
        if isinstance(node, Power) and isinstance(node.exponent, Number):
            return Power(substitute(node.base, change), Number(node.exponent.value, free=True))
        return None

    form = substitute(law.expression, change)
    if len(form.constants) == len(law.expression.constants) or len(form.constants) >= len(data):
        return None
    fit = fit_constants(form, data, tolerance=1e-9)
    if not fit.is_usable(data):
        return None
    length = describer.length(fit.expression, fit.mean_square)
    return law_of(fit, data, target=law.target, length=length, noise=law.noise, errors=law.errors)

"""What is known of a law beforehand: where it rises, where it falls, whether it stays bounded.

Slopes are compared along lines through the box in which the law is asked to hold; whether a law is
bounded is told by its leading term (`growth`), with no grid at all.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from taskmix.errors import OptionError
from taskmix.laws._forms import Array, Expression, Program, growth
from taskmix.laws._judging._box import Box

LINES = 200  # through the box along an input, at most
POINTS = 33  # of each line
FLAT = 1e-9  # of the values' size: a step below it is rounding


@dataclass(frozen=True, kw_only=True)
class Demands:
    """What is known of a law beforehand; one that breaks it inside the box is not chosen.

    `bounded` asks for a finite limit as each input goes to infinity.
    """

    increasing: Collection[str] = ()
    decreasing: Collection[str] = ()
    bounded: bool = False

    def check(self, inputs: Collection[str]) -> None:
        """Raises where an input is not there, or is to go up and down."""
        for option, names in (("increasing", self.increasing), ("decreasing", self.decreasing)):
            for name in names:
                if name not in inputs:
                    raise OptionError(
                        f"`{option}` should name inputs: {', '.join(inputs)}. Found {name!r}."
                    )
        both = sorted(set(self.increasing) & set(self.decreasing))
        if both:
            raise OptionError(
                f"An input should be asked to increase or to decrease. Found both for {both[0]!r}."
            )

    @property
    def words(self) -> tuple[str, ...]:
        """For documents."""
        found = [f"increasing in {name}" for name in self.increasing]
        found += [f"decreasing in {name}" for name in self.decreasing]
        return tuple(found + (["bounded"] if self.bounded else []))


def why_demands_break(
    expression: Expression, demands: Demands, box: Box, middle: Mapping[str, float]
) -> str:
    """A sentence on the first demand that the law breaks; nothing where it breaks none.

    >>> box = Box({"n": (1.0, 100.0)}, "within the range asked for")
    >>> why_demands_break(parse_formula("n - 0.01*n^2"), Demands(increasing=("n",)), box, {"n": 10.0})
    'falls with n where n = 52.47, within the range asked for'
    >>> why_demands_break(parse_formula("log(n)"), Demands(bounded=True), box, {"n": 10.0})
    'grows without bound with n'
    """
    for names, sign, words in (
        (demands.increasing, 1.0, "falls"),
        (demands.decreasing, -1.0, "rises"),
    ):
        for name in sorted(set(names) & expression.variables):
            place = _wrong_slope(expression, name, sign, box, middle)
            if place:
                return f"{words} with {name} where {place}, {box.words}"
    for name in sorted(expression.variables) if demands.bounded else ():
        found = growth(expression, name, middle)
        if found is None:
            return f"is not known to be bounded as {name} grows"
        if not np.isfinite(found.limit):
            return f"grows without bound with {name}"
    return ""


def _wrong_slope(
    expression: Expression, name: str, sign: float, box: Box, middle: Mapping[str, float]
) -> str:
    """Where the law goes the wrong way along an input, in words."""
    others = sorted(expression.variables - {name})
    points = box.points(others, middle)
    along = box.line(name, POINTS)
    count = len(points[others[0]]) if others else 1
    # The last points are the lines through the middle of the data; of the rest, every so many.
    kept = np.unique(np.linspace(0, count - 1, min(count, LINES)).astype(int))
    columns: dict[str, Array] = {other: np.repeat(points[other][kept], POINTS) for other in others}
    columns[name] = np.tile(along, len(kept))
    values = Program(expression).values(columns).reshape(len(kept), POINTS)
    with np.errstate(all="ignore"):
        steps = sign * np.diff(values, axis=1)
        wrong = steps < -FLAT * np.abs(values[:, 1:])
    if not wrong.any():
        return ""
    line, step = np.argwhere(wrong)[-1] if others else np.argwhere(wrong)[0]
    at = {other: float(points[other][kept[line]]) for other in others}
    at[name] = float((along[step] + along[step + 1]) / 2)
    return ", ".join(f"{each} = {value:.4g}" for each, value in sorted(at.items()))

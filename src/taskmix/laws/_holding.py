"""Where a law is asked to hold, where it should hold unasked, and what it is asked to be.

A demand is what is known of a law beforehand: where it rises, where it falls, whether it stays bounded.
Slopes are compared along lines through the box in which the law is asked to hold; whether a law is
bounded is told by its leading term (`growth`), with no grid at all.

A law may fit every row and have a pole, or an edge beyond which it is not defined, just past them. Each
part of a formula that can fail is looked at over the points of a box: bases of roots and of negative
powers, and what logarithms are taken of. Where one fails, or the value has a sign that the target
never has, bisection along one input finds the place, and a sentence says it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from taskmix.errors import OptionError
from taskmix.laws._evaluate import Array, Program
from taskmix.laws._expression import Expression, Logarithm, Number, Power
from taskmix.laws._growth import growth
from taskmix.laws._ranges import Box

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
    """A sentence on the first demand that the law breaks; nothing where it breaks none."""
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


BISECTIONS = 40  # halvings of the way to a crossing
WRONG_SIGN = ("negative", "positive")  # what a law is called that leaves the sign of the target
NEGLIGIBLE = 1e-6  # of the target's typical size: below it a wrong sign is rounding


@dataclass(frozen=True)
class TargetFacts:
    """What the target is like: its sign, where it has only one, and its typical size."""

    sign: int  # 1, -1, or 0 where values of both signs were measured
    size: float

    @classmethod
    def of(cls, target: Array) -> TargetFacts:
        sign = 1 if np.all(target >= 0) else -1 if np.all(target <= 0) else 0
        return cls(sign, float(np.median(np.abs(target))) or float(np.abs(target).max()))


def why_disqualified(
    expression: Expression, box: Box, middle: Mapping[str, float], target: TargetFacts
) -> str:
    """A sentence on where the law fails inside the box; nothing where it does not."""
    names = sorted(expression.variables)
    if not names:
        return ""
    points = box.points(names, middle)
    program = Program(expression)
    for part in _parts(program, {name: float(middle[name]) for name in names}, target):
        bad = part.fails(points)
        if bad.any():
            return f"{_told_failure(part, points, bad, box, middle)}, {box.words}"
    finite = np.isfinite(program.values(points))
    if not finite.all():
        place = _point(points, int(np.argmin(finite)))
        return f"too large to compute near {_words(place)}, {box.words}"
    return ""


@dataclass(frozen=True, eq=False)
class _Part:
    """A node of a formula that has to keep its sign, and what goes wrong where it does not."""

    words: str
    program: Program
    place: int
    sign: float
    least: float = 0.0
    may_be_least: bool = False

    @property
    def variables(self) -> frozenset[str]:
        return self.program.nodes[self.place].variables

    @property
    def is_pole(self) -> bool:
        return self.words == _POLE

    def fails(self, points: Mapping[str, Array]) -> NDArray[np.bool_]:
        """[point]; where it has no value another part fails, and tells."""
        count = len(next(iter(points.values())))
        found = self.sign * np.broadcast_to(self.program.node_values(points)[self.place], (count,))
        return np.asarray(found < self.least if self.may_be_least else found <= self.least)

    def fails_at(self, point: Mapping[str, float]) -> bool:
        return bool(self.fails({name: np.array([value]) for name, value in point.items()})[0])


_POLE = "has a pole"


def _parts(program: Program, middle: Mapping[str, float], target: TargetFacts) -> Iterator[_Part]:
    """What may fail, inner parts before outer ones."""
    one = {name: np.array([value]) for name, value in middle.items()}
    here = program.node_values(one)
    for place, node in enumerate(program.nodes):
        children = program.steps[place].children
        if not node.variables:
            continue
        if isinstance(node, Logarithm):
            yield _Part("undefined", program, children[0], 1.0)
        elif isinstance(node, Power):
            fixed = isinstance(node.exponent, Number)
            exponent = node.exponent.value if isinstance(node.exponent, Number) else -0.5
            if not fixed or exponent != round(exponent):
                yield _Part("undefined", program, children[0], 1.0, may_be_least=exponent > 0)
            elif exponent < 0:
                is_below = float(np.ravel(here[children[0]])[0]) < 0
                yield _Part(_POLE, program, children[0], -1.0 if is_below else 1.0)
    if target.sign:
        words = WRONG_SIGN[0] if target.sign > 0 else WRONG_SIGN[1]
        last, least = len(program.nodes) - 1, -NEGLIGIBLE * target.size
        yield _Part(words, program, last, float(target.sign), least, may_be_least=True)


def _told_failure(
    part: _Part,
    points: Mapping[str, Array],
    bad: NDArray[np.bool_],
    box: Box,
    middle: Mapping[str, float],
) -> str:
    """`undefined where n > 46.5`; near a point where no input alone leads there from the middle."""
    start = {name: float(middle[name]) for name in points}
    if part.fails_at(start):
        return f"{part.words} near {_words(start)}"
    for name in sorted(part.variables):
        found = _crossing(part, name, start, box)
        if found is None:
            continue
        value, sign = found
        where = f"at {name} = {value:.4g}" if part.is_pole else f"where {name} {sign} {value:.4g}"
        others = {other: start[other] for other in sorted(part.variables) if other != name}
        return f"{part.words} {where}" + (f" (at {_words(others)})" if others else "")
    return f"{part.words} near {_words(_nearest(part, points, bad, start))}"


def _crossing(
    part: _Part, name: str, start: Mapping[str, float], box: Box
) -> tuple[float, str] | None:
    """Where the part begins to fail along one input, the others as they are, and on which side."""
    line = box.line(name)
    bad = part.fails(
        {other: np.full(len(line), value) for other, value in start.items()} | {name: line}
    )
    above = line[bad & (line > start[name])]
    below = line[bad & (line < start[name])]
    if not len(above) and not len(below):
        return None
    fails, sign = (float(above[0]), ">") if len(above) else (float(below[-1]), "<")
    between = line[(~bad) & ((line < fails) if sign == ">" else (line > fails))]
    holds = start[name]
    if len(between):  # nearer than the middle
        holds = float(max(holds, between[-1]) if sign == ">" else min(holds, between[0]))
    by_ratio = holds > 0 and fails > 0
    for _ in range(BISECTIONS):
        half = float(np.sqrt(holds * fails)) if by_ratio else (holds + fails) / 2
        if part.fails_at({**start, name: half}):
            fails = half
        else:
            holds = half
    return fails, sign


def _nearest(
    part: _Part, points: Mapping[str, Array], bad: NDArray[np.bool_], start: Mapping[str, float]
) -> dict[str, float]:
    """A failing point with as many inputs as possible back in the middle."""
    spread = {name: float(np.ptp(column)) or 1.0 for name, column in points.items()}
    away = sum(((points[name] - start[name]) / spread[name]) ** 2 for name in points)
    place = int(np.argmin(np.where(bad, np.asarray(away), np.inf)))
    found = _point(points, place)
    for name in list(found):
        if part.fails_at({**found, name: start[name]}):
            found[name] = start[name]
    return {name: value for name, value in found.items() if name in part.variables}


def _point(points: Mapping[str, Array], place: int) -> dict[str, float]:
    return {name: float(column[place]) for name, column in points.items()}


def _words(point: Mapping[str, float]) -> str:
    return ", ".join(f"{name} = {value:.4g}" for name, value in point.items())


@dataclass(frozen=True)
class LawVerdict:
    """What disqualifies a law: where it was asked to hold, and where nobody asked."""

    asked: str = ""
    unasked: str = ""

    @property
    def words(self) -> str:
        return self.asked or self.unasked

    @property
    def is_sign(self) -> bool:
        """Whether all that is wrong is the sign, and that where nobody asked."""
        return not self.asked and self.unasked.startswith(WRONG_SIGN)


@dataclass(frozen=True, kw_only=True)
class Holding:
    """A box that was asked for, one that was not, and demands on the slope and on the far end."""

    asked: Box | None = None
    unasked: Box | None = None
    demands: Demands = field(default_factory=Demands)

    def verdict(
        self, expression: Expression, middle: Mapping[str, float], target: TargetFacts
    ) -> LawVerdict:
        """Why a law is disqualified, if it is."""
        asked = unasked = ""
        if self.asked is not None:
            asked = why_disqualified(expression, self.asked, middle, target)
        box = self.asked or self.unasked
        if not asked and box is not None:
            asked = why_demands_break(expression, self.demands, box, middle)
        if not asked and self.unasked is not None:
            unasked = why_disqualified(expression, self.unasked, middle, target)
        return LawVerdict(asked, unasked)

"""Why a law cannot be used where it is asked to hold.

A law may fit every row and have a pole, or an edge beyond which it is not defined, just past them. Each
part of a formula that can fail is looked at over the points of a box: bases of roots and of negative
powers, and what logarithms are taken of. Where one fails, or the value has a sign that the target
never has, bisection along one input finds the place, and a sentence says it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from taskmix.laws._forms import Array, Expression, Logarithm, Number, Power, Program
from taskmix.laws._judging._box import Box

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
    """A sentence on where the law fails inside the box; nothing where it does not.

    >>> law = parse_formula("1/(50 - n)")
    >>> box = Box({"n": (1.0, 100.0)}, "within the range asked for")
    >>> why_disqualified(law, box, {"n": 10.0}, TargetFacts(1, 1.0))
    'has a pole at n = 50, within the range asked for'
    """
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

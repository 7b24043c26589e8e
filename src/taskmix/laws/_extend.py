"""Larger formulas from a fitted one: which change at which node would explain most?

The derivative of a formula by one of its nodes tells, to first order, what a change of that node
does to every prediction. Adding a little of a term t to node s moves the prediction by
(∂f/∂s) t, multiplying it by a small power of a factor g by (∂f/∂s) s log g. How much of the deviations
such a column explains beyond what the constants at hand could is a score test (Rao, 1948): one
projection for thousands of changes at once, and only the best are then fitted.

A factor of one variable can also be exchanged for another shape of that variable, and a term of a sum
for another term: its part in the prediction is taken away and given back to the deviations, and the
candidates compete for explaining them, a factor by its logarithm.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from taskmix.laws._complexity import form_length
from taskmix.laws._evaluate import Array, Program
from taskmix.laws._expression import Expression, Number, Power, Product, Sum, Variable, free
from taskmix.laws._fit import Observations
from taskmix.laws._normal import add, exchange, multiply, raise_to
from taskmix.laws._shapes import Feature

FIXED_EXPONENTS = (-1.0, -0.5, 0.5, 1.0)  # that a factor with a constant inside may just have
DESCRIBED_CHANGES = 80  # changes whose formulas are written down to tell how long they are
FIRST_EXPONENT = 1e-3  # of a new exponent, where the score test gives none that can be used


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """The shapes of all variables on the rows that are screened."""

    factors: list[Feature]
    terms: list[Feature]
    crosses: list[Feature]


@dataclass(frozen=True, eq=False)
class _Change:
    """A node exchanged: `what` tells changes of one kind apart, `build` takes the small amount."""

    what: tuple[object, ...]
    node: int
    column: Array
    build: Callable[[float], Expression]


def extensions(
    expression: Expression, data: Observations, words: Vocabulary, count: int
) -> list[Expression]:
    """The most promising larger formulas, best first; not yet fitted."""
    program = Program(expression)
    values, adjoints = program.sensitivities(data.columns, program.start)
    rows = len(data)
    changes = []
    for place, parent in _parents(program).items():
        adjoint = np.broadcast_to(adjoints[place], (rows,))
        value = np.broadcast_to(values[place], (rows,))
        if not np.isfinite(adjoint).all() or not np.isfinite(value).all():
            continue
        with np.errstate(over="ignore"):  # a column too large for its numbers is not used
            changes += _changes(program.nodes[place], place, parent, adjoint, value, words)
    if not changes:
        return []
    _, jacobian = program.jacobian(data.columns, program.start)
    residual = data.weight * (data.target - values[-1])
    amounts, scores = _score(changes, jacobian * data.weight[:, None], residual, data.weight)
    found: dict[tuple[object, ...], tuple[float, _Change, float]] = {}
    for change, amount, score in zip(changes, amounts, scores, strict=True):
        if change.what not in found or found[change.what][0] < score:
            found[change.what] = (score, change, amount)
    total = float(residual @ residual)
    best = sorted(found.values(), key=lambda entry: -entry[0])[:DESCRIBED_CHANGES]
    made = [
        (total - score, exchange(expression, program.nodes[change.node], change.build(amount)))
        for score, change, amount in best
    ]
    return _shortest(made, rows, count)


def _shortest(made: list[tuple[float, Expression]], rows: int, count: int) -> list[Expression]:
    """Of formulas with the squares they should leave, those with the shortest descriptions."""
    lengths = [
        0.5 * rows * np.log(max(left, 1e-300)) + form_length(expression, rows)
        for left, expression in made
    ]
    best = [made[place][1] for place in np.argsort(lengths, kind="stable")]
    return list({expression.key: expression for expression in reversed(best)}.values())[::-1][
        :count
    ]


def _parents(program: Program, *, numbers: bool = False) -> dict[int, type[Expression] | None]:
    """The steps that may be changed, with the kind of node above each."""
    above: dict[int, type[Expression] | None] = {len(program.steps) - 1: None}
    for step in program.steps:
        for number, child in enumerate(step.children):
            if not (step.kind is Power and number == 1):
                above[child] = step.kind
    return {
        place: kind
        for place, kind in sorted(above.items())
        if not isinstance(program.nodes[place], Number) or (numbers and kind is Sum)
    }


def _changes(
    node: Expression,
    place: int,
    parent: type[Expression] | None,
    adjoint: Array,
    value: Array,
    words: Vocabulary,
) -> list[_Change]:
    found = []
    if parent is not Sum:  # to a sum's terms nothing is added: the sum itself is there
        one = _plus(node, lambda a: free(a))
        found.append(_Change((place, "constant"), place, adjoint, one))
        terms = words.terms + (words.crosses if parent is None else [])
        for feature in terms:
            what = (place, "term", feature.kind, feature.variables)
            build = _plus(node, feature.build)
            found.append(_Change(what, place, adjoint * feature.values, build))
    if parent not in (Product, Power):
        for feature in words.factors:
            what = (place, "factor", feature.kind, feature.variables)
            column = adjoint * value * feature.values
            found.append(_Change(what, place, column, _times(node, feature.build)))
    return found


def _plus(node: Expression, build: Callable[[float], Expression]) -> Callable[[float], Expression]:
    return lambda amount: add(node, build(amount))


def _times(node: Expression, build: Callable[[float], Expression]) -> Callable[[float], Expression]:
    # An exponent of any size is a first guess; a large one would leave the formula's range.
    return lambda amount: multiply(node, build(float(np.clip(amount, -2.0, 2.0)) or FIRST_EXPONENT))


def _score(
    changes: list[_Change], jacobian: Array, residual: Array, weight: Array
) -> tuple[Array, Array]:
    """For each change the amount a linear step would take, and the squares it would explain."""
    with np.errstate(over="ignore", invalid="ignore"):  # what has no finite length is not used
        columns = np.column_stack([change.column for change in changes]) * weight[:, None]
        lengths = np.linalg.norm(columns, axis=0)
    usable = np.isfinite(lengths) & (lengths > 0)
    columns = np.where(usable, columns, 0.0) / np.where(usable, lengths, 1.0)
    basis = _basis(jacobian)
    residual = residual - basis @ (basis.T @ residual)
    columns -= basis @ (basis.T @ columns)
    squares = np.einsum("nk,nk->k", columns, columns)
    usable &= squares > 1e-9
    along = columns.T @ residual
    amounts = np.where(usable, along / np.where(usable, squares, 1.0), 0.0)
    scores = np.where(usable, along * amounts, 0.0)
    return amounts / np.where(lengths > 0, lengths, 1.0), scores


def replacements(
    expression: Expression, data: Observations, words: Vocabulary, count: int
) -> list[Expression]:
    """The formula with a factor, or a term of a sum, exchanged for another shape."""
    program = Program(expression)
    values, adjoints = program.sensitivities(data.columns, program.start)
    _, jacobian = program.jacobian(data.columns, program.start)
    found: list[tuple[float, Expression]] = []
    for place, parent in _parents(program, numbers=True).items():
        node = program.nodes[place]
        adjoint = np.broadcast_to(adjoints[place], (len(data),))
        value = np.broadcast_to(values[place], (len(data),))
        if parent is Sum and len(node.variables) <= 1:
            # A constant may become a term of any variable, a term only one of its own.
            own = [f for f in words.terms if not node.variables or {*f.variables} == node.variables]
            amount, strength = value, adjoint
        elif node.variables and len(node.variables) <= 2 and _is_factor(node):
            own = [f for f in words.factors if {*f.variables} == node.variables]
            with np.errstate(all="ignore"):
                amount, strength = np.log(value), adjoint * value
        else:
            continue
        with np.errstate(all="ignore"):
            removed, columns = strength * amount, [strength * f.values for f in own]
        rest = np.delete(jacobian, _constants_below(program, place), axis=1)
        for left, made in _swapped(removed, columns, own, rest, data, values[-1]):
            new = exchange(expression, node, made)
            if new.key != expression.key:
                found.append((left, new))
    found.sort(key=lambda entry: entry[0])
    return _shortest(found[:DESCRIBED_CHANGES], len(data), count)


def _swapped(
    removed: Array,
    columns: list[Array],
    own: list[Feature],
    rest: Array,
    data: Observations,
    predicted: Array,
) -> list[tuple[float, Expression]]:
    """The best feature of each kind in the place of what is removed: squares left, and the tree.

    All other constants move along, to first order.
    """
    wanted = data.weight * (data.target - predicted + removed)
    usable = [np.isfinite(column).all() for column in columns]
    if not np.isfinite(wanted).all() or not any(usable):
        return []
    kept = [feature for feature, good in zip(own, usable, strict=True) if good]
    design = np.column_stack([c for c, good in zip(columns, usable, strict=True) if good])
    design *= data.weight[:, None]
    basis = _basis(rest * data.weight[:, None])
    design -= basis @ (basis.T @ design)
    wanted = wanted - basis @ (basis.T @ wanted)
    # Squares of a column too large for them are infinite, or no number: such a column is not used.
    with np.errstate(over="ignore", invalid="ignore"):
        squares = np.einsum("nk,nk->k", design, design)
        along, total = design.T @ wanted, float(wanted @ wanted)
        solvable = np.isfinite(squares) & np.isfinite(along) & (squares > 0)
        amounts = np.where(solvable, along, 0.0) / np.where(solvable, squares, 1.0)
        left = total - amounts**2 * np.where(solvable, squares, 0.0)
    best: dict[tuple[object, ...], tuple[float, Expression]] = {}

    def offer(what: tuple[object, ...], error: float, make: Callable[[], Expression]) -> None:
        if what not in best or error < best[what][0]:
            best[what] = (error, make())

    for place, feature in enumerate(kept):
        if not solvable[place]:
            continue
        what, amount = (feature.kind, feature.variables), float(amounts[place])
        if amount != 0:
            offer(what, float(left[place]), partial(feature.build, amount))
        if feature.base is not None:
            for exponent in FIXED_EXPONENTS:
                error = total - 2 * exponent * along[place] + exponent**2 * squares[place]
                made = partial(raise_to, feature.base, Number(exponent))
                offer((*what, exponent), float(error), made)
    return list(best.values())


def _constants_below(program: Program, place: int) -> list[int]:
    """The places of the free numbers in a node's tree."""
    step = program.steps[place]
    if step.constant >= 0:
        return [step.constant]
    return [found for child in step.children for found in _constants_below(program, child)]


def _basis(columns: Array) -> Array:
    """An orthonormal basis of what the columns span; columns that are not finite are left out."""
    columns = columns[:, np.isfinite(columns).all(axis=0)]
    columns = columns / (np.linalg.norm(columns, axis=0) + 1e-300)
    basis, triangle = np.linalg.qr(columns)
    return np.asarray(basis[:, np.abs(np.diag(triangle)) > 1e-8])


def _is_factor(node: Expression) -> bool:
    return isinstance(node, Variable | Power | Sum | Product) and not node.key.startswith("(* #")

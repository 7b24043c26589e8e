"""Laws of three variables and more that fall apart: one variable, and the rest by itself.

Where y = F(w) h(u, v) or y = F(w) + h(u, v), whatever h is, a curve of w and a surface of the rest fit
the rows (in logarithms, or as they are) as well as anything does. The surface can then be taken away
to see F, and the curve to see h, which is a law of fewer variables and is searched as such. So it is
with a product beside a constant, inside a logarithm and so on (`_scales.py`). Separability was used so
by Udrescu and Tegmark, "AI Feynman", Science Advances 6, 2020, with a neural network for a surface.

A sum of one shape for each variable is matched one variable at a time. The others stand in as smooth
curves while one is matched, so the work grows with the number
of variables and not with that of combinations. The best shapes of each are then combined, all but those
in which many variables have one of their worse shapes, every combination solved from one Gram matrix.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement

import numpy as np
from numpy.typing import NDArray

from taskmix.laws._evaluate import Array
from taskmix.laws._expression import Expression
from taskmix.laws._fit import Observations
from taskmix.laws._normal import add, multiply
from taskmix.laws._scales import (
    PLAIN,
    PRODUCT,
    RECIPROCAL,
    SQUARE,
    Scale,
    ScaledRows,
    scales_beside,
    scales_inside,
)
from taskmix.laws._shapes import Feature, factor_features, term_features

KEPT_SHAPES = 10  # of each variable, when they are combined
MOST_BEHIND = {1: 9, 2: 18, 3: 14, 4: 9}  # places behind the best shapes, all variables together
MOST_BEHIND_OF_MANY = 4
KEPT_COMBINATIONS = 10  # combinations handed on


def separable(
    rows: ScaledRows, features: list[list[Feature]], curves: list[Array] | None = None
) -> list[tuple[list[Feature], Array]]:
    """The best combinations of one feature for each variable (or none), with their regressions.

    `curves` stand in for the variables where they are not those of the columns, one by one.
    """
    if curves is None:
        curves = [curve(column) for column in rows.columns.values()]
    options: list[list[Feature | None]] = []
    for place, own in enumerate(features):
        others = [curve for other, curve in enumerate(curves) if other != place]
        options.append([None, *matched(rows.weight, rows.wanted, own, others)[:KEPT_SHAPES]])
    return _best_combinations(rows, options)


def _best_combinations(
    rows: ScaledRows, options: list[list[Feature | None]]
) -> list[tuple[list[Feature], Array]]:
    """Every combination solved from one Gram matrix; the shortest descriptions of the rows."""
    flat = [feature for own in options for feature in own if feature is not None]
    design = np.column_stack([np.ones(len(rows.weight)), *(f.values for f in flat)])
    design, exponents = levelled(design * rows.weight[:, None])
    norms = np.linalg.norm(design, axis=0)
    gram, seen = (design / norms).T @ (design / norms), (design / norms).T @ rows.wanted
    places = {id(feature): place for place, feature in enumerate(flat, start=1)}
    by_size: dict[int, list[list[Feature]]] = {}
    for combination in _combined(options, MOST_BEHIND.get(len(options), MOST_BEHIND_OF_MANY)):
        chosen = [feature for feature in combination if feature is not None]
        by_size.setdefault(len(chosen), []).append(chosen)
    total, count = float(rows.wanted @ rows.wanted), len(design)
    scored: list[tuple[float, int, list[Feature], Array]] = []
    for size, group in sorted(by_size.items()):
        index = np.array([[0, *(places[id(f)] for f in chosen)] for chosen in group])
        blocks = gram[index[:, :, None], index[:, None, :]] + 1e-12 * np.eye(size + 1)
        solved = np.linalg.solve(blocks, seen[index][..., None])[..., 0]
        left = np.maximum(total - np.einsum("ck,ck->c", solved, seen[index]), 1e-16 * total)
        inner = np.array([sum(f.kind not in ("power", "log") for f in c) for c in group])
        length = 0.5 * count * np.log(left + 1e-300) + 3.0 * size
        length += 0.5 * np.log(count) * (size + inner)
        for place in np.argsort(length, kind="stable")[:KEPT_COMBINATIONS]:
            answer = np.ldexp(solved[place] / norms[index[place]], -exponents[index[place]])
            scored.append((float(length[place]), len(scored), group[place], answer))
    scored.sort(key=lambda entry: entry[:2])
    return [(chosen, solved) for _, _, chosen, solved in scored[:KEPT_COMBINATIONS]]


def _combined(
    options: Sequence[Sequence[Feature | None]], behind: int
) -> Iterator[tuple[Feature | None, ...]]:
    """One option of each, together not further behind the first ones than this; none is no shape."""
    if not options:
        yield ()
        return
    for place, option in enumerate(options[0]):
        left = behind - max(place - 1, 0)
        if left >= 0:
            for rest in _combined(options[1:], left):
                yield option, *rest


def matched(weight: Array, wanted: Array, own: list[Feature], others: list[Array]) -> list[Feature]:
    """The best feature of each kind, the other variables being smooth curves; best kinds first."""
    if not own:
        return []
    basis, _ = np.linalg.qr(np.column_stack([np.ones(len(weight)), *others]) * weight[:, None])
    values, _ = levelled(np.column_stack([feature.values for feature in own]) * weight[:, None])
    values = values - basis @ (basis.T @ values)
    wanted = wanted - basis @ (basis.T @ wanted)
    norms = np.einsum("nk,nk->k", values, values)
    explained = (values.T @ wanted) ** 2 / np.where(norms > 1e-20, norms, np.inf)
    best: dict[str, Feature] = {}
    for place in np.argsort(-explained, kind="stable"):
        feature = own[place]
        # A bare power is one shape with one exponent per term, so several may be kept.
        best.setdefault(feature.kind, feature)
    return list(best.values())


def curve(column: Array) -> Array:
    """A flexible basis for an unknown curve of one variable [row, function]."""
    distinct = np.unique(column)
    if len(distinct) <= 8:
        return np.asarray(column[:, None] == distinct[None, 1:], dtype=np.float64)
    scaled = np.log(column) if np.all(column > 0) else column
    scaled = (scaled - scaled.mean()) / scaled.std()
    knots = np.quantile(scaled, [0.2, 0.4, 0.6, 0.8])
    bends = np.clip(scaled[:, None] - knots, 0, None) ** 3
    return np.column_stack([scaled, scaled**2, scaled**3, bends])


SURFACE_DEGREE = 4  # of the polynomial that stands for the law of the other variables
ROWS_PER_FUNCTION = 4  # at the least; with fewer the surface fits the noise
NO_SPLIT_WITHIN = 1.01  # times the error of curve and surface: a law as good as that needs no split
FOLLOWED_WITHIN = 1.3  # times the error of the best split, for another to be followed
MOST_SPLITS = 2  # that are followed; each costs a search of its own
SHAPES_OF_ONE = 4  # of the variable that was split off
LAWS_OF_REST = 6  # of the rest


@dataclass(frozen=True, eq=False)
class _Split:
    """A variable apart from the rest, under a scale."""

    name: str
    scale: Scale
    is_product: bool
    mean_square: float  # for each row beyond the functions
    wanted: Array  # [row], the target on the scale
    weight: Array  # [row], of its deviations there
    alone: Array  # [row], the variable's part
    rest: Array  # [row]


def split_starts(
    data: Observations,
    rival: float,
    search: Callable[[Observations], Sequence[Expression]],
) -> Iterator[Expression]:
    """Laws of one variable and the rest, unless the `rival`'s mean square leaves nothing to find.

    `search` gives formulas for fewer variables, best first.
    """
    if len(data.columns) < 3:
        return
    sums = [(scale, False) for scale in (PLAIN, SQUARE, RECIPROCAL)]
    products = [(scale, True) for scale in (PRODUCT, *scales_beside(data), *scales_inside(data))]
    best: dict[tuple[str, bool], _Split] = {}
    for scale, is_product in (*sums, *products):
        for name in data.columns:
            split = _split(data, name, scale, is_product)
            kind = (name, is_product)
            if split and (kind not in best or split.mean_square < best[kind].mean_square):
                best[kind] = split
    splits = sorted(best.values(), key=lambda split: split.mean_square)
    if not splits or rival <= NO_SPLIT_WITHIN * splits[0].mean_square:
        return
    for split in splits[:MOST_SPLITS]:
        if split.mean_square <= FOLLOWED_WITHIN * splits[0].mean_square:
            yield from _joined(data, split, search)


def _split(data: Observations, name: str, scale: Scale, is_product: bool) -> _Split | None:
    with np.errstate(all="ignore"):
        wanted, slope = scale.there(data.target), np.abs(scale.slope(data.target))
    surface = _surface([column for other, column in data.columns.items() if other != name])
    own = curve(data.columns[name])
    functions = 1 + own.shape[1] + surface.shape[1]
    usable = np.isfinite(wanted).all() and np.isfinite(slope).all() and (slope > 0).all()
    if not usable or ROWS_PER_FUNCTION * functions > len(data):
        return None
    weight = data.weight / slope
    design = np.column_stack([np.ones(len(data)), own, surface])
    solved, *_ = np.linalg.lstsq(design * weight[:, None], wanted * weight, rcond=1e-9)
    alone = own @ solved[1 : 1 + own.shape[1]]
    rest = solved[0] + surface @ solved[1 + own.shape[1] :]
    squares = (weight * (wanted - alone - rest)) ** 2
    mean_square = float(squares.sum() / (len(data) - functions))
    return _Split(name, scale, is_product, mean_square, wanted, weight, alone, rest)


def _surface(columns: Sequence[Array]) -> Array:
    """Polynomials of the (logarithms of the) columns [row, function]."""
    scaled = [np.log(column) if np.all(column > 0) else column for column in columns]
    scaled = [(column - column.mean()) / (column.std() or 1.0) for column in scaled]
    return np.column_stack(
        [
            np.prod([scaled[place] for place in places], axis=0)
            for degree in range(1, SURFACE_DEGREE + 1)
            for places in combinations_with_replacement(range(len(scaled)), degree)
        ]
    )


def _joined(
    data: Observations, split: _Split, search: Callable[[Observations], Sequence[Expression]]
) -> Iterator[Expression]:
    """The best shapes of the variable with the best laws of the rest."""
    others = {name: column for name, column in data.columns.items() if name != split.name}
    left, weight = split.wanted - split.alone, split.weight
    if split.is_product:
        left = np.exp(np.clip(left, -300, 300))
        weight = weight / left
    laws = search(Observations(others, left, weight))[:LAWS_OF_REST]
    join = multiply if split.is_product else add
    for feature, amount in _shapes(data, split):
        for law in laws:
            yield split.scale.back(join(law, feature.build(amount)))


def _shapes(data: Observations, split: _Split) -> Iterator[tuple[Feature, float]]:
    """What the variable that was split off can be, with its exponent or coefficient."""
    of = factor_features if split.is_product else term_features
    features = of(split.name, data.columns[split.name])
    weight, left = split.weight, (split.wanted - split.rest) * split.weight
    for feature in matched(weight, left, features, [])[:SHAPES_OF_ONE]:
        design = np.column_stack([np.ones(len(left)), feature.values]) * weight[:, None]
        solved, *_ = np.linalg.lstsq(design, left, rcond=1e-12)
        yield feature, float(solved[1])


def levelled(
    columns: Array,  # [row, column], finite
) -> tuple[Array, NDArray[np.intp]]:
    """Columns over powers of two that bring their largest value near 1, and those exponents.

    The cube of a large number can be a number and its square not. Powers of two cost no digit, so
    whatever does not depend on the unit comes out the same to the last bit.
    """
    _, exponents = np.frexp(np.abs(columns).max(axis=0, initial=0.0))
    return np.ldexp(columns, -exponents), exponents

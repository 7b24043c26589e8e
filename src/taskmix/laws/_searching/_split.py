"""Laws of three variables and more that fall apart: one variable, and the rest by itself.

Where y = F(w) h(u, v) or y = F(w) + h(u, v), whatever h is, a curve of w and a surface of the rest fit
the rows (in logarithms, or as they are) as well as anything does. The surface can then be taken away
to see F, and the curve to see h, which is a law of fewer variables and is searched as such. So it is
with a product beside a constant, inside a logarithm and so on (`_scales.py`). Separability was used so
by Udrescu and Tegmark, "AI Feynman", Science Advances 6, 2020, with a neural network for a surface.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement

import numpy as np

from taskmix.laws._fitting import Observations
from taskmix.laws._forms import Array, Expression, add, multiply
from taskmix.laws._searching._scales import (
    PLAIN,
    PRODUCT,
    RECIPROCAL,
    SQUARE,
    Scale,
    scales_beside,
    scales_inside,
)
from taskmix.laws._searching._separable import curve, matched
from taskmix.laws._searching._shapes import Feature, factor_features, term_features

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

"""Sums of one shape for each variable, matched one variable at a time.

The other variables stand in as smooth curves while one is matched, so the work grows with the number
of variables and not with that of combinations. The best shapes of each are then combined, all but those
in which many variables have one of their worse shapes, every combination solved from one Gram matrix.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from taskmix.laws._forms import Array
from taskmix.laws._searching._level import levelled
from taskmix.laws._searching._scales import ScaledRows
from taskmix.laws._searching._shapes import Feature

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

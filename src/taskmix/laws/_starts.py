"""First guesses at a law, by linear algebra alone.

After a change of scale (logarithm, square, root, reciprocal) many laws are sums: a product is one in
logarithms, sqrt(n a + 300 T) is one squared. Under each scale two kinds of sums are tried:

- *separable*: one shape for each variable. Each variable is matched alone, the others standing in as
  smooth curves, so the work grows with the number of variables and not with the number of
  combinations; the best shapes are then combined exhaustively.
- *monomials*: two or three products of simple powers, every pair solved exactly from one Gram matrix.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np

from taskmix.laws._evaluate import Array, Columns
from taskmix.laws._expression import (
    ZERO,
    Expression,
    Number,
    Variable,
    add,
    free,
    log,
    multiply,
    raise_to,
)
from taskmix.laws._fit import Observations
from taskmix.laws._shapes import Feature, factor_features, term_features

KEPT_SHAPES = 6  # of each variable, when they are combined
KEPT = 6  # combinations handed on, for each scale


@dataclass(frozen=True)
class Scale:
    """A change of scale of the target: there, its slope, and back for a tree."""

    name: str
    there: Callable[[Array], Array]
    slope: Callable[[Array], Array]
    back: Callable[[Expression], Expression]


def _to(power: float) -> Callable[[Expression], Expression]:
    return lambda total: raise_to(total, Number(power))


PLAIN = Scale("plain", lambda y: y, np.ones_like, lambda total: total)
SCALES = (
    Scale("square", np.square, lambda y: 2 * y, _to(0.5)),
    Scale("reciprocal", lambda y: 1 / y, lambda y: 1 / y**2, _to(-1.0)),
    Scale("root", np.sqrt, lambda y: 0.5 / np.sqrt(y), _to(2.0)),
)
LOGARITHMS = (0.1, 0.2, 0.4, 0.7, 1.2, 2.5)  # a of y = a log(sum), in spans of the target


def _exponential(a: float) -> Scale:
    return Scale(
        f"exp {a:g}",
        lambda y: np.exp(y / a),
        lambda y: np.exp(y / a) / a,
        lambda total: multiply(free(a), log(total)),
    )


def _scales(data: Observations) -> list[Scale]:
    span = float(np.ptp(data.target)) or 1.0
    return [PLAIN, *SCALES, *(_exponential(span * share) for share in LOGARITHMS)]


def _beyond(sign: float, offset: float) -> Scale:
    return Scale(
        f"log beyond {offset:g}",
        lambda y: np.log(sign * (y - offset)),
        lambda y: 1 / np.abs(y - offset),
        lambda total: total,
    )


OFFSETS = (0.03, 0.2, 1.0)  # of the constant beside a product, in spans of the target
LOGARITHM = Scale("log", np.log, lambda y: 1 / y, lambda total: total)


@dataclass(frozen=True, eq=False)
class _Scaled:
    """The rows under a scale; those it cannot take are left out."""

    columns: Columns
    wanted: Array  # weighted
    weight: Array


def _scaled(data: Observations, scale: Scale) -> _Scaled | None:
    with np.errstate(all="ignore"):
        slope = scale.slope(data.target)
        kept = np.isfinite(scale.there(data.target)) & np.isfinite(slope) & (slope > 0)
    if kept.mean() < 0.9:
        return None
    rows = data.rows(np.flatnonzero(kept)) if not kept.all() else data
    weight = rows.weight / np.abs(scale.slope(rows.target))
    weight = weight / weight.mean()
    return _Scaled(rows.columns, scale.there(rows.target) * weight, weight)


def product_starts(data: Observations) -> Iterator[Expression]:
    """Products of one factor for each variable."""
    for chosen, solved in _products(data, LOGARITHM):
        yield _product(chosen, solved, 1.0)


def offset_product_starts(data: Observations) -> Iterator[Expression]:
    """A constant plus or minus a product, the constant in a few places outside the target's range."""
    low, high = float(data.target.min()), float(data.target.max())
    for share in OFFSETS:
        for sign, offset in (
            (1.0, low - share * (high - low)),
            (-1.0, high + share * (high - low)),
        ):
            for chosen, solved in _products(data, _beyond(sign, offset))[: KEPT // 3]:
                yield add(free(offset), _product(chosen, solved, sign))


def _products(data: Observations, scale: Scale) -> list[tuple[list[Feature], Array]]:
    rows = _scaled(data, scale)
    if rows is None:
        return []
    features = [factor_features(name, column) for name, column in rows.columns.items()]
    return _separable(rows, features)


def _product(chosen: list[Feature], solved: Array, sign: float) -> Expression:
    parts = [f.build(float(p)) for f, p in zip(chosen, solved[1:], strict=True)]
    return multiply(free(sign * float(np.exp(np.clip(solved[0], -300, 300)))), *parts)


def sum_starts(data: Observations) -> Iterator[Expression]:
    """Sums of one term for each variable, under every scale."""
    for scale in _scales(data):
        rows = _scaled(data, scale)
        if rows is None:
            continue
        features = [term_features(name, column) for name, column in rows.columns.items()]
        for chosen, solved in _separable(rows, features):
            parts = [f.build(float(a)) for f, a in zip(chosen, solved[1:], strict=True)]
            yield scale.back(add(free(float(solved[0])), *parts))


def _separable(rows: _Scaled, features: list[list[Feature]]) -> list[tuple[list[Feature], Array]]:
    """The best combinations of one feature for each variable (or none), with their regressions."""
    curves = [_curve(column) for column in rows.columns.values()]
    options: list[list[Feature | None]] = []
    for place, own in enumerate(features):
        others = [curve for other, curve in enumerate(curves) if other != place]
        options.append([None, *_matched(rows, own, others)])
    return _best_combinations(rows, options)


def _best_combinations(
    rows: _Scaled, options: list[list[Feature | None]]
) -> list[tuple[list[Feature], Array]]:
    """Every combination solved from one Gram matrix; the shortest descriptions of the rows."""
    flat = [feature for own in options for feature in own if feature is not None]
    design = np.column_stack([np.ones(len(rows.weight)), *(f.values for f in flat)])
    design *= rows.weight[:, None]
    norms = np.linalg.norm(design, axis=0)
    gram, seen = (design / norms).T @ (design / norms), (design / norms).T @ rows.wanted
    places = {id(feature): place for place, feature in enumerate(flat, start=1)}
    by_size: dict[int, list[list[Feature]]] = {}
    for combination in product(*options):
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
        for place in np.argsort(length, kind="stable")[:KEPT]:
            answer = solved[place] / norms[index[place]]
            scored.append((float(length[place]), len(scored), group[place], answer))
    scored.sort(key=lambda entry: entry[:2])
    return [(chosen, solved) for _, _, chosen, solved in scored[:KEPT]]


def _matched(rows: _Scaled, own: list[Feature], others: list[Array]) -> list[Feature]:
    """The best feature of each kind, the other variables being smooth curves; best kinds first."""
    if not own:
        return []
    weight = rows.weight[:, None]
    basis, _ = np.linalg.qr(np.column_stack([np.ones(len(weight)), *others]) * weight)
    values = np.column_stack([feature.values for feature in own]) * weight
    values = values - basis @ (basis.T @ values)
    wanted = rows.wanted - basis @ (basis.T @ rows.wanted)
    norms = np.einsum("nk,nk->k", values, values)
    explained = (values.T @ wanted) ** 2 / np.where(norms > 1e-20, norms, np.inf)
    best: dict[str, Feature] = {}
    for place in np.argsort(-explained, kind="stable"):
        feature = own[place]
        # A bare power is one shape with one exponent per term, so several may be kept.
        best.setdefault(feature.kind, feature)
    return list(best.values())[:KEPT_SHAPES]


def _curve(column: Array) -> Array:
    """A flexible basis for an unknown curve of one variable [row, function]."""
    distinct = np.unique(column)
    if len(distinct) <= 8:
        return np.asarray(column[:, None] == distinct[None, 1:], dtype=np.float64)
    scaled = np.log(column) if np.all(column > 0) else column
    scaled = (scaled - scaled.mean()) / scaled.std()
    knots = np.quantile(scaled, [0.2, 0.4, 0.6, 0.8])
    bends = np.clip(scaled[:, None] - knots, 0, None) ** 3
    return np.column_stack([scaled, scaled**2, scaled**3, bends])


def monomial_starts(data: Observations) -> Iterator[Expression]:
    """Sums of one to three products of simple powers or logarithms, with and without a constant."""
    if not all(np.all(column > 0) for column in data.columns.values()):
        return
    library = _monomials(list(data.columns))
    for scale in _scales(data):
        rows = _scaled(data, scale)
        if rows is None:
            continue
        values = np.column_stack([values_of(rows.columns) for _, values_of in library])
        for chosen, constant in _best_sums(values, rows):
            # The coefficients follow from the regression on the chosen monomials.
            design = values[:, chosen]
            if constant:
                design = np.column_stack([design, np.ones(len(design))])
            solved, *_ = np.linalg.lstsq(design * rows.weight[:, None], rows.wanted, rcond=1e-12)
            parts = [
                multiply(free(float(a)), library[place][0])
                for a, place in zip(solved, chosen, strict=False)
            ]
            yield scale.back(add(*parts, free(float(solved[-1])) if constant else ZERO))


def logarithm_starts(data: Observations) -> Iterator[Expression]:
    """The logarithm of every sum of two simple terms, where the terms are few: one variable."""
    if len(data.columns) > 1:
        return
    ((name, column),) = data.columns.items()
    simple = [f for f in term_features(name, column, 0) if f.kind in ("power", "log")]
    terms = [f.build(1.0) for f in simple if np.log(f.values[f.values > 0]).std() < 3]
    span = float(np.ptp(data.target)) or 1.0
    for first, second in combinations([*terms, free(1.0)], 2):
        for share in LOGARITHMS:
            yield multiply(free(span * share), log(add(first, second)))


def _monomials(names: list[str]) -> list[tuple[Expression, Callable[[Columns], Array]]]:
    """Products of powers of at most three variables, and logarithms, as trees and as functions."""
    choices = (-1.0, -0.5, 0.0, 0.5, 1.0) if len(names) > 2 else (-1.0, -0.5, 0.0, 0.5, 1.0, 2.0)
    most = 3 if len(names) <= 4 else 2

    def power(powers: tuple[float, ...]) -> Callable[[Columns], Array]:
        used = [(name, p) for name, p in zip(names, powers, strict=True) if p]
        return lambda columns: np.prod([columns[name] ** p for name, p in used], axis=0)

    def logarithm(name: str) -> Callable[[Columns], Array]:
        return lambda columns: np.log(columns[name])

    found: list[tuple[Expression, Callable[[Columns], Array]]] = []
    for powers in product(choices, repeat=len(names)):
        if 0 < sum(p != 0 for p in powers) <= most:
            # The exponents are free: the fit that follows moves them where they belong.
            parts = [
                raise_to(Variable(name), free(p))
                for name, p in zip(names, powers, strict=True)
                if p
            ]
            found.append((multiply(*parts), power(powers)))
    return found + [(log(Variable(name)), logarithm(name)) for name in names]


def _best_sums(values: Array, rows: _Scaled) -> list[tuple[list[int], bool]]:
    """The pairs and triples of monomials that explain most, for each with and without a constant."""
    found: list[tuple[float, int, list[int], bool]] = []
    weighted, count = values * rows.weight[:, None], len(values)

    def offer(left: float, chosen: list[int], constant: bool) -> None:
        size = len(chosen) + constant
        length = 0.5 * count * np.log(max(left, 1e-16 * total)) + (0.5 * np.log(count) + 3) * size
        found.append((float(length), len(found), chosen, constant))

    for constant in (False, True):
        design, wanted = weighted, rows.wanted
        total = float(wanted @ wanted) + 1e-300
        if constant:
            one = rows.weight / np.linalg.norm(rows.weight)
            design = design - np.outer(one, one @ design)
            wanted = wanted - one * (one @ wanted)
        norms = np.linalg.norm(design, axis=0)
        design = design / np.where(norms > 1e-12 * np.linalg.norm(weighted, axis=0), norms, np.inf)
        gram, seen = design.T @ design, design.T @ wanted
        square = float(wanted @ wanted)
        for place in np.argsort(-(seen**2), kind="stable")[:KEPT]:
            offer(square - float(seen[place]) ** 2, [int(place)], constant)
        with np.errstate(all="ignore"):
            determinant = 1 - gram**2
            explained = (
                seen[:, None] ** 2 + seen[None, :] ** 2 - 2 * gram * np.outer(seen, seen)
            ) / determinant
        explained[(determinant < 1e-6) | np.tri(len(seen), dtype=bool)] = 0.0
        for place in np.argsort(-explained, axis=None, kind="stable")[: 2 * KEPT]:
            i, j = divmod(int(place), len(seen))
            offer(square - float(explained[i, j]), [i, j], constant)
            third, left = _third(design, wanted, [i, j])
            if third is not None:
                offer(left, [i, j, third], constant)
    found.sort(key=lambda entry: entry[:2])
    distinct = {(tuple(sorted(chosen)), constant): None for _, _, chosen, constant in found}
    return [(list(chosen), constant) for chosen, constant in list(distinct)[:KEPT]]


def _third(design: Array, wanted: Array, pair: list[int]) -> tuple[int | None, float]:
    basis, _ = np.linalg.qr(design[:, pair])
    rest = design - basis @ (basis.T @ design)
    wanted = wanted - basis @ (basis.T @ wanted)
    norms = np.linalg.norm(rest, axis=0)
    explained = (rest.T @ wanted) ** 2 / np.where(norms > 1e-3, norms**2, np.inf)
    place = int(np.argmax(explained))
    if explained[place] <= 0:
        return None, 0.0
    return place, float(wanted @ wanted) - float(explained[place])

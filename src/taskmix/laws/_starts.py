"""First guesses at a law, by linear algebra alone.

After a change of scale (logarithm, square, root, reciprocal, exponential) many laws are sums: a product
is one in logarithms, sqrt(n a + 300 T) is one squared. Here are those with one shape for each variable
(`_split.py`), also with the product or the ratio of two variables taken as one, and sums of one to three
products of simple powers, every pair solved exactly from one Gram matrix.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, combinations, product

import numpy as np

from taskmix.laws._evaluate import Array, Columns
from taskmix.laws._expression import ONE, ZERO, Expression, Number, Variable, free, split_number
from taskmix.laws._fit import Observations
from taskmix.laws._normal import add, log, multiply, raise_to, substitute
from taskmix.laws._scales import (
    LOGARITHMS,
    PLAIN,
    PRODUCT,
    Scale,
    ScaledRows,
    scaled_rows,
    scales_beside,
    scales_inside,
    scales_of,
)
from taskmix.laws._shapes import Feature, factor_features, joint_factors, term_features
from taskmix.laws._split import KEPT_COMBINATIONS, curve, levelled, separable

KEPT_SUMS = 6  # sums handed on, for each scale


def monomial_starts(data: Observations) -> Iterator[Expression]:
    """Sums of one to three products of simple powers or logarithms, with and without a constant."""
    if not all(np.all(column > 0) for column in data.columns.values()):
        return
    library = _monomials(list(data.columns))
    for scale in scales_of(data):
        rows = scaled_rows(data, scale)
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


def _best_sums(values: Array, rows: ScaledRows) -> list[tuple[list[int], bool]]:
    """The pairs and triples of monomials that explain most, for each with and without a constant."""
    found: list[tuple[float, int, list[int], bool]] = []
    weighted, count = levelled(values * rows.weight[:, None])[0], len(values)

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
        for place in np.argsort(-(seen**2), kind="stable")[:KEPT_SUMS]:
            offer(square - float(seen[place]) ** 2, [int(place)], constant)
        with np.errstate(all="ignore"):
            determinant = 1 - gram**2
            explained = (
                seen[:, None] ** 2 + seen[None, :] ** 2 - 2 * gram * np.outer(seen, seen)
            ) / determinant
        explained[(determinant < 1e-6) | np.tri(len(seen), dtype=bool)] = 0.0
        for place in np.argsort(-explained, axis=None, kind="stable")[: 2 * KEPT_SUMS]:
            i, j = divmod(int(place), len(seen))
            offer(square - float(explained[i, j]), [i, j], constant)
            third, left = _third(design, wanted, [i, j])
            if third is not None:
                offer(left, [i, j, third], constant)
    found.sort(key=lambda entry: entry[:2])
    distinct = {(tuple(sorted(chosen)), constant): None for _, _, chosen, constant in found}
    # The best, and of each size the best: on a grid of exponents three terms can look better than two.
    by_size: dict[tuple[int, bool], tuple[tuple[int, ...], bool]] = {}
    for chosen, constant in distinct:
        by_size.setdefault((len(chosen), constant), (chosen, constant))
    kept = dict.fromkeys([*list(distinct)[:KEPT_SUMS], *by_size.values()])
    return [(list(chosen), constant) for chosen, constant in kept]


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


MOST_JOINED = 3  # variables, for two of them to be taken as one
MOST_SHARING = 4  # variables, for two of them to share a factor
JOINED = "*"  # no column can have this name in a formula


def product_starts(data: Observations) -> Iterator[Expression]:
    """Products of one factor for each variable."""
    for chosen, solved in _products(data, PRODUCT):
        yield _product(chosen, solved)


def offset_product_starts(data: Observations) -> Iterator[Expression]:
    """A constant plus or minus a product, the constant in a few places outside the target's range."""
    yield from _wrapped_products(data, scales_beside(data))


def inner_product_starts(data: Observations) -> Iterator[Expression]:
    """A product inside a reciprocal, a root, an exponential or a logarithm, beside a constant."""
    yield from _wrapped_products(data, scales_inside(data))


def _wrapped_products(data: Observations, scales: Iterable[Scale]) -> Iterator[Expression]:
    features = _factors(data.columns)
    for scale in scales:
        for chosen, solved in _products(data, scale, features)[: KEPT_COMBINATIONS // 3]:
            yield scale.back(_product(chosen, solved))


def _products(
    data: Observations, scale: Scale, features: list[list[Feature]] | None = None
) -> list[tuple[list[Feature], Array]]:
    rows = scaled_rows(data, scale)
    if rows is None:
        return []
    if features is None or rows.columns is not data.columns:  # some rows were left out
        features = _factors(rows.columns)
    return separable(rows, features)


def _factors(columns: Columns) -> list[list[Feature]]:
    return [factor_features(name, column) for name, column in columns.items()]


def _product(chosen: list[Feature], solved: Array) -> Expression:
    parts = [f.build(float(p)) for f, p in zip(chosen, solved[1:], strict=True)]
    return multiply(free(float(np.exp(np.clip(solved[0], -300, 300)))), *parts)


def joint_starts(data: Observations) -> Iterator[Expression]:
    """The same with the product or the ratio of two variables in their place, as in log(1 + n T)."""
    names = [name for name, column in data.columns.items() if np.all(column > 0)]
    if len(data.columns) > MOST_JOINED:
        return
    for first, second in combinations(names, 2):
        for power in (1.0, -1.0):
            joined = {
                name: column for name, column in data.columns.items() if name not in (first, second)
            }
            joined[JOINED] = data.columns[first] * data.columns[second] ** power
            rows = Observations(joined, data.target, data.weight)
            meant = multiply(Variable(first), raise_to(Variable(second), Number(power)))
            families = (
                product_starts(rows),
                offset_product_starts(rows),
                sum_starts(rows, [PLAIN]),
            )
            for expression in chain(*families):
                yield substitute(expression, _meaning(meant))


def joint_factor_starts(data: Observations) -> Iterator[Expression]:
    """Products in which two variables share a factor, (x + c z)^p or (1 + c x z)^p."""
    names = [name for name, column in data.columns.items() if np.all(column > 0)]
    if len(data.columns) > MOST_SHARING:
        return
    curves = {name: curve(column) for name, column in data.columns.items()}
    own = {name: factor_features(name, column) for name, column in data.columns.items()}
    scaled = [(scale, scaled_rows(data, scale)) for scale in (PRODUCT, *scales_beside(data))]
    for pair in combinations(names, 2):
        others = [name for name in data.columns if name not in pair]
        shared = joint_factors({name: data.columns[name] for name in pair})
        features = [shared, *(own[name] for name in others)]
        stand_ins = [np.hstack([curves[name] for name in pair]), *(curves[n] for n in others)]
        for scale, rows in scaled:
            if rows is None or rows.columns is not data.columns:  # rows were left out
                continue
            for chosen, solved in separable(rows, features, stand_ins)[: KEPT_COMBINATIONS // 3]:
                yield scale.back(_product(chosen, solved))


def _meaning(meant: Expression) -> Callable[[Expression], Expression | None]:
    return lambda node: meant if node == Variable(JOINED) else None


def sum_starts(data: Observations, scales: Sequence[Scale] | None = None) -> Iterator[Expression]:
    """Sums of one term for each variable, under every scale."""
    for scale in scales or scales_of(data):
        rows = scaled_rows(data, scale)
        if rows is None:
            continue
        features = [term_features(name, column) for name, column in rows.columns.items()]
        for chosen, solved in separable(rows, features):
            parts = [f.build(float(a)) for f, a in zip(chosen, solved[1:], strict=True)]
            yield scale.back(add(free(float(solved[0])), *parts))


def logarithm_starts(data: Observations) -> Iterator[Expression]:
    """The logarithm of every sum of two simple terms, where the terms are few: one variable."""
    if len(data.columns) > 1:
        return
    ((name, column),) = data.columns.items()
    simple = [f for f in term_features(name, column, 0) if f.kind in ("power", "log")]
    terms = [f.build(1.0) for f in simple]
    plain = [split_number(term)[1] for term in terms]
    for first, second in combinations([*plain, ONE], 2):  # as they stand: one constant to be solved
        yield multiply(free(1.0), log(add(first, second)))
    span = float(np.ptp(data.target)) or 1.0
    for first, second in combinations([*terms, free(1.0)], 2):
        for share in LOGARITHMS:
            yield multiply(free(span * share), log(add(first, second)))

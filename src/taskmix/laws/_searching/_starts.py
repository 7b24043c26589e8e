"""First guesses at a law, by linear algebra alone.

After a change of scale (logarithm, square, root, reciprocal, exponential) many laws are sums: a product
is one in logarithms, sqrt(n a + 300 T) is one squared. Here are those with one shape for each variable
(`_separable.py`), also with the product or the ratio of two variables taken as one; sums of monomials
are in `_monomials.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, combinations

import numpy as np

from taskmix.laws._fitting import Observations
from taskmix.laws._forms import (
    ONE,
    Array,
    Columns,
    Expression,
    Number,
    Variable,
    add,
    free,
    log,
    multiply,
    raise_to,
    split_number,
    substitute,
)
from taskmix.laws._searching._scales import (
    LOGARITHMS,
    PLAIN,
    PRODUCT,
    Scale,
    scaled_rows,
    scales_beside,
    scales_inside,
    scales_of,
)
from taskmix.laws._searching._separable import KEPT_COMBINATIONS, curve, separable
from taskmix.laws._searching._shapes import Feature, factor_features, joint_factors, term_features

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

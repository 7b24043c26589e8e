"""First guesses at a law, by linear algebra alone.

After a change of scale (logarithm, square, root, reciprocal, exponential) many laws are sums: a product
is one in logarithms, sqrt(n a + 300 T) is one squared. Here are those with one shape for each variable
(`_separable.py`), also with the product or the ratio of two variables taken as one; sums of monomials
are in `_monomials.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain, combinations

import numpy as np

from taskmix.laws._evaluate import Array, Columns
from taskmix.laws._expression import Expression, Number, Variable, free
from taskmix.laws._fit import Observations
from taskmix.laws._normal import add, log, multiply, raise_to, substitute
from taskmix.laws._scales import LOGARITHM, LOGARITHMS, PLAIN, Scale, beyond, scaled_rows, scales_of
from taskmix.laws._separable import KEPT, separable
from taskmix.laws._shapes import Feature, factor_features, term_features

MOST_JOINED = 3  # variables, for two of them to be taken as one
JOINED = "*"  # no column can have this name in a formula
OFFSETS = (0.03, 0.2, 1.0)  # of the constant beside a product, in spans of the target


def product_starts(data: Observations) -> Iterator[Expression]:
    """Products of one factor for each variable."""
    for chosen, solved in _products(data, LOGARITHM):
        yield _product(chosen, solved, 1.0)


def offset_product_starts(data: Observations) -> Iterator[Expression]:
    """A constant plus or minus a product, the constant in a few places outside the target's range."""
    low, high = float(data.target.min()), float(data.target.max())
    features = _factors(data.columns)
    for share in OFFSETS:
        for sign, offset in (
            (1.0, low - share * (high - low)),
            (-1.0, high + share * (high - low)),
        ):
            for chosen, solved in _products(data, beyond(sign, offset), features)[: KEPT // 3]:
                yield add(free(offset), _product(chosen, solved, sign))


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


def _product(chosen: list[Feature], solved: Array, sign: float) -> Expression:
    parts = [f.build(float(p)) for f, p in zip(chosen, solved[1:], strict=True)]
    return multiply(free(sign * float(np.exp(np.clip(solved[0], -300, 300)))), *parts)


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
    span = float(np.ptp(data.target)) or 1.0
    for first, second in combinations([*terms, free(1.0)], 2):
        for share in LOGARITHMS:
            yield multiply(free(span * share), log(add(first, second)))

"""The law search: first guesses, then larger and shorter formulas around the best of them.

Everything is deterministic: no population, no seed. A pool holds every formula fitted so far with its
description length; in each round the shortest descriptions not yet looked at are extended and
simplified, and the search ends when a round brings nothing shorter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from taskmix.laws._evaluate import Array, Columns, Program
from taskmix.laws._expression import Expression, Number, Variable, free
from taskmix.laws._extend import Vocabulary, extensions, replacements
from taskmix.laws._field import field_starts
from taskmix.laws._fit import Fit, Observations, fit_constants
from taskmix.laws._noise import Noise, huber_bound, huber_weights, likeliest_noise, row_weights
from taskmix.laws._normal import multiply, open_key, raise_to
from taskmix.laws._pool import Describer, Pool
from taskmix.laws._shapes import cross_features, factor_features, joint_factors, term_features
from taskmix.laws._split import split_starts
from taskmix.laws._starts import (
    inner_product_starts,
    joint_factor_starts,
    joint_starts,
    logarithm_starts,
    monomial_starts,
    offset_product_starts,
    product_starts,
    sum_starts,
)

Loss = Literal["auto", "squares", "huber"]
SECOND_THOUGHTS = 2  # times that noise and outliers are looked at again with a law at hand
SCREENING_ROWS = 400  # for first guesses and changes; fewer overlook inputs of little effect
COMPARISON_ROWS = 4000  # for comparing formulas; in the end constants are fitted to all rows
REFITTED_STARTS = 40  # first guesses fitted to all these rows
REFITTED_IF_ENOUGH = 5  # the same where one of them is enough already
LADDER_COLUMNS = 3  # at most, in the short products that a front begins with
SIMPLIFIED_PER_ROUND = 16  # formulas simplified in each round
NEIGHBOURED = 5  # forms whose every factor and term is exchanged at the end
NEIGHBOURS = 20  # formulas that are fitted of each


@dataclass(frozen=True, kw_only=True)
class SearchOptions:
    """How far the search goes; the defaults take seconds."""

    rounds: int = 6
    beam: int = 4  # formulas extended in each round
    branches: int = 8  # extensions of each that are fitted


def search_laws(
    columns: Columns,
    target: Array,
    *,
    noise: Noise,
    loss: Loss,
    sample: Array | None,
    options: SearchOptions,
    is_enough: Callable[[Fit], bool] | None,
) -> tuple[list[Fit], Noise]:
    """Formulas for the target, shortest description first, and the noise.

    Where `is_enough` says so of the best formula so far, the search ends there. `sample` is how many
    measurements each row is the mean of.
    """
    kind = likeliest_noise(columns, target, None, sample) if noise == "auto" else noise
    weight = row_weights(columns, target, kind, None, sample)
    data = Observations(columns, target, weight)
    first = _first(data.rows(_few(len(data), SCREENING_ROWS)), is_enough)
    for _ in range(SECOND_THOUGHTS):  # asked again of the best guess at the law, which knows more
        guess = Program(first.ranked()[0][1].expression).values(columns)
        new = likeliest_noise(columns, target, guess, sample) if noise == "auto" else kind
        if new != kind:
            kind, weight = new, row_weights(columns, target, new, guess, sample)
        resisting = _resisting(weight, weight * (guess - target), loss)
        if np.allclose(resisting, data.weight, rtol=0.1):
            break
        data = Observations(columns, target, resisting)
        first = _first(data.rows(_few(len(data), SCREENING_ROWS)), is_enough)
    pool = _pool(data.rows(_few(len(data), COMPARISON_ROWS)))
    count = REFITTED_IF_ENOUGH if first.is_enough(is_enough) else REFITTED_STARTS
    pool.fit(fit.expression for _, fit in first.ranked()[:count])
    if len(data) <= SCREENING_ROWS:  # the first guesses were fitted to all rows already
        for _, fit in first.ranked():
            pool.put(fit)
    if not pool.is_enough(is_enough):
        pool.simplify_best(SIMPLIFIED_PER_ROUND)
        used = pool.ranked()[0][1].expression.variables
        if 0 < len(used) < len(columns):  # fewer columns are searched more closely
            narrow = {name: first.data.columns[name] for name in columns if name in used}
            again = _first(replace(first.data, columns=narrow), is_enough)
            pool.fit(fit.expression for _, fit in again.ranked()[:REFITTED_STARTS])
            pool.simplify_best(SIMPLIFIED_PER_ROUND)
        _grow(pool, first.data, options, is_enough)
        _look_around(pool, first.data)
    if not pool.is_enough(is_enough):
        pool.fit_field_forms(fit for _, fit in first.ranked())
    pool.measure_exponents()
    pool.fit(_ladder(columns))
    return [fit for _, fit in pool.ranked()], kind


def _resisting(weight: Array, deviations: Array, loss: Loss) -> Array:
    """The weights with rows that lie far off weighted down, where Huber's loss is used."""
    if loss == "squares":
        return weight
    bound = huber_bound(deviations, always=loss == "huber")
    return weight if bound == np.inf else weight * np.sqrt(huber_weights(deviations, bound))


def _ladder(columns: Columns) -> Iterator[Expression]:
    """Products of powers of some of the columns: the short laws that a front begins with."""
    names = [name for name, column in columns.items() if np.all(column > 0)]
    for count in range(1, min(len(names), LADDER_COLUMNS) + 1):
        for chosen in combinations(names, count):
            for exponent in (free(0.5), Number(0.5), Number(1.0)):
                powers = (raise_to(Variable(name), exponent) for name in chosen)
                yield multiply(free(1.0), *powers)


def _few(count: int, most: int) -> NDArray[np.int64]:
    """At most so many rows, spread at random but the same each time."""
    return np.sort(np.random.default_rng(0).permutation(count)[:most])


def _pool(data: Observations) -> Pool:
    pool = Pool(data, replace(Describer.of(data), choosing=False))
    pool.put(fit_constants(free(float(np.mean(data.target))), data))
    return pool


def _first(few: Observations, is_enough: Callable[[Fit], bool] | None) -> Pool:
    """The first guesses, fitted to a few rows."""
    pool = _pool(few)
    pool.fit(_ladder(few.columns))
    if pool.is_enough(is_enough):
        return pool
    for family in (
        product_starts,
        offset_product_starts,
        sum_starts,
        monomial_starts,
        logarithm_starts,
        joint_starts,
        joint_factor_starts,
        inner_product_starts,
        field_starts,
    ):
        pool.fit_best_starts(family(few))
        if pool.is_enough(is_enough):
            return pool
    pool.fit_best_starts(split_starts(few, pool.rival, _formulas))
    return pool


def _formulas(data: Observations) -> list[Expression]:
    """First guesses at a part of a law."""
    pool = _first(data, None)
    pool.simplify_best(SIMPLIFIED_PER_ROUND)
    return [fit.expression for _, fit in pool.ranked()]


def _grow(
    pool: Pool,
    few: Observations,
    options: SearchOptions,
    is_enough: Callable[[Fit], bool] | None,
) -> None:
    """Rounds of larger and shorter formulas around the best."""
    words = _vocabulary(few)
    # Few variables have few shapes, and more of them can be tried in the same time.
    count = max(len(pool.ranked()[0][1].expression.variables), 1)
    beam, branches = options.beam + 4 // count, options.branches + 24 // count
    for _ in range(options.rounds):
        before = pool.best
        for fit in pool.unextended(beam):
            for change in (extensions, replacements):
                pool.fit(change(fit.expression, few, words, branches))
        pool.simplify_best(SIMPLIFIED_PER_ROUND)
        if pool.best >= before - 1e-9 or pool.is_enough(is_enough):
            break


def _look_around(pool: Pool, few: Observations) -> None:
    """Fits what differs from one of the best forms by one part: few rows tell such forms apart badly,
    so the true one may be next to them without ever having been the best.
    """
    words = _vocabulary(few)
    forms: dict[str, Fit] = {}
    for _, fit in pool.ranked():
        forms.setdefault(open_key(fit.expression), fit)
    for fit in list(forms.values())[:NEIGHBOURED]:
        pool.fit(replacements(fit.expression, few, words, NEIGHBOURS))
    pool.simplify_best(SIMPLIFIED_PER_ROUND)


def _vocabulary(data: Observations) -> Vocabulary:
    factors, terms = [], []
    for name, column in data.columns.items():
        factors += factor_features(name, column, 8)
        terms += term_features(name, column, 8)
    factors += joint_factors(data.columns)
    return Vocabulary(factors, terms, cross_features(data.columns))

"""Sums of one to three products of simple powers, every pair solved exactly from one Gram matrix."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product

import numpy as np

from taskmix.laws._fitting import Observations
from taskmix.laws._forms import (
    ZERO,
    Array,
    Columns,
    Expression,
    Variable,
    add,
    free,
    log,
    multiply,
    raise_to,
)
from taskmix.laws._searching._level import levelled
from taskmix.laws._searching._scales import ScaledRows, scaled_rows, scales_of

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

"""How far off one law is: on rows held out, on ranges left out in turn, over folds.

A form over groups has the same errors, with constants of groups, so the same rule chooses. Which
constants groups share is decided once, on all rows; means and groups' constants are fitted anew to the
rows that remain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from taskmix.laws._evaluate import Array, Program
from taskmix.laws._factors import GroupFactors
from taskmix.laws._fit import Fit, Observations, fit_constants
from taskmix.laws._law import Errors
from taskmix.laws._pool import Describer
from taskmix.laws._ranges import RangeRows, fits_without, range_deviations, typical_error
from taskmix.laws._sharing import SharedFit, fit_shared, share_further, share_shifts

MOST_JUDGED = 12  # forms, by their length


@dataclass(frozen=True, eq=False)
class JudgedGroups:
    """A form over groups, its errors and its length."""

    judged: JudgedLaw
    shared: SharedFit  # on all rows
    length: float  # nats


def judge_groups(
    fits: Sequence[Fit],
    data: Observations,
    factors: GroupFactors,
    train: NDArray[np.int64],
    held_out: NDArray[np.int64],
    beyond: RangeRows,
    ranges: Sequence[RangeRows],
    describer: Describer,
    *,
    folds: int,
) -> list[JudgedGroups]:
    """Every form that has a value on every row."""
    best: dict[str, tuple[float, SharedFit]] = {}  # of each form, from where it began best
    for fit in fits:
        shared = share_shifts(fit.expression, data, factors)
        # The mean over groups is a law of its own, for groups that were not there.
        if shared is not None and Fit(shared.expression, 0.0).is_usable(data):
            length, key = shared.length(describer), fit.expression.key
            if length < best.get(key, (np.inf, shared))[0]:
                best[key] = (length, shared)
    ranked = [shared for _, shared in sorted(best.values(), key=lambda entry: entry[0])]
    found = []
    for place, shared in enumerate(ranked):
        if place < MOST_JUDGED or len(shared.mixed.mean) <= 2:  # a front begins with short ones
            whole = share_further(shared, data, describer)
            whole = whole if Fit(whole.expression, 0.0).is_usable(data) else shared
            judged = _judged(whole, data, train, held_out, beyond, ranges, folds)
            found.append(JudgedGroups(judged, whole, whole.length(describer)))
    return found


def _judged(
    shared: SharedFit,
    data: Observations,
    train: NDArray[np.int64],
    held_out: NDArray[np.int64],
    beyond: RangeRows,
    ranges: Sequence[RangeRows],
    folds: int,
) -> JudgedLaw:
    noise = shared.row_noise(shared.factors)

    def deviations(aside: NDArray[np.int64]) -> Array:
        return _without(shared, data, aside) - data.target[aside]

    far = np.flatnonzero(beyond.rows)
    off, held = deviations(far), deviations(held_out)
    places = [np.flatnonzero(each.rows) for each in ranges]
    every = [deviations(place) * data.weight[place] / noise[place] for place in places]
    values = shared.values(data.columns, shared.factors)
    plain = Observations(data.columns, data.target, data.weight / noise)
    cross = float("nan")
    if folds:
        fold = np.random.default_rng(0).permutation(len(data)) % folds
        parts = [deviations(np.flatnonzero(fold == each)) for each in range(folds)]
        cross = float(np.mean(np.concatenate(parts) ** 2))
    with np.errstate(all="ignore"):
        errors = Errors(
            train=float(np.mean((values - data.target)[train] ** 2)),
            held_out=float(np.mean(held**2)),
            held_out_r2=float(1 - np.mean(held**2) / (np.var(data.target[held_out]) or 1.0)),
            left_out=float(np.mean(off**2)),
            left_out_relative=float(np.sqrt(np.mean((off / data.target[far]) ** 2))),
            cross=cross,
            ranges=typical_error(every, plain, ranges),
        )
    squares = (data.weight[held_out] / noise[held_out] * held) ** 2
    return JudgedLaw(
        Fit(shared.expression, plain.mean_square(values)), errors, squares, tuple(every)
    )


def _without(shared: SharedFit, data: Observations, aside: NDArray[np.int64]) -> Array:
    """Values of some rows, with constants from the others."""
    rest = np.setdiff1d(np.arange(len(data)), aside)
    fitted: SharedFit | None = shared
    if len(rest) > len(shared.mixed.mean):
        fitted = fit_shared(
            shared.written, data.rows(rest), shared.factors.rows(rest), known=shared
        )
    if fitted is None:
        return np.full(len(aside), np.nan)
    columns = {name: column[aside] for name, column in data.columns.items()}
    return fitted.values(columns, shared.factors.rows(aside))


@dataclass(frozen=True, eq=False)
class JudgedLaw:
    """A law on rows that its constants have not seen."""

    fit: Fit  # on the training rows
    errors: Errors
    held_out: Array  # [held-out row], squares of weighted deviations
    left_out: tuple[Array, ...]  # [range][left-out row], weighted deviations
    without: tuple[Fit, ...] = ()  # [range], constants from the other rows


def judge_law(
    fit: Fit,
    data: Observations,
    train: NDArray[np.int64],
    held_out: NDArray[np.int64],
    beyond: RangeRows,
    ranges: Sequence[RangeRows],
    *,
    folds: int,
) -> JudgedLaw:
    """Errors of a law; `beyond` is the range that is shown on its own, `ranges` are all."""
    aside, far = data.rows(held_out), data.rows(np.flatnonzero(beyond.rows))
    deviations = Program(fit.expression).values(aside.columns) - aside.target
    one, *without = fits_without(fit, data, [beyond, *ranges])
    off = range_deviations([one], data, [beyond])[0] / far.weight
    every = range_deviations(without, data, ranges)
    seen = data.rows(train)
    with np.errstate(all="ignore"):
        errors = Errors(
            train=float(np.mean((Program(fit.expression).values(seen.columns) - seen.target) ** 2)),
            held_out=float(np.mean(deviations**2)),
            held_out_r2=float(1 - np.mean(deviations**2) / (np.var(aside.target) or 1.0)),
            left_out=float(np.mean(off**2)),
            left_out_relative=float(np.sqrt(np.mean((off / far.target) ** 2))),
            cross=_cross(fit, data, folds) if folds else float("nan"),
            ranges=typical_error(every, data, ranges),
        )
    return JudgedLaw(
        fit, errors, aside.losses(aside.weight * deviations), tuple(every), tuple(without)
    )


def _cross(fit: Fit, data: Observations, folds: int) -> float:
    """The mean square over folds, the constants fitted to the others each time."""
    places = np.random.default_rng(0).permutation(len(data)) % folds
    total = 0.0
    for fold in range(folds):
        rest, aside = (
            data.rows(np.flatnonzero(places != fold)),
            data.rows(np.flatnonzero(places == fold)),
        )
        fitted = fit_constants(fit.expression, rest)
        values = Program(fitted.expression).values(aside.columns)
        total += float(np.sum((values - aside.target) ** 2))
    return total / len(data)

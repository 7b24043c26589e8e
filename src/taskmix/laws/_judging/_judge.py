"""How far off one law is: on rows held out, on ranges left out in turn, over folds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from taskmix.laws._fitting import Fit, Observations, fit_constants
from taskmix.laws._forms import Array, Program
from taskmix.laws._judging._law import Errors
from taskmix.laws._judging._ranges import RangeRows, fits_without, range_deviations, typical_error


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
    polish: bool,
) -> JudgedLaw:
    """Errors of a law; `beyond` is the range that is shown on its own, `ranges` are all."""
    aside, far = data.rows(held_out), data.rows(np.flatnonzero(beyond.rows))
    deviations = Program(fit.expression).values(aside.columns) - aside.target
    one, *without = fits_without(fit, data, [beyond, *ranges], refit=polish)
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
            cross=_cross(fit, data, folds, polish=polish) if folds else float("nan"),
            ranges=typical_error(every, data, ranges),
        )
    return JudgedLaw(
        fit, errors, aside.losses(aside.weight * deviations), tuple(every), tuple(without)
    )


def _cross(fit: Fit, data: Observations, folds: int, *, polish: bool) -> float:
    """The mean square over folds, the constants fitted to the others each time."""
    places = np.random.default_rng(0).permutation(len(data)) % folds
    total = 0.0
    for fold in range(folds):
        rest, aside = (
            data.rows(np.flatnonzero(places != fold)),
            data.rows(np.flatnonzero(places == fold)),
        )
        fitted = fit_constants(fit.expression, rest) if polish else fit
        values = Program(fitted.expression).values(aside.columns)
        total += float(np.sum((values - aside.target) ** 2))
    return total / len(data)

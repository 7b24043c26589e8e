r"""Kalman filter and Rauch–Tung–Striebel smoother over many sequences, for one generator.

Sequences without gaps share their gains and covariances and are passed over together; one with
missing numbers has gains of its own and is passed over alone, where what is missing is replaced by
its expectation given the rest and the state.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from taskmix.errors import InputError
from taskmix.sequences._dynamics import _covariances as plain
from taskmix.sequences._dynamics._gaps import filter_one, pass_broken
from taskmix.sequences._dynamics._system import DynamicsStatistics, System, no_statistics
from taskmix.sequences._generator import Floats, compiled
from taskmix.sequences._normal import LOG_TWO_PI

Rows = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Series:
    """Observations minus a common mean, sequence by sequence."""

    values: Floats  # [observation, dimension], NaN where missing
    starts: Rows
    whole: Rows  # sequences without gaps, longest first
    broken: Rows  # the others
    square: Floats  # [sequence, dimension, dimension], Σ y yᵀ of those without gaps
    total: Floats  # [sequence, dimension], Σ y

    @property
    def lengths(self) -> Rows:
        return np.diff(self.starts)


def make_series(values: Floats, starts: Rows) -> Series:
    lengths = np.diff(starts)
    gap = np.isnan(values).any(axis=1)
    count = np.concatenate([[0], np.cumsum(gap)])
    has_gap = np.diff(count[starts]) > 0
    order = np.argsort(-lengths, kind="stable")
    filled = np.where(np.isnan(values), 0.0, values)
    dimension = values.shape[1]
    square = np.zeros((len(lengths), dimension, dimension))
    total = np.zeros((len(lengths), dimension))
    if len(values) and (lengths > 0).all():
        products = filled[:, :, None] * filled[:, None, :]
        square = np.add.reduceat(products, starts[:-1], axis=0)
        total = np.add.reduceat(filled, starts[:-1], axis=0)
    return Series(values, starts, order[~has_gap[order]], np.flatnonzero(has_gap), square, total)


def pass_over(
    system: System, series: Series, weights: Floats | None
) -> tuple[Floats, DynamicsStatistics | None]:
    """Log-likelihoods [sequence] and, with weights, expected sums over those that have any."""
    found = np.full(len(series.lengths), -np.inf)
    chosen = np.ones(len(found), np.bool_) if weights is None else weights > 0
    sums: DynamicsStatistics | None = None
    order = series.whole[chosen[series.whole]]
    if len(order):
        found[order], sums = _pass_whole(system, series, order, weights)
    for row in series.broken[chosen[series.broken]]:
        span = slice(series.starts[row], series.starts[row + 1])
        found[row], part = pass_broken(system, series.values[span])
        if weights is not None:
            part = part * float(weights[row])
            sums = part if sums is None else sums + part
    if weights is not None and sums is None:
        sums = no_statistics(system)
    return found, sums


def predictions(system: System, series: Series) -> tuple[Floats, Floats, Floats]:
    """Before each observation, and once more after the last [prefix, ...]: the mean and covariance of
    the next observation; and how likely each observation was, as logarithms [observation]."""
    rows = series.starts + np.arange(len(series.starts))
    states = len(system.first)
    means, covariances = np.empty((rows[-1], states)), np.empty((rows[-1], states, states))
    logs = np.empty(len(series.values))
    if len(series.whole):
        lengths = series.lengths[series.whole]
        known = _recursions(system, int(lengths[0]) + 1)
        expected = np.repeat(system.first[None], len(series.whole), axis=0)
        for t in range(int(lengths[0]) + 1):
            going = np.searchsorted(-lengths, -t + 1)  # whose length is at least t
            at = rows[series.whole[:going]] + t
            means[at], covariances[at] = expected[:going], known[0][t]
            observing = np.searchsorted(-lengths, -t)
            place = series.starts[series.whole[:observing]] + t
            held, logs[place] = _update(
                system, known, t, expected[:observing], series.values[place]
            )
            expected = held @ system.transition.T
    for row in series.broken:
        span = slice(series.starts[row], series.starts[row + 1])
        steps = filter_one(system, series.values[span])
        inside = slice(rows[row], rows[row + 1])
        means[inside], covariances[inside], logs[span] = steps.predicted, steps.spread, steps.logs
    seen = means @ system.output.T + system.offset
    spread = system.output @ covariances @ system.output.T + system.output_noise
    return seen, spread, logs


def _recursions(system: System, times: int) -> tuple[Floats, ...]:
    kernels = compiled("dynamics")
    try:
        return (kernels or plain).recursions(  # type: ignore[no-any-return]
            np.ascontiguousarray(system.transition),
            np.ascontiguousarray(system.noise),
            np.ascontiguousarray(system.output),
            np.ascontiguousarray(system.output_noise),
            np.ascontiguousarray(system.first_covariance),
            times,
        )
    except np.linalg.LinAlgError:
        raise InputError(
            "The covariances of a linear dynamical system should be positive definite. Found one "
            "that is not: it has too few observations that differ. Raise `smoothing` above 0."
        ) from None


def _update(
    system: System, known: tuple[Floats, ...], t: int, expected: Floats, values: Floats
) -> tuple[Floats, Floats]:
    """Filtered means, and how likely the observations were."""
    _, _, gains, whitening, sizes, _ = known
    away = values - system.offset - expected @ system.output.T
    white = away @ whitening[t].T
    logs = -0.5 * ((white**2).sum(axis=1) + sizes[t] + values.shape[1] * LOG_TWO_PI)
    return expected + away @ gains[t].T, logs


def _pass_whole(
    system: System, series: Series, order: Rows, weights: Floats | None
) -> tuple[Floats, DynamicsStatistics | None]:
    lengths = series.lengths[order]
    known = _recursions(system, int(lengths[0]))
    predicted, held, gains, whitening, sizes, back = known
    shares = np.ones(len(order)) if weights is None else weights[order]
    kernels = compiled("dynamics")
    if kernels is None:
        parts = _pass_means(system, series, order, shares, known)
    else:
        parts = kernels.passes(
            series.values, series.starts, order, shares, system.first,
            np.ascontiguousarray(system.transition), np.ascontiguousarray(system.output),
            system.offset, gains, whitening, sizes, back, weights is not None,
        )  # fmt: skip
        constant = 0.5 * lengths * len(system.offset) * LOG_TWO_PI
        parts = (parts[0] - constant, *parts[1:])
    found, every, cross, made, total, begin, begins, ends = parts
    if weights is None:
        return found, None
    ending = np.bincount(lengths - 1, shares, minlength=len(held))
    spread, spread_first, spread_last, spread_cross = (kernels or plain).smoothed_sums(
        predicted, held, back, ending
    )
    mass, begun = float(shares @ lengths), float(shares.sum())
    states, begins, ends = every + spread, begins + spread_first, ends + spread_last
    return found, DynamicsStatistics(
        begin_mass=np.array(begun),
        begin=begin,
        begins=begins,
        move_mass=np.array(mass - begun),
        before=states - ends,
        after=states - begins,
        cross=cross + spread_cross,
        mass=np.array(mass),
        state=total,
        states=states,
        seen=shares @ series.total[order],
        made=made,
        squares=np.tensordot(shares, series.square[order], axes=1),
    )


def _pass_means(
    system: System, series: Series, order: Rows, shares: Floats, known: tuple[Floats, ...]
) -> tuple[Floats, ...]:
    """What the compiled passes do, in plain NumPy."""
    lengths, first = series.lengths[order], series.starts[order]
    back = known[5]
    count, states = len(series.values), len(system.first)
    expected, held = np.zeros((count, states)), np.zeros((count, states))
    logs = np.zeros(count)
    for t in range(int(lengths[0])):
        at = first[: np.searchsorted(-lengths, -t)] + t
        expected[at] = held[at - 1] @ system.transition.T if t else system.first
        held[at], logs[at] = _update(system, known, t, expected[at], series.values[at])
    smooth = held
    for t in range(int(lengths[0]) - 2, -1, -1):
        at = first[: np.searchsorted(-lengths, -t - 1)] + t
        smooth[at] = held[at] + (smooth[at + 1] - expected[at + 1]) @ back[t].T
    every = np.zeros(count)
    places = np.repeat(first - np.cumsum(lengths) + lengths, lengths) + np.arange(lengths.sum())
    every[places] = np.repeat(shares, lengths)
    moving = np.setdiff1d(places, first)
    weighed = every[:, None] * smooth
    start, end = first, first + lengths - 1
    return (
        np.add.reduceat(logs, series.starts[:-1])[order],
        weighed.T @ smooth,
        weighed[moving].T @ smooth[moving - 1],
        np.nan_to_num(series.values).T @ weighed,
        weighed.sum(axis=0),
        weighed[start].sum(axis=0),
        weighed[start].T @ smooth[start],
        weighed[end].T @ smooth[end],
    )

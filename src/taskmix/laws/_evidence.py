r"""What rows say of a law where its deviations go together, as those of a form that is nearly right do.

    Kennedy and O'Hagan, "Bayesian Calibration of Computer Models", JRSS B 63, 2001, Section 4: what was
    measured is the law plus a smooth discrepancy plus noise,

        y(x) = f(x) + g(x) + noise,   g a Gaussian process of variance λ σ², σ² that of the noise.

Counted as independent, a thousand rows that are off by a smooth curve speak a thousand times for any
formula that bends as the curve does, however long. With g in the likelihood they speak once, for the few
things that the curve says. As in Plumlee, "Bayesian Calibration of Inexact Computer Models", JASA 112,
2017, g is orthogonal to what the law is there to say: here to every trend, that is to the inputs and
their products, or else a law could leave these to g.

λ and the length of g (in ranges of the inputs) are the likeliest of a grid for the deviations of the
law with the shortest description, and the same for all. Where that law does not need them, as where
it is the true one and noise is independent, rows count one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement
from typing import Self

import numpy as np
from numpy.typing import NDArray

from taskmix.laws._evaluate import Array, Columns, Program
from taskmix.laws._fit import Fit, Observations
from taskmix.laws._pool import Describer

MOST_ROWS = 400  # that g is computed on, spread at random: its axes take their number cubed
LENGTHS = (0.05, 0.15, 0.4, 1.0)
RATIOS = np.geomspace(0.03, 300.0, 25)  # λ
# Nats for λ and the likeness: the best of the grid is likelier by less where there is no g.
PRICE = 3.0
LEAST_SERIES, LEAST_IN_SERIES = 6, 3  # series, and rows of each in the mean
NEEDED = 6.0  # nats that g has to save the shortest description beyond that


@dataclass(frozen=True)
class Alike:
    """Which rows g has in common: those near each other, or the rows of one series.

    A series are rows that differ in one input only, as points of one training do in its steps.
    """

    length: float = 0.0  # in ranges of the inputs
    along: str = ""  # the input that varies in a series

    @classmethod
    def possible(cls, columns: Columns) -> list[Alike]:
        """Every length, and every input along which there are series."""
        found = [cls(length=length) for length in LENGTHS]
        for name in columns if len(columns) > 1 else ():
            series = _series(columns, name)
            most = len(series) / LEAST_IN_SERIES
            if LEAST_SERIES <= series.max() + 1 <= most:
                found.append(cls(along=name))
        return found

    def correlation(self, columns: Columns) -> Array:
        """[row, row]"""
        if self.along:
            series = _series(columns, self.along)
            return np.asarray(series[:, None] == series, dtype=np.float64)
        points = _points(columns)
        squares = np.sum((points[:, None] - points) ** 2, axis=2)
        return np.asarray(np.exp(-0.5 * squares / self.length**2))


@dataclass(frozen=True, eq=False)
class SmoothDeviations:
    """Axes of some rows in which noise and g are independent."""

    places: NDArray[np.int64]  # of the rows
    spread: Array  # [axis], variance of noise and g over that of the noise
    axes: Array  # [row, axis]
    rows: int
    ratio: float
    alike: Alike

    @classmethod
    def of(cls, data: Observations, alike: Alike, ratios: Sequence[float]) -> list[Self]:
        """For each λ."""
        places = np.sort(np.random.default_rng(0).permutation(len(data))[:MOST_ROWS])
        columns = {name: column[places] for name, column in data.columns.items()}
        smooth = alike.correlation(columns)
        trend, _ = np.linalg.qr(_trends(_points(columns)))
        smooth = smooth - trend @ (trend.T @ smooth)
        sizes, axes = np.linalg.eigh(smooth - (smooth @ trend) @ trend.T)
        sizes = np.maximum(sizes, 0.0)
        return [cls(places, 1 + each * sizes, axes, len(data), each, alike) for each in ratios]

    @classmethod
    def likeliest(
        cls,
        deviations: Array,  # [row], weighted
        data: Observations,
    ) -> Self:
        """λ and the likeness of rows that make these deviations the likeliest."""
        every = [
            each
            for alike in Alike.possible(data.columns)
            for each in cls.of(data, alike, RATIOS.tolist())
        ]
        nats = [each.nats(deviations[None], data.floor)[0] for each in every]
        return every[int(np.argmin(nats))]

    def nats(
        self,
        deviations: Array,  # [law, row], weighted
        floor: float = 0.0,
    ) -> Array:
        """[law], in place of half the logarithm of the mean square for each row."""
        along = (deviations[:, self.places] @ self.axes) ** 2
        noise = np.maximum(np.mean(along / self.spread, axis=1), floor)
        # A row that is not among them is predicted from them, as each of them from the others.
        further = -np.mean(np.log(self.axes**2 @ (1 / self.spread)))
        volume = np.log(self.spread).sum() + (self.rows - len(self.places)) * further
        return np.asarray(0.5 * (volume + self.rows * np.log(noise)) + PRICE)


@dataclass(frozen=True, eq=False)
class Evidence:
    """How long descriptions of a law and of all rows are, by what is known of its deviations."""

    data: Observations
    describer: Describer
    smooth: SmoothDeviations | None = None  # None where rows are independent

    def lengths(self, fits: Sequence[Fit]) -> list[float]:
        """[law], nats; infinite where a law has no value on some row."""
        squares = np.array([np.mean(_deviations(fit, self.data) ** 2) for fit in fits])
        known = np.flatnonzero(np.isfinite(squares))
        if self.smooth is not None and len(known):
            off = np.array([_deviations(fits[place], self.data) for place in known.tolist()])
            nats = self.smooth.nats(off, self.data.floor)
            squares[known] = np.exp(2 * nats / len(self.data))
        return [
            self.describer.length(fit.expression, float(square))
            for fit, square in zip(fits, squares, strict=True)
        ]

    def without(self, rows: NDArray[np.bool_]) -> Evidence:
        """The same of the other rows alone."""
        rest = self.data.rows(np.flatnonzero(~rows))
        describer = replace(self.describer, rows=len(rest))
        if self.smooth is None:
            return Evidence(rest, describer)
        (smooth,) = SmoothDeviations.of(rest, self.smooth.alike, [self.smooth.ratio])
        return Evidence(rest, describer, smooth)


def evidence_of(fits: Sequence[Fit], data: Observations, describer: Describer) -> Evidence:
    """Whether the first of the fits, the shortest description, leaves deviations that go together."""
    off = _deviations(fits[0], data)
    if not data.floor < float(np.mean(off**2)) < np.inf:
        return Evidence(data, describer)
    smooth = SmoothDeviations.likeliest(off, data)
    # On the same rows: by chance others are off by a little more or less, and there may be many.
    alone = 0.5 * len(data) * np.log(np.mean(off[smooth.places] ** 2))
    saved = alone - float(smooth.nats(off[None], data.floor)[0])
    return Evidence(data, describer, smooth if saved > NEEDED else None)


def _deviations(fit: Fit, data: Observations) -> Array:
    """[row], weighted, those far off as Huber's loss counts them; infinite without a value."""
    values = Program(fit.expression).values(data.columns)
    with np.errstate(all="ignore"):
        off = data.weight * (values - data.target)
        if data.bound < np.inf:
            off = np.sign(off) * np.sqrt(data.losses(off))
    return np.where(np.isfinite(off), off, np.inf)


def _series(columns: Columns, along: str) -> NDArray[np.int64]:
    """[row], the number of the series, whose rows differ in one input only."""
    others = np.column_stack([column for name, column in columns.items() if name != along])
    return np.asarray(np.unique(others, axis=0, return_inverse=True)[1].ravel())


def _points(columns: Columns) -> Array:
    """[row, input], in ranges of the inputs, by logarithm where they are positive."""
    scaled = [np.log(c) if np.all(c > 0) else c for c in columns.values()]
    return np.column_stack([(c - c.min()) / (np.ptp(c) or 1.0) for c in scaled])


def _trends(points: Array) -> Array:
    """[row, trend], the constant, the inputs and their products."""
    count = points.shape[1]
    pairs = combinations_with_replacement(range(count), 2)
    products = [points[:, one] * points[:, other] for one, other in pairs]
    return np.column_stack([np.ones(len(points)), points, *products])

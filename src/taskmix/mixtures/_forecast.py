"""A forecast: every metric of every mixture, as a mean, as equally likely laws and with intervals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from taskmix.errors import InputError
from taskmix.mixtures._laws._effective import EffectiveDataLaw, FittedEffectiveData
from taskmix.mixtures._laws._exponential import ExponentialLaw
from taskmix.mixtures._laws._law import FittedMixtureLaw, MixtureLaw
from taskmix.mixtures._laws._log_linear import LogLinearLaw
from taskmix.mixtures._laws._process import DrawnProcess, FittedProcess, ProcessLaw
from taskmix.mixtures._left_out_runs import (
    Calibration,
    MixtureNoise,
    calibrate,
    choose_laws,
    fit_noise,
    fold_of_run,
    mixture_of_run,
    stack_weights,
)
from taskmix.mixtures._table import Floats, MixtureTable

FOLDS = 5
LEAST_RUNS = 8
WASTED = 1e-6  # of a budget: less is none


class Forecast(Protocol):
    """What a mixture will give.

    Shares [mixture, domain] may sum to less than 1: the rest of the budget teaches nothing. Values are
    in the table's units, so that those in `table.larger_is_better` rise as they get better.
    """

    @property
    def table(self) -> MixtureTable:
        """The runs it rests on, all of one size."""

    def predict(self, shares: Floats) -> Floats:
        """[mixture, metric], expected."""

    def draws(self, shares: Floats) -> Floats:
        """[draw, mixture, metric]: equally likely laws without noise, the same ones in every call."""

    def noise(self, shares: Floats) -> Floats:
        """[mixture, metric], the standard deviation of a run around its law."""

    def interval(self, shares: Floats, level: float = 0.9) -> tuple[Floats, Floats]:
        """Where the metrics of a run on each mixture will lie, [mixture, metric] twice."""


def usual_laws() -> tuple[MixtureLaw, ...]:
    """Those that a forecast stacks unless others are named.

    >>> [law.name for law in usual_laws()][:2]
    ['effective data', 'effective data with cross-terms']
    """
    return (
        EffectiveDataLaw(),
        EffectiveDataLaw(crossed=True),
        ExponentialLaw(),
        LogLinearLaw(),
    )


@dataclass(frozen=True, eq=False)
class LeftOutRuns:
    """Every run as laws fitted without it predict it."""

    predicted: Floats  # [run, metric]
    deviation: Floats  # [run, metric], of a run around it, as it is calibrated
    low: Floats  # [run, metric], of the interval that should hold 90 %
    high: Floats


@dataclass(eq=False)
class StackedForecast:
    """Laws and a Gaussian process, weighted by what they say of runs that were left out."""

    table: MixtureTable
    names: tuple[str, ...]  # of the laws; the process is the last
    weights: Floats  # [metric, law]
    fitted: tuple[FittedMixtureLaw, ...]
    process: FittedProcess
    drawn: DrawnProcess
    chosen: NDArray[np.int64]  # [draw, metric], the law that a draw follows
    mixture_noise: MixtureNoise
    calibration: Calibration
    left_out: LeftOutRuns

    @property
    def laws(self) -> dict[str, float]:
        """The laws, by name, and how much each counts in the mean over metrics."""
        return dict(zip(self.names, self.weights.mean(axis=0).tolist(), strict=True))

    def _each(self, shares: Floats) -> Floats:
        """Losses [law, mixture, metric]."""
        totals = shares.sum(axis=1, keepdims=True)
        whole = shares / np.maximum(totals, 1e-12)
        found = np.stack([law.predict(whole) for law in self.fitted])
        wasted = totals[:, 0] < 1 - WASTED
        if wasted.any():
            # What less data costs is known from the law of data alone.
            data = next(law for law in self.fitted if isinstance(law, FittedEffectiveData))
            found[:, wasted] += data.predict(shares[wasted]) - data.predict(whole[wasted])
        return found

    def _losses(self, each: Floats) -> Floats:
        return np.asarray(np.einsum("lnm,ml->nm", each, self.weights))

    def predict(self, shares: Floats) -> Floats:
        return self._losses(self._each(shares)) * self.table.signs

    def draws(self, shares: Floats) -> Floats:
        followed = self._each(shares)[self.chosen, :, np.arange(len(self.table.metrics))]
        deviations = self.calibration.factors * self.drawn.deviations(_whole(shares))
        return (followed.transpose(0, 2, 1) + deviations) * self.table.signs

    def noise(self, shares: Floats) -> Floats:
        predicted = self._losses(self._each(shares))
        noise = self.mixture_noise.deviation(_whole(shares), predicted)
        return self.calibration.factors * noise

    def interval(self, shares: Floats, level: float = 0.9) -> tuple[Floats, Floats]:
        each = self._each(shares)
        middle = self._losses(each)
        claimed = _claimed(each, middle, self.weights, self.process, self.mixture_noise, shares)
        reach = self.calibration.reach(level) * self.calibration.factors * claimed
        middle = middle * self.table.signs
        return middle - reach, middle + reach


def _whole(shares: Floats) -> Floats:
    return np.asarray(shares / np.maximum(shares.sum(axis=1, keepdims=True), 1e-12))


def _claimed(
    each: Floats,
    middle: Floats,
    weights: Floats,
    process: FittedProcess,
    noise: MixtureNoise,
    shares: Floats,
) -> Floats:
    """The deviation of a run around the forecast, before it is calibrated, [mixture, metric]."""
    whole = _whole(shares)
    apart = np.einsum("lnm,ml->nm", (each - middle) ** 2, weights)
    own = noise.deviation(whole, middle) ** 2
    return np.asarray(np.sqrt(process.deviation(whole) ** 2 + apart + own))


def forecast_mixtures(
    table: MixtureTable,
    *,
    laws: Sequence[MixtureLaw] | None = None,
    draws: int = 64,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,  # folds done, of all
) -> StackedForecast:
    """Laws fitted to runs of one size and stacked by what they say of runs that are left out.

    A Gaussian process is always among them: its uncertainty is the forecast's, scaled so that as many
    runs that were left out lie inside intervals as should.

    >>> shares = np.random.default_rng(0).dirichlet(np.ones(3), 40)
    >>> table = MixtureTable(
    ...     domains=("web", "code", "books"), metrics=("loss",), runs=tuple(map(str, range(40))),
    ...     shares=shares, values=1 + (0.1 + shares @ [[0.1], [0.5], [2.0]]) ** -0.5,
    ... )
    >>> forecast = forecast_mixtures(table)
    >>> low, high = forecast.interval(np.eye(3))
    >>> bool((low < forecast.predict(np.eye(3))).all())
    True
    """
    _check(table)
    kinds = usual_laws() if laws is None else tuple(laws)
    if not any(isinstance(law, EffectiveDataLaw) for law in kinds):
        kinds = (EffectiveDataLaw(), *kinds)
    losses = table.values * table.signs
    shares = table.shares
    count = min(FOLDS, int(mixture_of_run(shares).max()) + 1)
    folds = fold_of_run(shares, count, seed)
    each = np.full((len(kinds) + 1, *losses.shape), np.nan)
    sure = np.full_like(losses, np.nan)
    own = np.full_like(losses, np.nan)
    for fold in range(count):
        if progress is not None:
            progress(fold, count + 1)
        left, seen = folds == fold, folds != fold
        fitted = [law.fit(shares[seen], losses[seen], seed=seed) for law in kinds]
        process, noise = _fit_process(shares[seen], losses[seen], seed)
        each[:, left] = np.stack([law.predict(shares[left]) for law in (*fitted, process)])
        sure[left] = process.deviation(shares[left])
        own[left] = noise.deviation(shares[left], each[-1, left])
    weights = stack_weights(each, losses)
    middle = np.einsum("lnm,ml->nm", each, weights)
    apart = np.einsum("lnm,ml->nm", (each - middle) ** 2, weights)
    claimed = np.sqrt(sure**2 + apart + own**2)
    calibration = calibrate(losses - middle, claimed)
    if progress is not None:
        progress(count, count + 1)
    process, noise = _fit_process(shares, losses, seed)
    random = np.random.default_rng((seed, 1))
    deviation = calibration.factors * claimed
    reach = calibration.reach(0.9) * deviation
    middle = middle * table.signs
    return StackedForecast(
        table=table,
        names=(*(law.name for law in kinds), ProcessLaw().name),
        weights=weights,
        fitted=(*(law.fit(shares, losses, seed=seed) for law in kinds), process),
        process=process,
        drawn=process.draw(draws, seed=seed),
        chosen=choose_laws(weights, draws, random),
        mixture_noise=noise,
        calibration=calibration,
        left_out=LeftOutRuns(middle, deviation, middle - reach, middle + reach),
    )


def _fit_process(shares: Floats, losses: Floats, seed: int) -> tuple[FittedProcess, MixtureNoise]:
    """The process, and the noise around it; where that varies, the process is fitted again with it."""
    process = ProcessLaw().fit(shares, losses, seed=seed)
    predicted, sure = process.left_out()
    noise = fit_noise(shares, predicted, sure, losses, process.noise)
    if noise.varies:
        relative = noise.relative(shares, predicted)
        process = ProcessLaw().fit(shares, losses, seed=seed, noise=relative)
    return process, noise


def _check(table: MixtureTable) -> None:
    if len(table) < LEAST_RUNS:
        raise InputError(
            f"A forecast of mixtures should rest on {LEAST_RUNS} runs or more. Found {len(table)}. "
            "Train more, for instance with `taskmix swarm`."
        )
    if int(mixture_of_run(table.shares).max()) + 1 < 3:
        raise InputError(
            "A forecast of mixtures should rest on runs of three different mixtures or more. Found "
            f"{int(mixture_of_run(table.shares).max()) + 1}. Vary the shares."
        )
    if table.sizes is not None and len(table.known_sizes) > 1:
        raise InputError(
            "A forecast of mixtures should rest on models of one size. Found "
            f"{len(table.known_sizes)} sizes. Take one with `table.of_size(...)`."
        )
    empty = [
        name
        for name, row in zip(table.metrics, table.values.T, strict=True)
        if np.isfinite(row).sum() < 3
    ]
    if empty:
        raise InputError(
            f"Each metric should be known for three runs or more. Found fewer for `{empty[0]}`. Leave "
            "it out."
        )

"""The forecast that an answer rests on, and how good it is on runs that it has not seen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.stats import spearmanr

from taskmix.errors import InputError
from taskmix.mixtures._forecast import Forecast, forecast_mixtures
from taskmix.mixtures._learning._document import LeftOutMetric
from taskmix.mixtures._left_out_runs import fold_of_run
from taskmix.mixtures._optimum._target import MixtureTarget
from taskmix.mixtures._scales._at_size import forecast_at_size
from taskmix.mixtures._table import Floats, MixtureTable

Tell = Callable[[str], None]
Fit = Callable[[MixtureTable], Forecast]
FOLDS = 5
FOLDS_OF_SIZES = 3  # where each takes a fit of every size
LEVEL = 0.9  # of every interval of this package
FEWEST = 4  # runs from which a correlation says anything


def fit_mixtures(
    table: MixtureTable, *, size: float | None, fit: Fit | None, seed: int, tell: Tell
) -> tuple[Forecast, PredictedRuns, tuple[str, ...]]:
    """Laws of the runs, of one size or at `size`; what they say of runs left out; and remarks."""
    if table.sizes is not None:
        size = size_asked(table, size)
        tell("fitting laws of several sizes")
        at_size = forecast_at_size(table, size, seed=seed)
        tell("predicting runs that were not seen")
        left_out = predict_left_out_at_size(
            table, size, at_size, lambda part: forecast_at_size(part, size, seed=seed), seed=seed
        )
        return at_size, left_out, at_size.remarks

    def progress(done: int, total: int) -> None:
        tell(f"fitting laws ({done + 1} of {total})")

    fit = fit or partial(forecast_mixtures, seed=seed, progress=progress)
    forecast = fit(table)
    tell("predicting runs that were not seen")
    return forecast, predict_left_out(forecast, fit, seed=seed), ()


def size_asked(table: MixtureTable, size: float | None) -> float:
    """The size that the answer is for: the one that was named, or the largest."""
    return table.known_sizes[-1] if size is None else size


def check_asked_size(table: MixtureTable, size: float | None) -> None:
    """Refuses a size where nothing says of which size the runs are."""
    if size is not None and table.sizes is None:
        raise InputError(
            "`size` should come with a column that says the size of each run's model. Found none. Name "
            "it in `size_column`, or leave `size` out.",
            arguments=("size", "size_column"),
        )


@dataclass(frozen=True, eq=False)
class PredictedRuns:
    """Runs as they were predicted without them."""

    table: MixtureTable  # the runs, as they came out
    predicted: Floats  # [run, metric]
    low: Floats
    high: Floats


def predict_left_out(
    forecast: Forecast,
    fit: Callable[[MixtureTable], Forecast],
    *,
    folds: int = FOLDS,
    seed: int = 0,
) -> PredictedRuns:
    """The forecast's own predictions where it kept them; otherwise those of fits of the other folds."""
    kept = getattr(forecast, "left_out", None)
    if kept is not None:
        return PredictedRuns(forecast.table, kept.predicted, kept.low, kept.high)
    return refit_without(forecast.table, np.ones(len(forecast.table), dtype=bool), fit, folds, seed)


def predict_left_out_at_size(
    table: MixtureTable,
    size: float,
    forecast: Forecast,
    fit: Callable[[MixtureTable], Forecast],
    *,
    folds: int = FOLDS_OF_SIZES,
    seed: int = 0,
) -> PredictedRuns:
    """Runs of one size, each predicted without all runs on its mixture, of any size.

    Without runs of that size, those of others as they would have been there.
    """
    assert table.sizes is not None
    asked = table.sizes == size
    if asked.sum() < FEWEST:
        return predict_left_out(
            forecast, lambda part: forecast_mixtures(part, seed=seed), seed=seed
        )
    return refit_without(table, asked, fit, folds, seed)


def refit_without(
    table: MixtureTable,
    asked: NDArray[np.bool_],  # [run], which are to be predicted
    fit: Callable[[MixtureTable], Forecast],
    folds: int,
    seed: int,
) -> PredictedRuns:
    """Those runs, each by a fit of the folds that it is not in."""
    predicted, low, high = (np.full(table.values.shape, np.nan) for _ in range(3))
    fold_of = fold_of_run(table.shares, min(folds, len(table) // 2), seed)
    for fold in np.unique(fold_of[asked]):
        here = (fold_of == fold) & asked
        partial = fit(table.only(fold_of != fold))
        shares = table.shares[here]
        predicted[here] = partial.predict(shares)
        low[here], high[here] = partial.interval(shares, LEVEL)
    return PredictedRuns(table.only(asked), predicted[asked], low[asked], high[asked])


def judge_left_out(
    left: PredictedRuns, forecast: Forecast, target: MixtureTarget
) -> tuple[LeftOutMetric, ...]:
    """The target first, then every metric."""
    table = left.table
    noise = np.median(forecast.noise(table.shares), axis=0)
    nothing = np.full(len(table), np.nan)
    rows = []
    if target.metric is None and len(table.metrics) > 1:  # one metric is the target itself
        predicted, observed = (target.of(each, table) for each in (left.predicted, table.values))
        rows.append(_judge("target", table, predicted, observed, nothing, nothing, float("nan")))
    for place, name in enumerate(table.metrics):
        predicted, observed, low, high = (
            each[:, place] for each in (left.predicted, table.values, left.low, left.high)
        )
        rows.append(_judge(name, table, predicted, observed, low, high, float(noise[place])))
    if target.metric is not None:
        rows.sort(key=lambda row: row.name != target.metric)
    return tuple(rows)


def _judge(
    name: str,
    table: MixtureTable,
    predicted: Floats,
    observed: Floats,
    low: Floats,
    high: Floats,
    noise: float,
) -> LeftOutMetric:
    known = np.isfinite(predicted) & np.isfinite(observed)
    predicted, observed, low, high = (each[known] for each in (predicted, observed, low, high))
    has_ends = np.isfinite(low) & np.isfinite(high)
    inside = (observed >= low) & (observed <= high)
    return LeftOutMetric(
        name=name,
        larger_is_better=name in table.larger_is_better,
        runs=tuple(run for run, there in zip(table.runs, known, strict=True) if there),
        predicted=_numbers(predicted),
        observed=_numbers(observed),
        low=_numbers(low),
        high=_numbers(high),
        rank_correlation=_rank_correlation(predicted, observed),
        r_squared=_r_squared(predicted, observed),
        coverage=float(inside[has_ends].mean()) if has_ends.any() else float("nan"),
        error=float(np.sqrt(np.mean((predicted - observed) ** 2))) if known.any() else float("nan"),
        noise=noise,
    )


def _rank_correlation(predicted: Floats, observed: Floats) -> float:
    """Spearman's; NaN where there are too few runs, or nothing varies."""
    if len(predicted) < FEWEST or np.ptp(predicted) == 0 or np.ptp(observed) == 0:
        return float("nan")
    return float(spearmanr(predicted, observed).statistic)


def _r_squared(predicted: Floats, observed: Floats) -> float:
    if len(observed) < FEWEST or np.ptp(observed) == 0:
        return float("nan")
    left = ((observed - predicted) ** 2).sum()
    return float(1 - left / ((observed - observed.mean()) ** 2).sum())


def _numbers(values: Floats) -> tuple[float, ...]:
    return tuple(float(value) for value in values)

"""What a repeated token is worth, estimated from runs that repeated data.

For each value of a grid the runs' shares become what they teach (`effective_tokens`), a forecast is
fitted to some of the runs, and the others are predicted. The value that predicts best is the estimate.
Its interval comes from resampling runs: metrics of a run err together, so that counting each as
evidence of its own would make it too narrow. It does not know of a law of the wrong form, which can
move the estimate as well.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from taskmix.errors import InputError, ShapeError
from taskmix.mixtures._forecasting import Forecast, forecast_mixtures
from taskmix.mixtures._optimum._limits import MixtureLimits
from taskmix.mixtures._optimum._repetition import PUBLISHED_WORTH, effective_tokens
from taskmix.mixtures._table import Floats, MixtureTable
from taskmix.numerics import check_level, normal_quantile

WORTHS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0)
RESAMPLES = 400
FEWEST = 8  # runs, to be split into those fitted and those predicted


@dataclass(frozen=True, kw_only=True)
class LearnedRepetition:
    """The R of `effective_tokens` that runs point to.

    `known` is False where runs cannot tell: then `worth` is the published 15.4, and the interval is the
    whole grid.

    >>> found = LearnedRepetition(
    ...     worth=15.4, low=0.5, high=128.0, known=False, worths=(0.5, 128.0), errors=(1.0, 1.0),
    ...     words="What a repeated token is worth cannot be told from these runs.",
    ... )
    >>> MixtureLimits(repetition=found.worth).repetition
    15.4
    """

    worth: float
    low: float
    high: float
    known: bool
    worths: tuple[float, ...]  # the grid
    errors: tuple[float, ...]  # mean squared error of runs left out, in variances of their metrics
    words: str


def learn_repetition(
    table: MixtureTable,
    tokens: Floats,  # [run], how many tokens each run read
    supply: Mapping[str, float],  # tokens at hand, by domain
    *,
    worths: Sequence[float] = WORTHS,
    folds: int = 5,
    level: float = 0.9,
    seed: int = 0,
    fit: Callable[[MixtureTable], Forecast] | None = None,  # None: `forecast_mixtures`
) -> LearnedRepetition:
    """What repeated tokens are worth, by how well runs that were left out are predicted.

    Runs that read fewer tokens than the longest count as if the rest had taught nothing, so that runs
    of several lengths may be in one table.

    >>> table = MixtureTable(
    ...     domains=("web", "code"), metrics=("loss",), runs=tuple("abcdefgh"),
    ...     shares=np.array([[place / 8, 1 - place / 8] for place in range(8)]),
    ...     values=np.arange(8.0)[:, None],
    ... )
    >>> found = learn_repetition(table, np.full(8, 10.0), {"web": 20, "code": 20})
    >>> found.known, found.words
    (False, 'What a repeated token is worth cannot be told: no run read any domain twice.')
    """
    check_level(level)
    _check(table, tokens, worths, folds)
    at_hand = MixtureLimits(supply=supply, budget=1.0).supply_of(table.domains)
    read = table.shares * tokens[:, None]
    if (read <= at_hand).all():
        return _unknown(worths, np.ones(len(worths)), "no run read any domain twice")
    fit = fit or (lambda part: forecast_mixtures(part, draws=2, seed=seed))
    generator = np.random.default_rng(seed)
    fold_of = generator.permutation(len(table)) % folds

    def errors_at(values: Sequence[float] | Floats) -> Floats:
        tables = (replace(table, shares=_taught(read, at_hand, worth)) for worth in values)
        return np.array([_errors_left_out(each, fold_of, fit) for each in tables])

    errors = errors_at(worths)
    best = int(errors.mean(axis=1).argmin())
    # Between the neighbours of the best it is looked at again, more closely.
    around = worths[max(best - 1, 0) : best + 2]
    near = np.concatenate([np.geomspace(*pair, 4)[1:-1] for pair in pairwise(around)])
    every = np.concatenate([worths, near])
    order = np.argsort(every)
    return _conclude(
        every[order], np.concatenate([errors, errors_at(near)])[order], level, generator
    )


def _conclude(
    worths: Floats,
    errors: Floats,  # [worth, run]
    level: float,
    generator: np.random.Generator,
) -> LearnedRepetition:
    means = errors.mean(axis=1)
    best = int(means.argmin())
    ends = [_is_worse(errors[end] - errors[best], level) for end in (0, -1)]
    if not any(ends):
        reason = "all values predict the runs that were left out about equally well"
        return _unknown(worths.tolist(), means, reason)
    drawn = generator.integers(0, errors.shape[1], size=(RESAMPLES, errors.shape[1]))
    again = np.sort([_lowest(worths, errors[:, rows].mean(axis=1)) for rows in drawn])
    low, high = np.quantile(again, [0.5 - level / 2, 0.5 + level / 2])
    worth = _lowest(worths, means)
    # An end of the grid that is as good as the best is no bound: what is beyond was not looked at.
    low, high = float(low if ends[0] else worths[0]), float(high if ends[1] else worths[-1])
    low, high = min(low, worth), max(high, worth)
    between = f"{100 * level:.0f} % interval {low:.3g} to {high:.3g}"
    if not all(ends):
        between += ", whose " + ("lower" if not ends[0] else "upper") + " end is that of the search"
    return LearnedRepetition(
        worth=worth,
        low=low,
        high=high,
        known=True,
        worths=tuple(worths.tolist()),
        errors=tuple(means.tolist()),
        words=f"Repetition is worth about {worth:.3g} passes of new text at the most ({between}; "
        f"published: {PUBLISHED_WORTH}).",
    )


def _errors_left_out(
    table: MixtureTable, fold_of: Floats, fit: Callable[[MixtureTable], Forecast]
) -> Floats:
    """[run], the squared error of its metrics when it was left out, each in units of its variance."""
    predicted = np.full(table.values.shape, np.nan)
    for fold in np.unique(fold_of):
        out = fold_of == fold
        predicted[out] = fit(table.only(~out)).predict(table.shares[out])
    spread = np.nanvar(table.values, axis=0)
    spread = np.where(spread > 0, spread, 1.0)
    squared = (predicted - table.values) ** 2 / spread
    measured = np.isfinite(squared)
    return np.asarray(
        np.where(measured, squared, 0.0).sum(axis=1) / np.maximum(measured.sum(axis=1), 1)
    )


def _taught(read: Floats, at_hand: Floats, worth: float) -> Floats:
    return effective_tokens(read, at_hand, worth) / read.sum(axis=1).max()


def _is_worse(differences: Floats, level: float) -> bool:
    """Whether the mean is above 0 by more than chance, at the level of a two-sided interval."""
    error = float(differences.std(ddof=1)) / np.sqrt(len(differences))
    return bool(differences.mean() > normal_quantile(level) * error)


def _lowest(worths: Floats, means: Floats) -> float:
    """Where a parabola through the lowest place and its neighbours is lowest, on a log scale."""
    place = int(means.argmin())
    if place in (0, len(worths) - 1):
        return float(worths[place])
    logs, near = np.log(worths[place - 1 : place + 2]), means[place - 1 : place + 2]
    bend, slope, _ = np.polyfit(logs - logs[1], near, 2)
    if not bend > 0:
        return float(worths[place])
    return float(np.exp(np.clip(logs[1] - slope / (2 * bend), logs[0], logs[2])))


def _unknown(worths: Sequence[float], means: Floats, reason: str) -> LearnedRepetition:
    return LearnedRepetition(
        worth=PUBLISHED_WORTH,
        low=float(min(worths)),
        high=float(max(worths)),
        known=False,
        worths=tuple(float(worth) for worth in worths),
        errors=tuple(float(mean) for mean in means),
        words=f"What a repeated token is worth cannot be told: {reason}.",
    )


def _check(table: MixtureTable, tokens: Floats, worths: Sequence[float], folds: int) -> None:
    if tokens.shape != (len(table),) or not (np.isfinite(tokens) & (tokens > 0)).all():
        raise ShapeError(
            "`tokens` should have one number above 0 for each run, how many tokens it read. Found "
            f"shape {tokens.shape} for {len(table)} runs."
        )
    if len(table) < FEWEST or not 2 <= folds <= len(table):
        raise InputError(
            f"Repetition should be learned from at least {FEWEST} runs in at least 2 folds. Found "
            f"{len(table)} runs and {folds} folds.",
            arguments=("folds",),
        )
    rising = worths[0] > 0 and all(a < b for a, b in pairwise(worths))
    if len(worths) < 3 or not rising:
        raise InputError(
            f"`worths` should be at least three values above 0, each above the last. Found {worths}.",
            arguments=("worths",),
        )

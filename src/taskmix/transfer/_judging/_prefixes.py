r"""The number of sources by measurement: a few prefixes of the order of effects, on the dev set.

    Li, Nguyen and Zhang, "Identification of Negative Transfers in Multitask Learning Using
    Surrogate Models", TMLR 2023: γ of $\{i : \hat\theta_n(i) < \gamma\}$, chosen by what it leads
    to.

Every γ gives a prefix of the sources in the order of their effects, so there are k + 1 selections
in all. The few that the surrogate predicts best are trained, and the best measured one is taken.
This guards against the surrogate's being right about the order and wrong about the level.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from taskmix.errors import InputError, OptionError, ShapeError
from taskmix.numerics import Interval, paired_interval
from taskmix.transfer._judging._selection import Selection, make_selection
from taskmix.transfer._surrogates import LinearSurrogate


@dataclass(frozen=True, kw_only=True)
class PrefixChoice:
    """The best measured prefix."""

    selection: Selection
    sizes: tuple[int, ...]  # of the prefixes that were measured
    means: NDArray[np.float64]  # [prefix], losses over the finished seeds; NaN where all failed
    # The best minus the second best, paired by seed; where it includes zero, either may be the better.
    lead: Interval | None
    failed: int  # runs left out


def best_prefixes(
    surrogate: LinearSurrogate, *, count: int = 4, with_single: bool = True
) -> NDArray[np.bool_]:
    """[prefix, source], the `count` prefixes of least predicted loss, smallest first.

    `with_single` adds the empty one, the target alone, where it is not among them.

    >>> runs = np.concatenate([np.zeros((1, 3)), np.eye(3)])  # the target alone, then with each source
    >>> sources = ["news", "tweets", "code"]
    >>> table = gather_outcomes(runs, [1.0, 0.8, 0.9, 1.3], target="reviews", sources=sources)
    >>> surrogate = fit_linear_surrogate(table)
    >>> best_prefixes(surrogate, count=1).astype(int)  # none, and the two with effects below zero
    array([[0, 0, 0],
           [1, 1, 0]])
    """
    if count < 1:
        raise OptionError(f"`count` should be at least 1 prefix. Found {count}.")
    order = np.argsort(surrogate.effects, kind="stable")
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    every = rank < np.arange(len(order) + 1)[:, None]
    best = np.argsort(surrogate.predict(every), kind="stable")[:count]
    sizes = sorted({*best.tolist(), *([0] if with_single else [])})
    return np.asarray(every[sizes])


def choose_prefix(
    surrogate: LinearSurrogate,
    prefixes: ArrayLike,  # [prefix, source]
    measured: ArrayLike,  # [prefix, seed], the target's dev outcome; NaN where a run failed
    *,
    higher_is_better: bool = False,
    level: float = 0.95,
) -> PrefixChoice:
    """The prefix of least mean loss over the seeds; of equals the one with fewer sources.

    >>> runs = np.concatenate([np.zeros((1, 3)), np.eye(3)])  # the target alone, then with each source
    >>> sources = ["news", "tweets", "code"]
    >>> table = gather_outcomes(runs, [1.0, 0.8, 0.9, 1.3], target="reviews", sources=sources)
    >>> surrogate = fit_linear_surrogate(table)
    >>> measured = [[0.9, 1.1], [0.7, 0.8]]  # two seeds alone, two with news
    >>> choice = choose_prefix(surrogate, [[0, 0, 0], [1, 0, 0]], measured)
    >>> choice.selection.sources, choice.means
    (('news',), array([1.  , 0.75]))
    """
    members = np.asarray(prefixes, dtype=np.bool_)
    table = np.asarray(measured, dtype=np.float64)
    if table.ndim != 2 or members.shape != (len(table), len(surrogate.sources)):
        raise ShapeError(
            "`measured` should be [prefix, seed] and `prefixes` [prefix, source] with the "
            f"{len(surrogate.sources)} sources. Found shapes {table.shape} and {members.shape}."
        )
    losses = np.where(np.isfinite(table), -table if higher_is_better else table, np.nan)
    finished = np.isfinite(losses)
    if not finished.any():
        raise InputError(
            f"At least one prefix of target `{surrogate.target}` should have a finished run. Found that "
            f"all {table.size} failed. See their records for the reason and run them again."
        )
    totals = np.where(finished, losses, 0.0).sum(axis=1)
    runs = finished.sum(axis=1)
    means = np.where(runs > 0, totals / np.maximum(runs, 1), np.nan)
    sizes = members.sum(axis=1)
    order = [int(place) for place in np.lexsort([sizes, means]) if runs[place]]
    best = order[0]
    lead = None
    if len(order) > 1:
        both = finished[best] & finished[order[1]]
        if both.any():
            lead = paired_interval(losses[best, both], losses[order[1], both], level)
    return PrefixChoice(
        selection=make_selection(
            surrogate,
            members[best],
            rule="measured prefixes",
            threshold=_threshold_of(surrogate.effects, members[best]),
        ),
        sizes=tuple(int(size) for size in sizes),
        means=means,
        lead=lead,
        failed=int((~finished).sum()),
    )


def select_by_prefixes(
    surrogate: LinearSurrogate,
    measure: Callable[[tuple[str, ...]], ArrayLike],  # sources to the target's outcomes, [seed]
    *,
    count: int = 4,
    higher_is_better: bool = False,
    level: float = 0.95,
) -> PrefixChoice:
    """The same, with a function that trains the target with sources and returns its dev outcomes.

    >>> runs = np.concatenate([np.zeros((1, 3)), np.eye(3)])  # the target alone, then with each source
    >>> sources = ["news", "tweets", "code"]
    >>> table = gather_outcomes(runs, [1.0, 0.8, 0.9, 1.3], target="reviews", sources=sources)
    >>> surrogate = fit_linear_surrogate(table)
    >>> choice = select_by_prefixes(surrogate, lambda sources: [1.0 - 0.1 * len(sources)], count=2)
    >>> choice.selection.sources  # of none, one and two sources, as trained
    ('news', 'tweets')
    """
    prefixes = best_prefixes(surrogate, count=count)
    measured = [
        np.atleast_1d(np.asarray(measure(_source_names(surrogate, row)), dtype=np.float64))
        for row in prefixes
    ]
    if len({len(values) for values in measured}) > 1:
        raise ShapeError(
            "`measure` should return one outcome for each seed, the same seeds every time. Found "
            f"{[len(values) for values in measured]}. Return NaN for a run that failed."
        )
    return choose_prefix(
        surrogate, prefixes, np.stack(measured), higher_is_better=higher_is_better, level=level
    )


def _source_names(surrogate: LinearSurrogate, members: NDArray[np.bool_]) -> tuple[str, ...]:
    order = np.argsort(surrogate.effects, kind="stable")
    return tuple(surrogate.sources[place] for place in order if members[place])


def _threshold_of(effects: NDArray[np.float64], kept: NDArray[np.bool_]) -> float | None:
    """A γ that gives this prefix, midway between the last kept effect and the next."""
    inside, outside = effects[kept], effects[~kept]
    if len(inside) == 0 or len(outside) == 0:
        return None
    return float(inside.max() + outside.min()) / 2

r"""Which sources to train with the target: by a threshold on their effects, or by a few measurements.

    Li, Nguyen and Zhang, "Identification of Negative Transfers in Multitask Learning Using
    Surrogate Models", TMLR 2023, "Selecting source tasks by thresholding": $S^\star = \arg\min_S
    1_S^\top \hat\theta_n = \{i : \hat\theta_n(i) < \gamma\}$.

The paper's rule makes g(S) least. A sum is least when it has in it all terms below zero and no
others, so γ is 0 for `effects`, which are changes from the target alone; for the paper's own
coefficients, which have f(∅)/α more in each, the same rule is γ = f(∅)/α. (The paper's words
"positive coefficients" beside that equation are a slip: f is a loss.) Theorem 2 promises another γ,
one that separates related from unrelated sources wherever zero is; `select_two_groups` looks for it
in the effects themselves.

Every γ gives a prefix of the sources in the order of their effects, so there are k + 1 selections
in all. The few that the surrogate predicts best are trained, and the best measured one is taken.
This guards against the surrogate's being right about the order and wrong about the level.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from taskmix.errors import InputError, OptionError, ShapeError
from taskmix.transfer._linear import LinearSurrogate


@dataclass(frozen=True, kw_only=True)
class Selection:
    """The sources to train with a target, and why."""

    target: str
    sources: tuple[str, ...]  # the kept ones, most helpful first
    kept: NDArray[np.bool_]  # [source], among all
    rule: str
    threshold: float | None  # the paper's γ, of effects relative to the target alone
    predicted: float  # the loss the surrogate predicts for them


def select_below(surrogate: LinearSurrogate, threshold: float = 0.0) -> Selection:
    """The paper's rule: the sources with an effect below γ; 0 makes the predicted loss least.

    >>> runs = np.concatenate([np.zeros((1, 3)), np.eye(3)])  # the target alone, then with each source
    >>> sources = ["news", "tweets", "code"]
    >>> table = gather_outcomes(runs, [1.0, 0.8, 0.9, 1.3], target="reviews", sources=sources)
    >>> surrogate = fit_linear_surrogate(table)
    >>> select_below(surrogate).sources  # effects are −0.2, −0.1 and 0.3
    ('news', 'tweets')
    """
    if not math.isfinite(threshold):
        raise OptionError(f"`threshold` should be a number. Found {threshold}.")
    kept = surrogate.effects < threshold  # "Selecting source tasks by thresholding": S*
    return make_selection(surrogate, kept, rule="threshold", threshold=threshold)


def select_two_groups(surrogate: LinearSurrogate) -> Selection:
    """The sources of the lower of two groups of effects, γ midway between the groups.

    The groups are those of least squared distance to their own means, found exactly. There are
    always two, also where nothing separates them; the verdicts say whether they differ from zero.

    >>> runs = np.concatenate([np.zeros((1, 3)), np.eye(3)])  # the target alone, then with each source
    >>> sources = ["news", "tweets", "code"]
    >>> table = gather_outcomes(runs, [1.0, 0.8, 0.9, 1.3], target="reviews", sources=sources)
    >>> surrogate = fit_linear_surrogate(table)
    >>> round(select_two_groups(surrogate).threshold, 6)  # effects are −0.2, −0.1 and 0.3
    0.1
    """
    order = np.sort(surrogate.effects)
    count = np.arange(1, len(order))
    below, total = np.cumsum(order)[:-1], float(order.sum())
    # The sum of squares between the groups, up to a constant, when the first `count` are the lower.
    between = below**2 / count + (total - below) ** 2 / (len(order) - count)
    last = int(between.argmax())
    threshold = float(order[last] + order[last + 1]) / 2
    kept = surrogate.effects <= order[last]  # the middle of neighbouring numbers may be either
    return make_selection(surrogate, kept, rule="two groups", threshold=threshold)


def make_selection(
    surrogate: LinearSurrogate, kept: NDArray[np.bool_], *, rule: str, threshold: float | None
) -> Selection:
    """A selection with its names in order."""
    places = np.flatnonzero(kept)
    places = places[np.argsort(surrogate.effects[places], kind="stable")]
    return Selection(
        target=surrogate.target,
        sources=tuple(surrogate.sources[place] for place in places),
        kept=kept,
        rule=rule,
        threshold=threshold,
        predicted=float(surrogate.predict(kept)),
    )


@dataclass(frozen=True, kw_only=True)
class PrefixChoice:
    """The best measured prefix."""

    selection: Selection
    sizes: tuple[int, ...]  # of the prefixes that were measured
    means: NDArray[np.float64]  # [prefix], losses over the finished seeds; NaN where all failed
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
    return PrefixChoice(
        selection=make_selection(
            surrogate,
            members[best],
            rule="measured prefixes",
            threshold=_threshold_of(surrogate.effects, members[best]),
        ),
        sizes=tuple(int(size) for size in sizes),
        means=means,
        failed=int((~finished).sum()),
    )


def _threshold_of(effects: NDArray[np.float64], kept: NDArray[np.bool_]) -> float | None:
    """A γ that gives this prefix, midway between the last kept effect and the next."""
    inside, outside = effects[kept], effects[~kept]
    if len(inside) == 0 or len(outside) == 0:
        return None
    return float(inside.max() + outside.min()) / 2

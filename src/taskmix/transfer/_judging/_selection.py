r"""Which sources to train with the target: by a threshold, or by the least predicted loss.

    Li, Nguyen and Zhang, "Identification of Negative Transfers in Multitask Learning Using
    Surrogate Models", TMLR 2023, "Selecting source tasks by thresholding": $S^\star = \arg\min_S
    1_S^\top \hat\theta_n = \{i : \hat\theta_n(i) < \gamma\}$.

The paper's rule makes g(S) least. A sum is least when it has in it all terms below zero and no
others, so γ is 0 for `effects`, which are changes from the target alone; for the paper's own
coefficients, which have f(∅)/α more in each, the same rule is γ = f(∅)/α. (The paper's words
"positive coefficients" beside that equation are a slip: f is a loss.) Theorem 2 promises another γ,
one that separates related from unrelated sources wherever zero is; `select_two_groups` looks for it
in the effects themselves.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from taskmix.errors import OptionError
from taskmix.transfer._surrogates import LinearSurrogate, Surrogate

MOST_ENUMERATED = 16  # sources of which all subsets are tried; each more doubles time and memory


@dataclass(frozen=True, kw_only=True)
class Selection:
    """The sources to train with a target, and why."""

    target: str
    sources: tuple[str, ...]  # the kept ones, most helpful first where effects are known
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


def select_least_loss(
    surrogate: Surrogate,
    *,
    largest: int | None = None,  # how many sources at most; all
) -> Selection:
    """The subset of least predicted loss, for a surrogate of any kind.

    All subsets are tried for up to 16 sources; beyond, sources are added, dropped and exchanged one
    at a time while that helps, starting from none.

    >>> runs = np.concatenate([np.zeros((1, 3)), np.eye(3)])  # the target alone, then with each source
    >>> sources = ["news", "tweets", "code"]
    >>> table = gather_outcomes(runs, [1.0, 0.8, 0.9, 1.3], target="reviews", sources=sources)
    >>> surrogate = fit_linear_surrogate(table)
    >>> chosen = select_least_loss(surrogate, largest=1)
    >>> chosen.sources, round(chosen.predicted, 6)
    (('news',), 0.8)
    """
    count = len(surrogate.sources)
    most = count if largest is None else largest
    if not 0 <= most <= count:
        raise OptionError(f"`largest` should lie between 0 and {count} sources. Found {most}.")
    if count <= MOST_ENUMERATED:
        numbers = np.arange(1 << count)[:, None] >> np.arange(count)
        subsets = (numbers & 1).astype(np.bool_)
        subsets = subsets[subsets.sum(axis=1) <= most]
        subsets = subsets[np.argsort(subsets.sum(axis=1), kind="stable")]  # ties: fewer sources
        kept = subsets[int(surrogate.predict(subsets).argmin())]
    else:
        kept = _search_nearby(surrogate, most)
    return make_selection(surrogate, kept, rule="least predicted loss", threshold=None)


def make_selection(
    surrogate: Surrogate, kept: NDArray[np.bool_], *, rule: str, threshold: float | None
) -> Selection:
    """A selection with its names in order."""
    places = np.flatnonzero(kept)
    if isinstance(surrogate, LinearSurrogate):
        places = places[np.argsort(surrogate.effects[places], kind="stable")]
    return Selection(
        target=surrogate.target,
        sources=tuple(surrogate.sources[place] for place in places),
        kept=kept,
        rule=rule,
        threshold=threshold,
        predicted=float(surrogate.predict(kept)),
    )


def _search_nearby(surrogate: Surrogate, most: int) -> NDArray[np.bool_]:
    count = len(surrogate.sources)
    one, other = np.triu_indices(count, k=1)
    flips = np.eye(count, dtype=np.bool_)
    flips = np.concatenate([flips, flips[one] | flips[other]])
    here = np.zeros(count, dtype=np.bool_)
    reached = float(surrogate.predict(here))
    while True:
        near = here ^ flips
        losses = surrogate.predict(near)
        losses[near.sum(axis=1) > most] = np.inf
        best = int(losses.argmin())
        if not losses[best] < reached - 1e-12 * abs(reached):
            return here
        here, reached = near[best], float(losses[best])

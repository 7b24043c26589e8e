"""Two sizes of model in one table that does not say so.

A larger model is better in every metric, whatever the mixture. So what a plain regression on the
mixture leaves of each run falls into two groups, the same ones in every metric. The groups are found by
splitting the mean of what is left, then sharpened by fitting the regression again with a column for the
group.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from taskmix.mixtures._table import Floats, MixtureTable

FEWEST_RUNS = 10
SMALLEST_PART = 0.08  # of the runs, and three of them; fewer are outliers
FEWEST_METRICS = 3  # one loss alone also falls into two groups, with and without its own domain
# Standard deviations within the groups between their means; more with few metrics. A uniform column,
# halved,
# has 3.5. On random parts of 512 real runs of one size, these alarm less than once in 1,000 times.
APART, APART_BY_METRIC = 5.0, 8.0
APART_IN_EACH = 1.0  # in single metrics
AGREEING = 0.9  # of the metrics have to show the same groups
PENALTIES = np.logspace(-3, 4, 15)
RUNS_PER_INPUT = 4  # at least: a regression that follows every run leaves groups of its own making
ROUNDS = 8  # of assigning runs and fitting; groups that are there settle in two or three


@dataclass(frozen=True, kw_only=True)
class TwoSizes:
    """Runs that look like those of two sizes.

    >>> TwoSizes(better=("b",), worse=("a", "c"), apart=12.0).words
    'This looks like two sizes of model in one table: ...'
    """

    better: tuple[str, ...]  # runs
    worse: tuple[str, ...]
    apart: float  # standard deviations

    @property
    def words(self) -> str:
        """One sentence, and what to do."""
        count = len(self.better)
        return (
            f"This looks like two sizes of model in one table: whatever the mixture, {count} "
            f"{'run is' if count == 1 else 'runs are'} better than the other {len(self.worse)} in all "
            f"metrics, by {self.apart:.0f} standard deviations, with none in between. Give the size of "
            "each run (--size-column)."
        )


def suspect_two_sizes(table: MixtureTable) -> TwoSizes | None:
    """Whether runs fall into two groups in all metrics at once, given their mixtures.

    >>> shares = np.array([[x, 1 - x] for x in np.linspace(0, 1, 20)])
    >>> larger = np.arange(20) % 3 == 0
    >>> table = MixtureTable(
    ...     domains=("web", "code"), metrics=("a", "b", "c"), runs=tuple(map(str, range(20))),
    ...     shares=shares, values=3 - shares[:, [0, 1, 1]] - 2.0 * larger[:, None],
    ... )
    >>> found = suspect_two_sizes(table)
    >>> found is not None and found.better
    ('0', '3', '6', '9', '12', '15', '18')
    """
    losses = table.values * table.signs
    whole = np.flatnonzero(~np.isnan(losses).any(axis=1))
    if len(table.known_sizes) > 1 or len(whole) < FEWEST_RUNS:
        return None
    groups = _split(table.shares[whole], losses[whole])
    if groups is None:
        return None
    is_better, apart = groups
    return TwoSizes(
        better=tuple(table.runs[place] for place in whole[is_better]),
        worse=tuple(table.runs[place] for place in whole[~is_better]),
        apart=apart,
    )


def _split(shares: Floats, losses: Floats) -> tuple[NDArray[np.bool_], float] | None:
    """Which runs are better, and how far apart the groups are; None where there are no two groups."""
    losses = losses[:, losses.std(axis=0) > 0]
    if losses.shape[1] < FEWEST_METRICS:
        return None
    losses = losses / losses.std(axis=0)
    inputs = _inputs(shares)
    is_better = _lower_group(_ridge(inputs, losses)[0].mean(axis=1))
    for _ in range(ROUNDS):
        if min(is_better.sum(), (~is_better).sum()) < max(3, SMALLEST_PART * len(losses)):
            return None
        left, step = _with_groups(inputs, losses, is_better)
        scale = np.maximum(left.std(axis=0), 1e-9)
        score = ((left + step * is_better[:, None]) / scale).mean(axis=1)
        before, is_better = is_better, _lower_group(score)
        if (before == is_better).all():
            break
    within = np.sqrt((score[is_better].var() + score[~is_better].var()) / 2)
    apart = float((score[~is_better].mean() - score[is_better].mean()) / max(within, 1e-9))
    agree = float((-step / scale >= APART_IN_EACH).mean())
    needed = APART + APART_BY_METRIC / losses.shape[1]
    return (is_better, apart) if apart >= needed and agree >= AGREEING else None


def _inputs(shares: Floats) -> Floats:
    """[run, input], standardised: a low power, as losses fall steeply where a domain is hardly there."""
    inputs = np.maximum(shares, 0.0) ** 0.3
    inputs = inputs[:, inputs.std(axis=0) > 1e-9]
    return np.asarray((inputs - inputs.mean(axis=0)) / inputs.std(axis=0))


def _ridge(inputs: Floats, losses: Floats) -> tuple[Floats, Floats]:
    """Each run against the regression on the others [run, metric], and coefficients [input, metric].

    The penalty is the one that leaves the least.
    """
    centred = losses - losses.mean(axis=0)
    columns, lengths, turned = np.linalg.svd(inputs, full_matrices=False)
    inside = columns.T @ centred
    best, lowest = (centred, np.zeros((inputs.shape[1], losses.shape[1]))), np.inf
    for penalty in PENALTIES:
        kept = lengths**2 / (lengths**2 + penalty)
        if kept.sum() > len(losses) / RUNS_PER_INPUT:
            continue
        own = (columns**2) @ kept + 1 / len(losses)
        left = (centred - columns @ (kept[:, None] * inside)) / (1 - own)[:, None]
        if (left**2).sum() < lowest:
            lowest = float((left**2).sum())
            slopes = (lengths / (lengths**2 + penalty))[:, None] * inside
            best = (left, turned.T @ slopes)
    return best


def _with_groups(
    inputs: Floats, losses: Floats, is_better: NDArray[np.bool_]
) -> tuple[Floats, Floats]:
    """What is left with a step between the groups, and the step [metric]."""
    # The step is not shrunk: it is taken out of both sides before the ridge sees them.
    column = is_better - is_better.mean()
    column = column / np.sqrt((column**2).sum())
    without = inputs - np.outer(column, column @ inputs)
    left, coefficients = _ridge(without, losses - np.outer(column, column @ losses))
    rest = losses - inputs @ coefficients
    return left, np.asarray(rest[is_better].mean(axis=0) - rest[~is_better].mean(axis=0))


def _lower_group(score: Floats) -> NDArray[np.bool_]:
    """The lower of the two groups with the least variance within them."""
    order = np.sort(score)
    count = np.arange(1, len(order))
    low = np.cumsum(order)[:-1] / count
    high = (order.sum() - np.cumsum(order)[:-1]) / count[::-1]
    between = count * count[::-1] * (high - low) ** 2
    cut = int(np.argmax(between))
    return np.asarray(score <= (order[cut] + order[cut + 1]) / 2)

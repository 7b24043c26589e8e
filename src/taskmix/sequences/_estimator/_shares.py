r"""What a few sequences of a new task say of its shares, with intervals.

The variational posterior counts a sequence that two generators explain alike as half a sequence of
each, and is too sure of itself where many are like that. So shares are drawn from the true posterior

$$p(\theta \mid x) \propto \mathrm{Dir}(\theta; \alpha)\,\prod_j \sum_k \theta_k P_k(x_j)$$

with θ integrated out: sequence by sequence, many draws side by side pick its generator given those of
the sequences before, and are weighted by how well they foresaw it (Kong, Liu and Wong, "Sequential
Imputations and Bayesian Missing Data Problems", JASA 1994), with some sweeps of Gibbs sampling at the
end. Given how many sequences each generator has, θ is Dirichlet. The generators stay as they are, so the
intervals are of θ alone.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace

import numpy as np

from taskmix.numerics import Interval, mean_interval
from taskmix.sequences._generator import Floats

_CELLS = 1 << 25  # numbers that are gone over in a sweep: more sequences, fewer draws
_FEWEST, _MOST = 256, 4096  # draws
_SWEEPS = 5


@dataclass(frozen=True, eq=False)
class TaskShares:
    """Shares of tasks from a few sequences each; see `SequenceMixture.estimate_shares`.

    >>> model = SequenceMixture(Markov(smoothing=0.1), 2, alpha=0.1, random_state=0)
    >>> _ = model.fit(["aaa", "aa", "bb", "bbb"], ["x", "x", "y", "y"])
    >>> few, more = (model.estimate_shares(["aaa"] * n, ["new"] * n, random_state=0) for n in (2, 20))
    >>> bool((more.high - more.low).max() < (few.high - few.low).max())
    True
    """

    tasks: tuple[Hashable, ...]
    counts: tuple[int, ...]  # [task], sequences
    mean: Floats  # [task, generator], of the posterior
    low: Floats  # [task, generator]
    high: Floats
    level: float
    log_likelihood: tuple[Interval, ...]
    """Of each task, for one symbol of a sequence that its shares were not estimated from; NaN where
    the task has one sequence only."""

    def rows(self) -> list[dict[str, object]]:
        """A row for each task, as `taskmix sequences adapt` writes it."""
        return [
            {
                "task": task,
                "sequences": self.counts[place],
                "shares": self.mean[place].tolist(),
                "low": self.low[place].tolist(),
                "high": self.high[place].tolist(),
                "log_likelihood": self.log_likelihood[place].mean,
                "log_likelihood_low": self.log_likelihood[place].low,
                "log_likelihood_high": self.log_likelihood[place].high,
            }
            for place, task in enumerate(self.tasks)
        ]


def draw_shares(
    log_likelihood: Floats,  # [sequence, generator], of one task
    alpha: Floats,  # [generator]
    generator: np.random.Generator,
) -> Floats:
    """[draw, generator], shares from their posterior."""
    likelihood = np.exp(log_likelihood - log_likelihood.max(axis=1, keepdims=True))
    size, kinds = likelihood.shape
    draws = int(np.clip(_CELLS // (size * kinds), _FEWEST, _MOST))
    every = np.arange(draws)
    counts = np.zeros((draws, kinds))  # of each draw, sequences by generator
    picked = np.zeros((size, draws), np.int32)
    weights = np.zeros(draws)  # logarithms

    def pick(row: int) -> Floats:
        rising = np.cumsum(likelihood[row] * (counts + alpha), axis=1)
        points = generator.random(draws) * rising[:, -1]
        picked[row] = (rising[:, :-1] < points[:, None]).sum(axis=1)
        counts[every, picked[row]] += 1
        return np.asarray(rising[:, -1])

    for row in range(size):
        weights += np.log(pick(row))
        shares = np.exp(weights - weights.max())
        shares /= shares.sum()
        if row == size - 1 or 1 / (shares**2).sum() < draws / 2:
            points = (np.arange(draws) + generator.random()) / draws
            kept = np.minimum(np.searchsorted(np.cumsum(shares), points), draws - 1)
            counts, picked[: row + 1] = counts[kept], picked[: row + 1, kept]
            weights[:] = 0.0
    for _ in range(_SWEEPS):
        for row in range(size):
            counts[every, picked[row]] -= 1
            pick(row)
    theta = np.maximum(generator.standard_gamma(alpha + counts), 1e-300)
    return np.asarray(theta / theta.sum(axis=1, keepdims=True))


def interval_for_symbol(
    log_likelihood: Floats,  # [sequence]
    symbols: Floats,  # [sequence]
    level: float,
    *,
    most: float,  # that it can be: 0 for probabilities
) -> Interval:
    """Of Σ log-likelihood / Σ symbols, by the delta method for a ratio of means."""
    ratio = log_likelihood.sum() / symbols.sum()
    found = mean_interval(ratio + (log_likelihood - ratio * symbols) / symbols.mean(), level)
    return replace(found, high=min(found.high, most))

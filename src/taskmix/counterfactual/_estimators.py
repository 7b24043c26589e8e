r"""What a policy would have earned on the logged trajectory, with a standard error.

    Glover and Hokamp, "Task Selection Policies for Multitask Learning", 2019, Eqs. 10 and 11.
    Swaminathan and Joachims, "The Self-Normalized Estimator for Counterfactual Learning", 2015.
    Farajtabar, Chow and Ghavamzadeh, "More Robust Doubly Robust Off-policy Evaluation", 2018.

The paper's $\hat V_{IS}$ is `importance_sampling`, its $\hat V_{WIS}$ is `weighted_importance_sampling`,
its $Z$ is `weight_mean`. Each estimator is $v_0 + \sum_t (\alpha_{a_t} r_t - \beta_{a_t})/\pi_t$ up to
terms of second order, which is why one formula gives every standard error (the delta method), and the
same formula with the differences of α and β gives that of a paired comparison.

All of it holds for the states of the logged runs only. Training under another policy would have
visited other states, and no estimator that reads the log alone can see them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from taskmix.counterfactual._statistics import LogStatistics


@dataclass(frozen=True, slots=True)
class Influence:
    """An estimator as a sum over rows."""

    value: NDArray[np.float64]  # [...]
    alpha: NDArray[np.float64]  # [..., task], of r/π
    beta: NDArray[np.float64]  # [..., task], of 1/π


Estimator = Callable[[LogStatistics, NDArray[np.float64]], Influence]


def importance_sampling(statistics: LogStatistics, policies: NDArray[np.float64]) -> Influence:
    """Eq. 10: unbiased, and the noisiest; moves with a constant added to all rewards.

    >>> log = sum_log([0, 1], [1.0, 3.0], [0.5, 0.5], task_count=2)
    >>> importance_sampling(log, np.array([0.25, 0.75])).value.item()  # (0.5 * 1 + 1.5 * 3) / 2
    2.5
    """
    alpha = policies / statistics.rows[..., None]  # p/T, so that Eq. 10 is Σ α A
    return Influence((alpha * statistics.reward).sum(axis=-1), alpha, np.zeros_like(alpha))


def weighted_importance_sampling(
    statistics: LogStatistics, policies: NDArray[np.float64]
) -> Influence:
    """Eq. 11, the paper's choice: divided by the mean weight, for less variance and a little bias.

    >>> log = sum_log([0, 0, 1], [1.0, 1.0, 3.0], [0.5, 0.5, 0.25], task_count=2)
    >>> policy = np.array([0.5, 0.5])  # so the rows weigh 1, 1 and 2
    >>> weighted_importance_sampling(log, policy).value.item()  # (1 * 1 + 1 * 1 + 2 * 3) / 4
    2.0
    >>> importance_sampling(log, policy).value.round(4).item()  # ... / 3
    2.6667
    """
    totals = (policies * statistics.weight).sum(axis=-1)  # T Z
    value = (policies * statistics.reward).sum(axis=-1) / totals  # Eq. 11
    alpha = policies / totals[..., None]
    return Influence(value, alpha, alpha * value[..., None])


def hajek(statistics: LogStatistics, policies: NDArray[np.float64]) -> Influence:
    """Divides task by task, for less variance still; the value is Σ p A/B.

    >>> log = sum_log([0, 0, 1], [1.0, 1.0, 3.0], [0.5, 0.5, 0.5], task_count=2)
    >>> hajek(log, np.array([0.5, 0.5])).value.item()  # 0.5 * 1 + 0.5 * 3
    2.0
    """
    tried = statistics.visits > 0
    alpha = np.where(tried, policies / np.where(tried, statistics.weight, 1.0), 0.0)
    means = np.where(tried, statistics.means, 0.0)
    return Influence((policies * means).sum(axis=-1), alpha, alpha * means)


def doubly_robust(
    statistics: LogStatistics,
    policies: NDArray[np.float64],
    *,
    baseline: NDArray[np.float64] | None = None,  # [task], a reward for each task known beforehand
) -> Influence:
    """Importance sampling of what a constant for each task leaves unexplained.

    Unbiased whatever the `baseline`. Without one, the constants are those of least variance, means of
    the rewards weighted by (1 − π)/π², of which the sums are (D − A)/(E − B).

    >>> log = sum_log([0, 0, 1], [1.0, 1.0, 3.0], [0.5, 0.5, 0.5], task_count=2)
    >>> known = np.array([1.0, 3.0])  # what the tasks earn, so that nothing is left to weigh
    >>> doubly_robust(log, np.array([0.5, 0.5]), baseline=known).value.item()
    2.0
    """
    if baseline is None:
        spread = statistics.weight_squared - statistics.weight
        # Where all probabilities are one there is nothing to weight by, nor any variance.
        usable = spread > 1e-12 * statistics.weight_squared
        best = (statistics.reward_weight - statistics.reward) / np.where(usable, spread, 1.0)
        baseline = np.where(usable, best, np.nan_to_num(statistics.means))
    alpha = policies / statistics.rows[..., None]
    rest = alpha * (statistics.reward - baseline * statistics.weight)
    value = (policies * baseline).sum(axis=-1) + rest.sum(axis=-1)
    return Influence(value, alpha, alpha * baseline)

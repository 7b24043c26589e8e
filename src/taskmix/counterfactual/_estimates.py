r"""Values of policies with their standard errors and intervals, from the sums of a log.

Standard errors are by the delta method, from the `Influence` of an estimator; that of a paired
comparison is by the differences of α and β. Equations are those of Glover and Hokamp (2019).

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
from numpy.typing import ArrayLike, NDArray

from taskmix.counterfactual._statistics import LogStatistics
from taskmix.errors import InputError, OptionError, ShapeError
from taskmix.numerics import as_distribution, check_level, normal_quantile


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


@dataclass(frozen=True, slots=True)
class ValueEstimate:
    """Values of policies, or differences of values, and what they rest on."""

    value: NDArray[np.float64]  # [...]
    standard_error: NDArray[np.float64]  # [...]
    low: NDArray[np.float64]  # [...]
    high: NDArray[np.float64]  # [...]
    effective_rows: NDArray[np.float64]  # [...], Kish's: rows of the policy itself that say as much
    largest_weight: NDArray[np.float64]  # [...], of p/π
    weight_mean: NDArray[np.float64]  # [...], the paper's Z; near 1 where probabilities are right
    level: float


@dataclass(frozen=True, slots=True)
class Range:
    """An estimate with its interval.

    >>> Range.of(None) is None
    True
    >>> Range(0.5, 0.25, 0.75)
    Range(value=0.5, low=0.25, high=0.75)
    """

    value: float
    low: float
    high: float

    @classmethod
    def about(cls, value: float, error: float, *, level: float = 0.95) -> Range:
        """A value with its standard error."""
        half = normal_quantile(level) * error
        return cls(value, value - half, value + half)

    @classmethod
    def of(cls, found: ValueEstimate | None) -> Range | None:
        """None where there is no estimate."""
        if found is None or found.value != found.value:
            return None
        return cls(float(found.value), float(found.low), float(found.high))


def estimate(
    statistics: LogStatistics,
    policies: ArrayLike,  # [..., task]
    *,
    estimator: Estimator = weighted_importance_sampling,
    level: float = 0.95,
) -> ValueEstimate:
    """Values with Student intervals (the effective rows as degrees of freedom), many policies at once.

    The leading axes of `policies` and of `statistics` broadcast: a matrix [policy, task] and one log
    give a value for each policy.

    >>> log = sum_log([0, 1, 0, 1], [0.0, 1.0, 0.0, 1.0], [0.5] * 4, task_count=2)
    >>> found = estimate(log, [[0.5, 0.5], [0.1, 0.9]])
    >>> found.value.round(6).tolist()
    [0.5, 0.9]
    """
    shares = checked_policies(statistics, policies)
    influence = estimator(statistics, shares)
    return _finish(statistics, influence, [shares], level)


def compare(
    statistics: LogStatistics,
    policies: ArrayLike,  # [..., task]
    others: ArrayLike,  # [..., task]
    *,
    estimator: Estimator = weighted_importance_sampling,
    level: float = 0.95,
) -> ValueEstimate:
    """The value of `policies` minus that of `others` on the same rows.

    Both are estimated from the same draws, so the difference is far better known than either.

    >>> log = sum_log([0, 1, 0, 1], [0.0, 1.0, 0.0, 1.0], [0.5] * 4, task_count=2)
    >>> compare(log, [0.1, 0.9], [0.5, 0.5]).value.round(6).item()
    0.4
    """
    shares = checked_policies(statistics, policies)
    against = checked_policies(statistics, others)
    one, other = estimator(statistics, shares), estimator(statistics, against)
    difference = Influence(one.value - other.value, one.alpha - other.alpha, one.beta - other.beta)
    return _finish(statistics, difference, [shares, against], level)


def bernstein(
    statistics: LogStatistics,
    policies: ArrayLike,  # [..., task]
    *,
    reward_range: tuple[float, float],
    smallest_probability: float | None = None,
    level: float = 0.95,
) -> ValueEstimate:
    """Importance sampling with an empirical Bernstein interval, which holds at any number of rows.

    Maurer and Pontil, "Empirical Bernstein Bounds and Sample Variance Penalization", 2009, Theorem 4,
    for both sides. It takes the range of the rewards, and the smallest probability the logger could
    have given a task (ε/N for Exp3.S); without the latter, the smallest in the log stands in.

    >>> log = sum_log([0, 1] * 50, [0.0, 1.0] * 50, [0.5] * 100, task_count=2)
    >>> found = bernstein(log, [0.5, 0.5], reward_range=(0, 1))
    >>> found.value.item(), round(found.high.item() - found.low.item(), 2)
    (0.5, 0.5)
    """
    least, most = reward_range
    if not least < most:
        raise OptionError(f"`reward_range` should be (least, most). Found {reward_range}.")
    if smallest_probability is not None and not 0 < smallest_probability <= 1:
        raise OptionError(
            f"`smallest_probability` should lie above 0 and not above 1. Found {smallest_probability}."
        )
    shares = checked_policies(statistics, policies)
    plain = estimate(statistics, shares, estimator=importance_sampling, level=level)
    weights = (
        statistics.largest_weight if smallest_probability is None else 1.0 / smallest_probability
    )
    # A row is a weight of zero or more times a reward: its range always has zero in it.
    span = (shares * weights).max(axis=-1) * (max(most, 0.0) - min(least, 0.0))
    rows = statistics.rows
    doubt = np.log(4.0 / (1.0 - level))
    # Theorem 4; the squared standard error times the rows is the variance of one row.
    half = plain.standard_error * np.sqrt(2 * doubt) + 7 * span * doubt / (3 * (rows - 1))
    return ValueEstimate(
        plain.value,
        plain.standard_error,
        plain.value - half,
        plain.value + half,
        plain.effective_rows,
        plain.largest_weight,
        plain.weight_mean,
        level,
    )


def row_value(
    tasks: NDArray[np.integer],  # [row]
    rewards: NDArray[np.float64],  # [row]
    probabilities: NDArray[np.float64],  # [row]
    policy: NDArray[np.float64],  # [task]
) -> float:
    """Weighted importance sampling of one policy straight from the rows, when one value is all.

    Four times as fast as `sum_log`, whose sums pay from the second question on.

    >>> tasks, rewards, drawn = np.array([0, 1]), np.array([1.0, 3.0]), np.array([0.5, 0.5])
    >>> row_value(tasks, rewards, drawn, np.array([0.25, 0.75]))
    2.5
    """
    gained = total = 0.0
    for begin in range(0, len(tasks), ROWS_AT_ONCE):
        part = slice(begin, begin + ROWS_AT_ONCE)
        weights = policy[tasks[part]] / probabilities[part]  # P(x|π^C) / P(x|π) of Eq. 10
        gained += float(weights @ rewards[part])
        total += float(weights.sum())
    return gained / total  # Eq. 11


ROWS_AT_ONCE = 1 << 15  # whose weights fit into the processor's cache


def checked_policies(statistics: LogStatistics, policies: ArrayLike) -> NDArray[np.float64]:
    """Distributions over the tasks of the log that the log can say something about."""
    shares = as_distribution(policies, name="policies")
    if shares.shape[-1] != statistics.visits.shape[-1]:
        raise ShapeError(
            f"A policy should have one share for each of the {statistics.visits.shape[-1]} tasks of "
            f"the log. Found {shares.shape[-1]}."
        )
    untried = (statistics.visits == 0) & (shares > 0)
    if np.any(untried):
        task = int(np.argwhere(untried)[0][-1])
        raise InputError(
            f"Every task a policy draws should have been tried in the log. Found no row of task {task}, "
            "so nothing is known of it. Log a run that tries it, or give it a share of zero."
        )
    return shares


def _finish(
    statistics: LogStatistics,
    influence: Influence,
    shares: list[NDArray[np.float64]],
    level: float,
) -> ValueEstimate:
    from scipy.special import stdtrit

    check_level(level)
    alpha, beta = influence.alpha, influence.beta
    squares = (
        alpha * alpha * statistics.reward_squared
        - 2 * alpha * beta * statistics.reward_weight
        + beta * beta * statistics.weight_squared
    ).sum(axis=-1)
    total = (alpha * statistics.reward - beta * statistics.weight).sum(axis=-1)
    rows = statistics.rows
    # The variance of a sum of rows about its own mean; zero where rounding makes it less.
    spread = np.maximum(squares - total * total / rows, 0.0) * rows / np.maximum(rows - 1, 1)
    error = np.sqrt(spread)
    weights = [(share * statistics.weight).sum(axis=-1) for share in shares]
    effective = np.minimum.reduce(
        [
            weight * weight / (share * share * statistics.weight_squared).sum(axis=-1)
            for share, weight in zip(shares, weights, strict=True)
        ]
    )
    largest = np.maximum.reduce(
        [(share * statistics.largest_weight).max(axis=-1) for share in shares]
    )
    half = stdtrit(np.maximum(effective - 1, 1.0), (1 + level) / 2) * error
    return ValueEstimate(
        influence.value,
        error,
        influence.value - half,
        influence.value + half,
        effective,
        largest,
        weights[0] / rows,  # Z of Eq. 11
        level,
    )

r"""What a log of choices says about any policy that ignores context: a few sums for each task.

    Glover and Hokamp, "Task Selection Policies for Multitask Learning", 2019, Eqs. 9 to 11.

A row of the log has a task $a_t$, the probability $\pi_t$ it was drawn with, and a reward $r_t$. Under
another policy $p$ its weight is $p_{a_t}/\pi_t$, so every sum over rows splits by task, and with

    A = Σ r/π    B = Σ 1/π    C = Σ r²/π²    D = Σ r/π²    E = Σ 1/π²

over the visits to each task, values, standard errors, effective sample sizes and paired differences of
any number of policies cost O(tasks) each, however long the log. The sums of several logs add up.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from taskmix.errors import ShapeError


@dataclass(frozen=True, slots=True)
class LogStatistics:
    """Sums over the visits to each task; leading axes are stages of a log, or several logs.

    >>> log = sum_log([0, 0, 1], [1.0, 0.0, 0.5], [0.5, 0.5, 0.25], task_count=2)
    >>> log.visits.tolist(), log.reward.tolist(), log.weight.tolist()  # visits, Σ r/π, Σ 1/π
    ([2, 1], [2.0, 2.0], [4.0, 4.0])
    >>> (log + log).rows.item(), log.means.tolist()
    (6, [0.5, 0.5])
    """

    visits: NDArray[np.int64]  # [..., task]
    reward: NDArray[np.float64]  # [..., task], A
    weight: NDArray[np.float64]  # [..., task], B
    reward_squared: NDArray[np.float64]  # [..., task], C
    reward_weight: NDArray[np.float64]  # [..., task], D
    weight_squared: NDArray[np.float64]  # [..., task], E
    largest_weight: NDArray[np.float64]  # [..., task], of 1/π; 0 where never tried
    lowest: NDArray[np.float64]  # [..., task], of r/π; +∞ where never tried
    highest: NDArray[np.float64]  # [..., task], of r/π; −∞ where never tried
    clipped: NDArray[np.int64]  # [..., task], visits whose weight was cut off

    @property
    def rows(self) -> NDArray[np.int64]:
        """[...], the paper's T."""
        return np.asarray(self.visits.sum(axis=-1))

    @property
    def means(self) -> NDArray[np.float64]:
        """[..., task], A/B: the mean reward of each task over the log; NaN where never tried."""
        tried = self.visits > 0
        return np.where(tried, self.reward / np.where(tried, self.weight, 1.0), np.nan)

    def __add__(self, other: LogStatistics) -> LogStatistics:
        """The sums of both logs together; the axes must agree."""
        if self.visits.shape[-1] != other.visits.shape[-1]:
            raise ShapeError(
                "Logs that are added should be of the same tasks. Found "
                f"{self.visits.shape[-1]} and {other.visits.shape[-1]} tasks."
            )
        return LogStatistics(
            **{
                item.name: COMBINED_BY.get(item.name, np.add)(
                    getattr(self, item.name), getattr(other, item.name)
                )
                for item in fields(self)
            }
        )

    def __getitem__(self, place: Any) -> LogStatistics:
        """A part of the leading axes."""
        return LogStatistics(
            **{item.name: getattr(self, item.name)[place] for item in fields(self)}
        )

    def pooled(self, axis: int = 0) -> LogStatistics:
        """The sums over one leading axis, such as all stages of a log."""
        return LogStatistics(
            **{
                item.name: COMBINED_BY.get(item.name, np.add).reduce(
                    getattr(self, item.name), axis=axis
                )
                for item in fields(self)
            }
        )


COMBINED_BY: dict[str, np.ufunc] = {
    "largest_weight": np.maximum,
    "lowest": np.minimum,
    "highest": np.maximum,
}


def stack(parts: list[LogStatistics]) -> LogStatistics:
    """Statistics with a new first axis."""
    return LogStatistics(
        **{
            item.name: np.stack([getattr(part, item.name) for part in parts])
            for item in fields(LogStatistics)
        }
    )

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
from numpy.typing import ArrayLike, NDArray

from taskmix.errors import InputError, OptionError, ShapeError

# Rows worked on at a time, so that what is in between stays in the processor's cache.
CHUNK = 1 << 14
ROUNDING = 1e-9  # by which a probability may exceed one


@dataclass(frozen=True, slots=True)
class LogStatistics:
    """Sums over the visits to each task; leading axes are stages of a log, or several logs."""

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
                item.name: COMBINE.get(item.name, np.add)(
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
                item.name: COMBINE.get(item.name, np.add).reduce(
                    getattr(self, item.name), axis=axis
                )
                for item in fields(self)
            }
        )


COMBINE: dict[str, np.ufunc] = {
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


def gather(
    tasks: ArrayLike,  # [row], whole numbers from 0
    rewards: ArrayLike,  # [row]; NaN where a choice has no reward, which is left out
    probabilities: ArrayLike,  # [row], that the task was drawn with
    *,
    task_count: int,
    clip: float | None = None,
    first_row: int = 0,
) -> LogStatistics:
    """One pass over a log.

    With `clip`, weights 1/π above it are cut down to it: less variance for a bias towards zero of
    importance sampling. The cut is made on 1/π and not on p/π, so that the sums serve every policy.
    `first_row` is what the first row is called in an error.
    """
    chosen, drawn = np.asarray(tasks), np.asarray(probabilities, dtype=np.float64)
    gained = np.asarray(rewards, dtype=np.float64)
    if not (chosen.shape == drawn.shape == gained.shape) or chosen.ndim != 1:
        raise ShapeError(
            "`tasks`, `rewards` and `probabilities` should have one value per row. Found shapes "
            f"{chosen.shape}, {gained.shape} and {drawn.shape}."
        )
    if clip is not None and not clip >= 1:
        raise OptionError(f"`clip` should be a weight of at least 1. Found {clip}.")
    sums = _Sums(task_count, clip)
    for begin in range(0, len(chosen), CHUNK):
        part = slice(begin, begin + CHUNK)
        sums.add(chosen[part], gained[part], drawn[part], first_row + begin)
    return sums.statistics()


class _Sums:
    """The running sums of one pass."""

    def __init__(self, task_count: int, clip: float | None) -> None:
        if task_count < 1:
            raise OptionError(f"`task_count` should be at least 1. Found {task_count}.")
        self._clip = clip
        self._count = task_count
        self._whole = np.zeros((2, task_count), dtype=np.int64)  # visits, clipped
        self._sums = np.zeros((5, task_count))  # A to E
        self._largest = np.zeros(task_count)
        self._lowest = np.full(task_count, np.inf)
        self._highest = np.full(task_count, -np.inf)

    def add(
        self,
        tasks: NDArray[Any],
        rewards: NDArray[np.float64],
        probabilities: NDArray[np.float64],
        first_row: int,
    ) -> None:
        check_rows(tasks, probabilities, self._count, first_row)
        known = ~np.isnan(rewards)
        if not known.all():
            tasks, rewards, probabilities = tasks[known], rewards[known], probabilities[known]
        places = tasks.astype(np.intp, copy=False)
        weights = 1.0 / probabilities
        if self._clip is not None:
            cut = weights > self._clip
            weights = np.where(cut, self._clip, weights)
            self._whole[1] += np.bincount(places[cut], minlength=self._count)
        gains = rewards * weights
        self._whole[0] += np.bincount(places, minlength=self._count)
        for row, terms in enumerate(
            (gains, weights, gains * gains, gains * weights, weights * weights)
        ):
            self._sums[row] += np.bincount(places, terms, self._count)
        np.maximum.at(self._largest, places, weights)
        np.minimum.at(self._lowest, places, gains)
        np.maximum.at(self._highest, places, gains)

    def statistics(self) -> LogStatistics:
        gains, weights, gains_squared, gains_weights, weights_squared = self._sums
        return LogStatistics(
            visits=self._whole[0],
            reward=gains,
            weight=weights,
            reward_squared=gains_squared,
            reward_weight=gains_weights,
            weight_squared=weights_squared,
            largest_weight=self._largest,
            lowest=self._lowest,
            highest=self._highest,
            clipped=self._whole[1],
        )


def check_rows(
    tasks: NDArray[Any], probabilities: NDArray[np.float64], task_count: int, first_row: int
) -> None:
    """Refuses rows that no sound log has, and says which."""
    right = (probabilities > 0) & (probabilities <= 1 + ROUNDING)
    if not right.all():
        row = int((~right).argmax())
        found = probabilities[row]
        raise InputError(
            "The probability of a choice should lie above 0 and not above 1. Found "
            f"{'none' if np.isnan(found) else found} in row {first_row + row} of the log. Log the "
            "probability the task was really drawn with, at the moment of the choice."
        )
    if len(tasks) and (tasks.min() < 0 or tasks.max() >= task_count):
        row = int(((tasks < 0) | (tasks >= task_count)).argmax())
        raise InputError(
            f"A task should be a number from 0 to {task_count - 1}. Found {tasks[row]} in row "
            f"{first_row + row} of the log."
        )

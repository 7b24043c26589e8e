r"""The transfer matrix: the effect of every task on every other, from one set of runs.

A run trains a subset of the tasks and measures each of them, so every run is a row for each of its
members as target, with the other members as sources. Each target gets its own linear surrogate (Li,
Nguyen and Zhang, 2023), anchored in the runs of that target alone. One table of n runs of m of K
tasks gives each target n m / K rows, and K surrogates for what one would have cost otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from taskmix.errors import InputError, ShapeError
from taskmix.transfer._linear import LinearSurrogate, adjusted_p_values, fit_linear_surrogate
from taskmix.transfer._outcomes import SubsetOutcomes, gather_outcomes
from taskmix.transfer._subsets import check_sources


@dataclass(frozen=True, kw_only=True)
class TransferMatrix:
    """Effects of sources on targets, in losses: below zero is help. The diagonal is NaN."""

    tasks: tuple[str, ...]
    surrogates: tuple[LinearSurrogate, ...]  # one a target, in the order of the tasks
    failed: tuple[int, ...]  # of each target, runs that trained it and have no finite outcome of it

    @property
    def effects(self) -> NDArray[np.float64]:
        """[target, source]."""
        return _with_diagonal([one.effects for one in self.surrogates])

    @property
    def standard_errors(self) -> NDArray[np.float64]:
        """[target, source]."""
        return _with_diagonal([one.standard_errors for one in self.surrogates])

    @property
    def relative_gains(self) -> NDArray[np.float64]:
        """[target, source], improvements as shares of the target's outcome alone, for adding up.

        Losses of different tasks have different units; a group's worth is a sum over its tasks.
        """
        alone = np.array([abs(one.anchor) for one in self.surrogates])
        return -self.effects / np.where(alone > 0, alone, 1.0)[:, None]

    def centred(self) -> TransferMatrix:
        """The same with every effect relative to the target's average source."""
        return replace(self, surrogates=tuple(one.centred() for one in self.surrogates))

    def intervals(self, level: float = 0.95) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The ends of Student's intervals, each [target, source]."""
        ends = [one.intervals(level) for one in self.surrogates]
        return _with_diagonal([low for low, _ in ends]), _with_diagonal([high for _, high in ends])

    def p_values(self, *, adjusted: bool = True) -> NDArray[np.float64]:
        """[target, source]; adjusted over all pairs at once, not target by target."""
        values = _with_diagonal([one.p_values() for one in self.surrogates])
        return adjusted_p_values(values) if adjusted else values


def outcomes_of_target(
    trained: ArrayLike,  # [run, task], which tasks a run trained
    outcomes: ArrayLike,  # [run, task]; NaN where a task failed or was not trained
    *,
    tasks: Sequence[str],
    target: str,
    higher_is_better: bool = False,
    dev_rows: NDArray[np.floating] | None = None,  # [run, dev row], of the target
) -> SubsetOutcomes:
    """The runs that trained `target`, as subsets of the other tasks.

    >>> trained = np.concatenate([np.eye(4), leave_one_out_subsets(4)])  # each alone, all, all but one
    >>> tasks, changes = ["news", "tweets", "code", "forums"], [-0.2, 0.0, 0.1, 0.2]
    >>> losses = np.repeat(1 + trained @ changes, 4).reshape(-1, 4)  # of all tasks of a run alike
    >>> table = outcomes_of_target(trained, losses, tasks=tasks, target="tweets")
    >>> table.losses.round(6)  # with all three, without news, without code, without forums
    array([1.1, 1.3, 1. , 0.9])
    """
    members, values = _checked_runs(trained, outcomes, tasks)
    if target not in tasks:
        raise InputError(
            f"The target should be one of the tasks {', '.join(tasks)}. Found `{target}`. Name one of "
            "them, spelt as there."
        )
    place = list(tasks).index(target)
    rows = members[:, place]
    return gather_outcomes(
        np.delete(members[rows], place, axis=1),
        values[rows, place],
        target=target,
        sources=[task for task in tasks if task != target],
        higher_is_better=higher_is_better,
        dev_rows=None if dev_rows is None else dev_rows[rows],
    )


def fit_transfer_matrix(
    trained: ArrayLike,  # [run, task], which tasks a run trained
    outcomes: ArrayLike,  # [run, task]; NaN where a task failed or was not trained
    *,
    tasks: Sequence[str],
    higher_is_better: bool | Sequence[bool] = False,  # one for all, or one a task
    ridge: float = 0.0,
) -> TransferMatrix:
    """A linear surrogate for every task as target.

    >>> trained = np.concatenate([np.eye(4), leave_one_out_subsets(4)])  # each alone, all, all but one
    >>> tasks, changes = ["news", "tweets", "code", "forums"], [-0.2, 0.0, 0.1, 0.2]
    >>> losses = np.repeat(1 + trained @ changes, 4).reshape(-1, 4)  # of all tasks of a run alike
    >>> fit_transfer_matrix(trained, losses, tasks=tasks).effects[1].round(6)  # on tweets
    array([-0.2,  nan,  0.1,  0.2])
    """
    _checked_runs(trained, outcomes, tasks)
    directions = (
        [higher_is_better] * len(tasks)
        if isinstance(higher_is_better, bool)
        else list(higher_is_better)
    )
    if len(directions) != len(tasks):
        raise ShapeError(
            f"`higher_is_better` should be one answer, or one for each of the {len(tasks)} tasks. Found "
            f"{len(directions)}."
        )
    tables = [
        outcomes_of_target(trained, outcomes, tasks=tasks, target=task, higher_is_better=direction)
        for task, direction in zip(tasks, directions, strict=True)
    ]
    return TransferMatrix(
        tasks=tuple(tasks),
        surrogates=tuple(fit_linear_surrogate(table, ridge=ridge) for table in tables),
        failed=tuple(table.failed for table in tables),
    )


def _checked_runs(
    trained: ArrayLike, outcomes: ArrayLike, tasks: Sequence[str]
) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    check_sources(len(tasks) - 1)
    members, values = np.asarray(trained, dtype=np.bool_), np.asarray(outcomes, dtype=np.float64)
    if members.ndim != 2 or members.shape != values.shape or members.shape[1] != len(tasks):
        raise ShapeError(
            f"`trained` and `outcomes` should both be [run, task] with the {len(tasks)} tasks. Found "
            f"shapes {members.shape} and {values.shape}."
        )
    return members, values


def _with_diagonal(rows: list[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Rows over the other tasks as a square with NaN for a task on itself."""
    return np.array([np.insert(row, place, np.nan) for place, row in enumerate(rows)])

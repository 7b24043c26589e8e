"""The table every surrogate is fitted to: one target, subsets of its sources, what came of each.

Inside, an outcome is a loss, as in Li, Nguyen and Zhang (2023): smaller is better, and an effect
below zero helps. A metric or a margin, where higher is better, is negated here and nowhere else;
`gains` of a surrogate give the improvement, which is positive where a source helps, for both.

Runs of one subset under several seeds become one row, their mean, whose weight is their number. For
least squares this loses nothing: the coefficients are those of the single runs, and the robust
errors are those that allow for runs of one subset sharing what is not linear.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from taskmix.errors import InputError, ShapeError
from taskmix.transfer._subsets import check_sources


@dataclass(frozen=True, kw_only=True)
class SubsetOutcomes:
    """What each subset came to; the empty one, the target alone, is the anchor."""

    target: str
    sources: tuple[str, ...]
    subsets: NDArray[np.bool_]  # [subset, source], all different, none empty
    losses: NDArray[np.float64]  # [subset], the paper's f(t; S), mean over the finished runs
    weights: NDArray[np.float64]  # [subset], the finished runs, or the sum of their weights
    anchor: float  # f(t; ∅), mean over the finished runs of the target alone
    anchor_runs: int
    anchor_variance: float  # among those runs; NaN where there is one
    seed_variance: float  # of a run about the mean of its subset, pooled; NaN without repetition
    seed_degrees: int  # of that variance
    failed: int  # runs left out because they have no finite outcome
    lost: tuple[tuple[str, ...], ...]  # subsets of which every run failed
    # [1 + subset, dev row], the target alone first: what each dev row has in the error of a mean over
    # them; products of two lines sum to a covariance. No dev row where they are not known.
    dev_parts: NDArray[np.float64]
    higher_is_better: bool = False  # of what was given; the losses here are lower-is-better always

    def take(self, rows: NDArray[np.bool_]) -> SubsetOutcomes:
        """A part of the subsets, with the same anchor."""
        return replace(
            self,
            subsets=self.subsets[rows],
            losses=self.losses[rows],
            weights=self.weights[rows],
            dev_parts=np.vstack([self.dev_parts[:1], self.dev_parts[1:][rows]]),
        )

    @property
    def sizes(self) -> NDArray[np.int64]:
        """[subset], how many sources each has."""
        return np.asarray(self.subsets.sum(axis=1))


def gather_outcomes(
    subsets: ArrayLike,  # [run, source], which sources were trained with the target; none: it alone
    outcomes: ArrayLike,  # [run], of the target; NaN or infinite where the run failed
    *,
    target: str,
    sources: Sequence[str],
    higher_is_better: bool = False,
    weights: ArrayLike | None = None,  # [run]; one each
    dev_rows: ArrayLike | None = None,  # [run, dev row], of which the outcome is the mean
) -> SubsetOutcomes:
    """Runs as the table of subsets. Failed runs are left out and counted.

    >>> runs = [[0, 0, 0], [1, 1, 0], [1, 1, 0], [1, 0, 1], [0, 1, 1]]
    >>> losses = [1.0, 0.5, 0.7, 0.9, np.nan]  # the last run failed
    >>> table = gather_outcomes(runs, losses, target="reviews", sources=["news", "tweets", "code"])
    >>> table.losses.round(6), table.weights, table.lost
    (array([0.6, 0.9]), array([2., 1.]), (('tweets', 'code'),))
    """
    members, values = np.asarray(subsets, dtype=np.bool_), np.asarray(outcomes, dtype=np.float64)
    run_weights = np.ones(len(values)) if weights is None else np.asarray(weights, dtype=np.float64)
    _check(members, values, run_weights, target, sources)
    finished = np.isfinite(values)
    distinct, place = _distinct(members)
    tried = np.bincount(place[finished], minlength=len(distinct)) > 0
    empty = ~distinct.any(axis=1)
    if not tried[empty].any():
        raise InputError(
            f"Target `{target}` should have at least one finished run alone, with no source: effects "
            "are changes from it, and subsets of one size cannot tell them otherwise. Found none. Train "
            "it alone under a few seeds."
        )
    if not tried[~empty].any():
        raise InputError(
            f"At least one run of target `{target}` with sources should have finished. Found that all "
            f"{int((~finished).sum())} failed. See their records for the reason and run them again."
        )
    signed = -values if higher_is_better else values
    groups, losses, finished_weights = place[finished], signed[finished], run_weights[finished]
    totals = np.bincount(groups, finished_weights, len(distinct)).astype(np.float64)
    means = np.bincount(groups, finished_weights * losses, len(distinct)) / np.where(
        tried, totals, 1.0
    )
    runs = np.bincount(groups, minlength=len(distinct))
    squares = np.bincount(groups, (losses - means[groups]) ** 2, len(distinct))
    degrees = int(np.maximum(runs - 1, 0).sum())
    alone = int(np.flatnonzero(empty)[0])
    kept = tried & ~empty
    never = ~distinct[kept].any(axis=0)
    if never.any():
        raise InputError(
            f"Every source should be in a subset of which a run finished. Found none with "
            f"`{sources[int(never.argmax())]}`. Train one with it, or leave the source out."
        )
    return SubsetOutcomes(
        target=target,
        sources=tuple(sources),
        subsets=distinct[kept],
        losses=means[kept],
        weights=totals[kept],
        anchor=float(means[alone]),
        anchor_runs=int(runs[alone]),
        anchor_variance=float(squares[alone] / (runs[alone] - 1)) if runs[alone] > 1 else np.nan,
        seed_variance=float(squares.sum() / degrees) if degrees else np.nan,
        seed_degrees=degrees,
        failed=int((~finished).sum()),
        lost=tuple(
            tuple(name for name, inside in zip(sources, row, strict=True) if inside)
            for row in distinct[~tried]
        ),
        higher_is_better=higher_is_better,
        dev_parts=_dev_parts(
            np.zeros((len(losses), 0)) if dev_rows is None else np.asarray(dev_rows)[finished],
            groups,
            finished_weights,
        )[np.append(alone, np.flatnonzero(kept))],
    )


def _dev_parts(
    rows: NDArray[np.float64],  # [finished run, dev row]; NaN where a row has no target
    groups: NDArray[np.int64],  # [finished run], the subset of each
    weights: NDArray[np.float64],  # [finished run]
) -> NDArray[np.float64]:
    """[subset, dev row]; of one dev row or none there is no error to be told."""
    rows = rows[:, np.isfinite(rows).all(axis=0)].astype(np.float64)
    count = rows.shape[1] if rows.shape[1] > 1 else 0
    means = np.zeros((int(groups.max()) + 1, count))
    np.add.at(means, groups, weights[:, None] * rows[:, :count])
    means /= np.maximum(np.bincount(groups, weights), np.finfo(float).tiny)[:, None]
    means -= means.sum(axis=1, keepdims=True) / max(count, 1)
    return np.asarray(means / np.sqrt(max(count * (count - 1), 1)))


def _distinct(members: NDArray[np.bool_]) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """The different rows in the order they first occur, and which of them each row is."""
    known: dict[bytes, int] = {}
    place = np.array([known.setdefault(row.tobytes(), len(known)) for row in members])
    first = np.unique(place, return_index=True)[1]
    return members[first], place


def _check(
    members: NDArray[np.bool_],
    values: NDArray[np.float64],
    weights: NDArray[np.float64],
    target: str,
    sources: Sequence[str],
) -> None:
    check_sources(len(sources))
    if target in sources:
        raise InputError(
            f"Target `{target}` should not be among its own sources. Found it there. Leave it out of "
            "`sources` and of the columns of `subsets`."
        )
    if len(set(sources)) != len(sources):
        raise InputError(
            f"Every source should have its own name. Found {sorted(sources)}. Rename "
            "those that are alike."
        )
    if values.ndim != 1 or members.shape != (len(values), len(sources)):
        raise ShapeError(
            f"`subsets` should be [run, source] with the {len(sources)} sources, and `outcomes` [run]. "
            f"Found shapes {members.shape} and {values.shape}."
        )
    if weights.shape != values.shape or not np.all(np.isfinite(weights) & (weights > 0)):
        raise ShapeError(
            "`weights` should be one number above zero for each run. Found "
            f"shape {weights.shape} for {len(values)} runs, or a number that is not above zero."
        )

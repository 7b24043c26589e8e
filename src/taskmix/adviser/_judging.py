"""From entries to a race: every way's score, its loss, cheaper models, longer runs, and dev rows.

What is asked for is the mean score of a way on rows not seen yet, trained as long as the user will
train it. `judge_ways` puts together what says something of that, and says at which length it holds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from taskmix.adviser._curves import best_so_far
from taskmix.adviser._estimate import Estimate, Measured, estimate_ways
from taskmix.adviser._growth import CurveGrowth, fit_growth
from taskmix.adviser._left_out import made_or_noted
from taskmix.adviser._race import Race, race_of
from taskmix.adviser._rows import row_noise
from taskmix.adviser._scores import Entry, mean_comparable
from taskmix.records import Study
from taskmix.tasks import TaskSet

Entries = Mapping[str, Sequence[Entry]]  # of each way, by seed
TOP = "top"  # the model itself, beside the names of the rungs below it
MOST_EXTRAPOLATED = (
    64.0  # times the batches seen: beyond that a promise is made for no more than that
)


@dataclass(frozen=True, kw_only=True)
class Trained:
    """All runs of ways of training so far."""

    entries: Entries  # of the model itself, all of `batches`
    batches: int
    rungs: Mapping[str, Entries] = field(default_factory=dict)  # of cheaper models, by their names
    long: Entries = field(default_factory=dict)  # of the model itself, all of `long_batches`
    long_batches: int = 0


@dataclass(frozen=True, kw_only=True)
class Judged:
    """The race, and for which training it holds."""

    race: Race
    batches: int  # of the training for which ways are ranked
    row_error: float  # of a difference of two ways, because dev rows are a sample; NaN: not known
    leader_now: str  # the best of the runs as they are
    curve_error: float = 0.0  # of a difference, because runs are shorter than that training
    growth: CurveGrowth | None = None  # None: the curves say nothing
    notes: tuple[str, ...] = ()  # on what was left out


def judge_ways(
    trained: Trained,
    tasks: TaskSet,
    judged: Sequence[str],  # whose scores count
    study: Study,
    *,
    batches: int | None,  # of the training that will be; None: until the curves are flat
    rising: bool = False,  # whether dev losses still fall: then no curve is flat, whatever it looks like
    level: float,
) -> Judged:
    """Where every way stands at the end of the training that will be."""
    scores = {
        way: [mean_comparable(tasks, entry.dev, judged) for entry in some]
        for way, some in trained.entries.items()
    }
    groups = [_measured(TOP, trained.entries, tasks, judged)]
    groups += [_measured(name, some, tasks, judged) for name, some in trained.rungs.items()]
    estimate = estimate_ways(groups)
    notes: list[str] = []
    growth = made_or_noted(
        "What learning curves say of longer training",
        lambda: _growth(trained, tasks, judged, study, estimate.noise),
        notes,
    )
    means = dict(zip(estimate.ways, estimate.means.tolist(), strict=True))
    now = max(scores, key=lambda way: means[way])
    length = _length(trained.batches, growth, batches, rising=rising)
    estimate = _at_length(estimate, trained, tasks, judged, growth, length)
    rows = row_noise(trained.entries, tasks, judged, study)
    if rows is not None and set(rows) != set(estimate.ways):
        rows = None  # a way that the model itself has not run has no rows
    race = race_of(estimate.on_new_rows(rows), scores, level)
    begin = trained.long_batches if trained.long else trained.batches
    return Judged(
        race=race,
        batches=length,
        row_error=_row_error(rows),
        leader_now=now,
        curve_error=0.0 if growth is None else math.sqrt(2) * growth.error_between(begin, length),
        growth=growth,
        notes=tuple(notes),
    )


def _measured(name: str, entries: Entries, tasks: TaskSet, judged: Sequence[str]) -> Measured:
    """The score and, where every run has one, the logarithm of the loss, as a gain."""
    rows = {
        way: [(mean_comparable(tasks, e.dev, judged), _log_loss(e, judged)) for e in some]
        for way, some in entries.items()
    }
    both = all(math.isfinite(loss) for some in rows.values() for _, loss in some)
    return Measured(
        name=name,
        values={
            way: [(score, -loss) if both else (score,) for score, loss in some]
            for way, some in rows.items()
        },
    )


def _log_loss(entry: Entry, judged: Sequence[str]) -> float:
    """The mean over tasks of the logarithm of the loss, so that no task outweighs the others."""
    losses = [entry.loss.get(name, math.nan) for name in judged]
    return float(np.mean(np.log(losses))) if all(loss > 0 for loss in losses) else math.nan


def _growth(
    trained: Trained, tasks: TaskSet, judged: Sequence[str], study: Study, noise: float
) -> CurveGrowth | None:
    curves = {
        way: [
            [(spent, score) for spent, score, _ in best_so_far(entry, tasks, judged, study)]
            for entry in some
        ]
        for way, some in trained.entries.items()
    }
    return fit_growth(curves, noise)


def _length(seen: int, growth: CurveGrowth | None, asked: int | None, *, rising: bool) -> int:
    if asked is not None:
        return asked
    if growth is None:
        return seen
    return round(growth.longest if rising else growth.flat_after)


def _at_length(
    estimate: Estimate,
    trained: Trained,
    tasks: TaskSet,
    judged: Sequence[str],
    growth: CurveGrowth | None,
    length: int,
) -> Estimate:
    """Moved along the curves to the training that will be, by way of the longer runs where there are."""
    if growth is None:
        return estimate
    begin = float(trained.batches)
    # A law of a few evaluations is read no further than it was ever tried, however long one trains.
    end = min(max(float(length), 1.0), MOST_EXTRAPOLATED * begin)

    def move(estimate: Estimate, begin: float, end: float) -> Estimate:
        if end <= begin:
            return estimate
        gains = growth.gains(estimate.ways, begin=begin, end=end)
        return estimate.moved(
            gains,
            growth.error_between(begin, end),
            shared=growth.unsure_between(estimate.ways, begin=begin, end=end),
            contraction=growth.contraction_between(begin, end),
        )

    if not trained.long:
        return move(estimate, begin, end)
    middle = float(trained.long_batches)
    estimate = move(estimate, begin, middle)
    means = {
        way: float(np.mean([mean_comparable(tasks, entry.dev, judged) for entry in some]))
        for way, some in trained.long.items()
    }
    estimate = estimate.seen(means, {way: len(some) for way, some in trained.long.items()})
    return move(estimate, middle, end)


def _row_error(rows: Mapping[str, np.ndarray] | None) -> float:
    """Typical deviation of a difference of two ways over samples of dev rows."""
    if rows is None or len(rows) < 2:
        return math.nan
    matrix = np.array(list(rows.values()))
    variances = np.diag(matrix)
    differences = variances[:, None] + variances[None, :] - 2 * matrix
    apart = differences[np.triu_indices(len(matrix), 1)]
    return float(np.sqrt(max(np.median(apart), 0.0)))

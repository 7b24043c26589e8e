"""Shares fitted over all mixtures that were trained so far: one more way of training.

Every model of every way that draws a task a step is a run on a mixture: all tasks in proportion to
rows, some of them evenly, one of them for its part of the batches. Laws of how the score of each
target rises with the shares are fitted to them (`taskmix.mixtures`), and the mixture with the best
mean score is proposed. A model that gets a part of the batches is a mixture of which the rest teaches
nothing. With few mixtures laws are unsure, and a run costs as much as any other, so it is the equally
likely laws that decide: most of them have to hold the new mixture for better than all that were trained.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from taskmix.adviser._candidates import together
from taskmix.adviser._scores import Entry, comparable
from taskmix.mixtures import (
    Forecast,
    MixtureLimits,
    MixtureTable,
    MixtureTarget,
    find_optimum,
    forecast_own_data,
)
from taskmix.plans import Part, Plan, Shares, Weighted
from taskmix.tasks import TaskSet

NAME = "mixture"
FEWEST_MIXTURES = 4  # of all tasks that differ: below that laws are all prior
LEAST_SHARE = 0.25  # of an even share, that every target gets: a wrong law should not starve a task
MOST_SHARE = 1.5  # times the largest share trained: laws are fitted where there were runs
# Of the equally likely laws, that hold it for better than all mixtures trained.
LEAST_CHANCE = 0.6
OTHER_MIXTURE = 0.05  # of all batches, that should go to other tasks than in any mixture trained
WHOLE = 1e-6  # shares of a whole run sum to 1 up to this

Entries = Mapping[str, Sequence[Entry]]  # of each candidate, by seed


@dataclass(frozen=True, kw_only=True)
class _Model:
    """One model that was trained: the share of all batches of each task, and what came of it."""

    shares: Mapping[str, float]
    scores: Mapping[str, float]


def fitted_mixture(
    entries: Entries,
    tasks: TaskSet,
    usable: Sequence[str],  # the targets of which something was learned
    *,
    for_all: bool,  # whether all tasks are targets
    seed: int = 0,
) -> Plan | None:
    """The best mixture by laws of those that were trained; None where that is not likely to gain."""
    table = mixtures_trained(entries, tasks, usable)
    whole = np.abs(table.shares.sum(axis=1) - 1) < WHOLE if len(table) else np.zeros(0, bool)
    known = np.unique(table.shares[whole].round(6), axis=0)
    if len(tasks) < 2 or len(known) < FEWEST_MIXTURES:
        return None
    forecast = forecast_own_data(table, seed=seed)
    limits = _limits(table, usable, for_all=for_all)
    optimum = find_optimum(forecast, MixtureTarget(), limits, seed=seed)
    shares = {name: share for name, share in optimum.shares.items() if share > WHOLE}
    total = sum(shares.values())
    found = np.array([[shares.get(name, 0.0) / total for name in table.domains]])
    # Half of the sum is how many batches in all go to another task.
    if np.abs(known - found).sum(axis=1).min() / 2 < OTHER_MIXTURE:
        return None
    if chance_of_best(forecast, found, known) < LEAST_CHANCE:
        return None
    names = [name for name in tasks.names if name in shares]
    words = f"shares fitted over {len(known)} mixtures that were trained"
    division = Shares(probabilities=tuple(shares[name] / total for name in names))
    return together(NAME, words, names, targets=usable, division=division)


def mixtures_trained(entries: Entries, tasks: TaskSet, targets: Sequence[str]) -> MixtureTable:
    """All models of all ways that draw a task a step, under each seed, as a table."""
    rows = {
        f"{way}, seed {entry.seed}, {number}": _Model(
            shares={name: part.share * share for name, share in part.probabilities.items()},
            scores={
                name: comparable(tasks[name], entry.dev[name])
                for name in part.scored
                if name in entry.dev
            },
        )
        for way, some in entries.items()
        for entry in some
        for number, part in enumerate(entry.candidate.parts)
        if entry.candidate.merge is None and _is_mixture(part)
    }
    found = list(rows.values())
    return MixtureTable(
        domains=tasks.names,
        metrics=tuple(targets),
        runs=tuple(rows),
        shares=np.array([[row.shares.get(name, 0.0) for name in tasks.names] for row in found]),
        values=np.array([[row.scores.get(name, np.nan) for name in targets] for row in found]),
        larger_is_better=tuple(targets),
    )


def _is_mixture(part: Part) -> bool:
    return not isinstance(part.division, Weighted)


def _limits(table: MixtureTable, targets: Sequence[str], *, for_all: bool) -> MixtureLimits:
    largest = dict(zip(table.domains, table.shares.max(axis=0).tolist(), strict=True))
    least = LEAST_SHARE / len(targets if for_all else table.domains)
    return MixtureLimits(
        at_least=dict.fromkeys(targets, least),
        at_most={
            name: 0.0 if for_all and name not in targets else min(MOST_SHARE * share, 1.0)
            for name, share in largest.items()
        },
    )


def chance_of_best(forecast: Forecast, mixture: np.ndarray, known: np.ndarray) -> float:
    """The share of equally likely laws by which it is better than each of the known ones."""
    drawn = MixtureTarget().of(forecast.draws(np.concatenate([mixture, known])), forecast.table)
    return float(np.mean(drawn[:, 0] < drawn[:, 1:].min(axis=1)))

"""What the experiments of the transfer paper share: sources chosen by surrogates, and their rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from taskmix.engine import Executor, Run
from taskmix.numerics import mean_interval
from taskmix.papers._shared import PaperRow, row
from taskmix.papers._transfer._sign_test import SignTest
from taskmix.records import Study
from taskmix.transfer import (
    LinearSurrogate,
    SubsetOutcomes,
    Trial,
    TrialOutcomes,
    best_prefixes,
    choose_prefix,
    fit_linear_surrogate,
    measure_trials,
    outcomes_of_target,
)

PAPER_F1 = 0.80  # over all their experiments
MEASURES = ("helps", "harms", "right", "always", "ceiling", "share", "spearman")


HeldOut = Literal["design", "held out"]  # subsets of the size fitted to, or of other sizes
Prefixes = Callable[[LinearSurrogate], NDArray[np.bool_]]  # to [prefix, source]


def select_sources(
    measured: TrialOutcomes,
    study: Study,
    executor: Executor,
    *,
    prefixes: Prefixes = best_prefixes,
    chosen_by: Literal["loss", "metric"] | None = None,  # on dev; None: the outcome fitted to
    ridge: float = 0.0,
    seeds: int = 3,
) -> tuple[dict[str, LinearSurrogate], dict[str, tuple[str, ...]]]:
    """A linear surrogate for each target, and its sources: the paper's γ, chosen on dev.

    Every γ keeps a prefix of the sources in the order of their effects. Some of these, the ones the
    surrogate predicts best unless said otherwise, are trained under a few seeds, and the one of the
    best dev outcome is taken.
    """
    description = replace(measured.description, outcome=chosen_by or measured.description.outcome)
    surrogates = _fit_all(measured, ridge)
    tried = {target: prefixes(surrogate) for target, surrogate in surrogates.items()}
    trials = prefix_trials(measured, prefixes, ridge=ridge, seeds=seeds)
    found = measure_trials(description, trials, study, executor)
    chosen, begin = {}, 0
    for target, members in tried.items():
        end = begin + len(members) * seeds
        column = description.tasks.index(target)
        choice = choose_prefix(
            surrogates[target],
            members,
            found.outcomes[begin:end, column].reshape(len(members), seeds),
            higher_is_better=description.higher_is_better[target],
        )
        chosen[target] = choice.selection.sources
        begin = end
    return surrogates, chosen


def prefix_trials(
    measured: TrialOutcomes, prefixes: Prefixes, *, ridge: float = 0.0, seeds: int
) -> list[Trial]:
    """Every prefix of every target under so many seeds, in this order."""
    return [
        trial
        for target, surrogate in _fit_all(measured, ridge).items()
        for member in prefixes(surrogate)
        for trial in measured.description.prefix(target, _names(surrogate, member), seeds)
    ]


def _fit_all(measured: TrialOutcomes, ridge: float) -> dict[str, LinearSurrogate]:
    return {
        target: fit_linear_surrogate(measured.table(target), ridge=ridge)
        for target in measured.description.targets
    }


def held_out_table(
    fitted: TrialOutcomes, tried: TrialOutcomes, target: str, role: HeldOut = "design"
) -> SubsetOutcomes:
    """The subsets of `tried` that the surrogate was not fitted to, with the anchor that it has."""
    description = fitted.description
    of_fitted, of_tried = fitted.rows(target, ("alone", "design")), tried.rows(target, (role,))
    trained = np.concatenate([fitted.trained[of_fitted], tried.trained[of_tried]])
    table = outcomes_of_target(
        trained,
        np.concatenate([fitted.outcomes[of_fitted], tried.outcomes[of_tried]]),
        tasks=description.tasks,
        target=target,
        higher_is_better=description.higher_is_better[target],
    )
    known = {row.tobytes() for row in fitted.table(target).subsets}
    return table.take(np.array([row.tobytes() not in known for row in table.subsets]))


def spread_prefixes(surrogate: LinearSurrogate) -> NDArray[np.bool_]:
    """Prefixes of many sizes, none to all, closer together among the small ones."""
    count = len(surrogate.sources)
    return _prefixes(surrogate, np.unique(np.rint(count * np.linspace(0, 1, 9) ** 1.5)))


def tripling_prefixes(surrogate: LinearSurrogate) -> NDArray[np.bool_]:
    """Prefixes of 0, 1, 3, 9, ... sources and of all of them: few sizes, since runs with as many tasks
    train together."""
    count = len(surrogate.sources)
    return _prefixes(surrogate, [0, *(size for size in (1, 3, 9, 27, 81) if size < count), count])


def _prefixes(surrogate: LinearSurrogate, sizes: ArrayLike) -> NDArray[np.bool_]:
    """[prefix, source], so many sources of the least effects."""
    rank = np.argsort(np.argsort(surrogate.effects, kind="stable"), kind="stable")
    return np.asarray(rank < np.asarray(sizes)[:, None])


def best_of(measured: NDArray[np.float64], *, sizes: Sequence[int]) -> int:
    """Which choice has the best mean metric on dev; of equals the one with the fewest sources.

    >>> best_of(np.array([[0.5, 0.6], [0.9, 0.7], [0.8, 0.8]]), sizes=[1, 3, 2])
    2
    """
    means = np.round(measured.mean(axis=1), 9)
    return int(np.lexsort([np.asarray(sizes), -means])[0])


def _names(surrogate: LinearSurrogate, members: NDArray[np.bool_]) -> list[str]:
    return [surrogate.sources[place] for place in np.flatnonzero(members)]


def f1_rows(quantity: str, tests: Sequence[SignTest]) -> list[PaperRow]:
    """The mean over targets of each measure, and of F1 under the name itself."""
    rows = []
    for measure_name in MEASURES:
        values = np.array([getattr(test, measure_name) for test in tests])
        known = values[np.isfinite(values)]
        if len(known) == 0:
            continue
        name = quantity if measure_name == "helps" else f"{quantity}/{measure_name}"
        rows.append(row(name, PAPER_F1 if measure_name == "helps" else None, mean_interval(known)))
    return rows


def cost_rows(
    experiment: str, measured: Sequence[TrialOutcomes], chosen: dict[str, tuple[str, ...]]
) -> list[PaperRow]:
    """How many runs there were, how many failed, and how many sources were chosen."""
    runs = {(trial.tasks, trial.run.seed) for each in measured for trial in each.trials}
    failed = sum(each.failed for each in measured)
    sources = [len(names) for names in chosen.values()]
    return [
        row(f"{experiment}/subset_runs", None, mean_interval([len(runs)])),
        row(f"{experiment}/failed_runs", None, mean_interval([failed])),
        row(f"{experiment}/sources_selected", None, mean_interval(sources)),
    ]


def scores(
    runs: Sequence[Run], study: Study, split: str, outcome: str, *, task: str | None = None
) -> NDArray[np.float64]:
    """[run], the loss or the metric of each run's task, or of one of them; NaN where there is none."""
    found = []
    for run in runs:
        summary = study.run(run.specification()).summary()
        values = [
            score.value
            for score in (summary.scores if summary is not None else ())
            if score.split == split
            and (score.metric == "loss") == (outcome == "loss")
            and task in (None, score.task)
        ]
        found.append(values[0] if values else np.nan)
    return np.array(found)

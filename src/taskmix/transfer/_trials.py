"""Trains what a study of transfer asks for, and reads from the records what came of it.

Runs that fail are left out and counted; nothing is fitted here. Where a precision is asked for, a
first part of the subsets is the pilot that shows the noise, and the rest follow from it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from taskmix.engine import Auto, Executed, Executor, Run, model_of_run
from taskmix.errors import InputError, RunError
from taskmix.records import RunSummary, Study
from taskmix.training import evaluate_margins
from taskmix.transfer._linear import fit_linear_surrogate
from taskmix.transfer._matrix import outcomes_of_target
from taskmix.transfer._outcomes import SubsetOutcomes
from taskmix.transfer._precision import subsets_for_error
from taskmix.transfer._study import Role, TransferStudy, Trial

# Sources are chosen by these outcomes; on test, scores of the choice would be too good.
MEASURED_ON = "dev"


@dataclass(frozen=True, kw_only=True)
class TrialOutcomes:
    """The trials of a study and the outcome of each of their tasks."""

    description: TransferStudy
    trials: tuple[Trial, ...]
    outcomes: NDArray[np.float64]  # [trial, task], as measured; NaN where not trained or failed
    errors: tuple[str | None, ...]  # [trial], why it failed
    # Of each target whose records have it, [trial, dev row]: what rows add to the outcome.
    dev_rows: Mapping[str, NDArray[np.float32]] = field(default_factory=dict)
    pilot: int | None = None  # subsets of each target that a pilot had
    noise: float | None = None  # that it found, the largest of any target

    @property
    def failed(self) -> int:
        """Runs that have no outcome."""
        return sum(error is not None for error in self.errors)

    @cached_property
    def trained(self) -> NDArray[np.bool_]:
        """[trial, task]."""
        names = self.description.tasks
        return np.array([[name in trial.tasks for name in names] for trial in self.trials])

    def rows(self, target: str, roles: Sequence[Role]) -> NDArray[np.bool_]:
        """[trial], those of these roles that are rows of the target."""
        place = self.description.tasks.index(target)
        return np.array(
            [
                trial.role in roles and trial.target in (None, target) and bool(member)
                for trial, member in zip(self.trials, self.trained[:, place], strict=True)
            ]
        )

    def table(self, target: str, roles: Sequence[Role] = ("alone", "design")) -> SubsetOutcomes:
        """The subsets of a target as a table to fit a surrogate to."""
        rows = self.rows(target, roles)
        dev_rows = self.dev_rows.get(target)
        return outcomes_of_target(
            self.trained[rows],
            self.outcomes[rows],
            tasks=self.description.tasks,
            target=target,
            higher_is_better=self.description.higher_is_better[target],
            dev_rows=None if dev_rows is None else dev_rows[rows],
        )

    def with_held_out(self, target: str) -> tuple[SubsetOutcomes, NDArray[np.bool_]]:
        """The table with the held-out subsets in it, and which they are, [subset]."""
        everything = self.table(target, ("alone", "design", "held out"))
        known = {row.tobytes() for row in self.table(target).subsets}
        held = np.array([row.tobytes() not in known for row in everything.subsets])
        return everything, held


def train_trials(
    description: TransferStudy, study: Study, *, executor: Executor | None = None
) -> TrialOutcomes:
    """Does all runs that `study` does not hold yet, by `executor`, which is `Auto()` unless given.

    Where the number of subsets depends on the noise, a pilot is first.

    >>> from taskmix.engine import DigitsSource, Fleet, Run
    >>> from taskmix.models import Perceptron
    >>> from taskmix.records import Study
    >>> model = Perceptron(hidden=(4,))
    >>> run = Run(label="demo", source=DigitsSource(), architecture=model, steps=1, seed=0)
    >>> design = SubsetDesign(count=1, alone=1, held_out=3)
    >>> study = TransferStudy(template=run, targets=("half",), design=design)
    >>> measured = train_trials(study, Study("study"), executor=Fleet(workers=1))
    >>> [trial.role for trial in measured.trials], measured.failed
    (['alone', 'design', 'held out', 'held out', 'held out'], 0)
    """
    does = executor or Auto()
    sources = len(description.tasks) - 1
    design = description.design
    single = description.alone()
    count, pilot, noise = design.usual_count(sources), None, None
    if design.precision is not None:
        pilot = min(design.pilot_count(sources), design.most)
        first = [*single, *description.subsets(pilot, whole=True)]
        noise = _pilot_noise(measure_trials(description, first, study, does))
        count = _subsets_for_precision(description, noise, pilot)
    trials = [
        *single,
        *description.subsets(count, whole=pilot is not None),
        *description.held_out(design.held_out_count(count)),
    ]
    measured = measure_trials(description, trials, study, does)
    return replace(measured, pilot=pilot, noise=noise)


def measure_trials(
    description: TransferStudy, trials: Sequence[Trial], study: Study, executor: Executor
) -> TrialOutcomes:
    """Executes the runs of these trials and reads their outcomes; the same run is done once.

    >>> from taskmix.engine import DigitsSource, Fleet, Run
    >>> from taskmix.models import Perceptron
    >>> from taskmix.records import Study
    >>> model = Perceptron(hidden=(4,))
    >>> run = Run(label="demo", source=DigitsSource(), architecture=model, steps=1, seed=0)
    >>> study = TransferStudy(template=run, targets=("half",), design=SubsetDesign(alone=2))
    >>> measured = measure_trials(study, study.alone(), Study("study"), Fleet(workers=1))
    >>> np.isfinite(measured.outcomes).sum(axis=1)  # each run has an outcome of the task it trained
    array([1, 1])
    """
    distinct = {(trial.tasks, trial.run.seed): trial.run for trial in trials}
    done = executor.run(list(distinct.values()), study)
    results = dict(zip(distinct, done, strict=True))
    unfinished = [r.outcome for r in results.values() if not r.is_done and r.outcome != "failed"]
    if unfinished:
        raise RunError(
            f"All {len(results)} runs should have been tried. Found {len(unfinished)} "
            f"{unfinished[0]}. Run the same command again to continue."
        )
    unrecorded = [result.error for result in results.values() if not result.recorded]
    if unrecorded:
        raise RunError(
            f"{len(unrecorded)} of {len(results)} runs could not be recorded. {unrecorded[0]}"
        )
    read = {
        key: _outcomes(description, distinct[key], result, study) for key, result in results.items()
    }
    keys = [(trial.tasks, trial.run.seed) for trial in trials]
    outcomes = np.array([read[key] for key in keys])
    return TrialOutcomes(
        description=description,
        trials=tuple(trials),
        outcomes=outcomes,
        dev_rows=_dev_rows(description, trials, outcomes, study),
        errors=tuple(
            None if results[key].is_done else results[key].error or "failed" for key in keys
        ),
    )


def _outcomes(description: TransferStudy, run: Run, result: Executed, study: Study) -> list[float]:
    """[task], the outcome of each, in the order of the study; NaN where there is none."""
    if not result.is_done or result.summary is None:
        return [np.nan] * len(description.tasks)
    if description.outcome == "margin":
        model, tasks = model_of_run(run, study)
        found = evaluate_margins(model, tasks, MEASURED_ON)
    else:
        found = _scores(description, result.summary)
    return [found.get(name, np.nan) for name in description.tasks]


def _dev_rows(
    description: TransferStudy,
    trials: Sequence[Trial],
    outcomes: NDArray[np.float64],  # [trial, task]
    study: Study,
) -> dict[str, NDArray[np.float32]]:
    """Of targets of which every outcome has its rows [trial, dev row]; those of margins are not kept."""
    found: dict[str, NDArray[np.float32]] = {}
    if description.outcome == "margin":
        return found
    kept = [study.run(trial.run.specification()).credits(description.outcome) for trial in trials]
    for target in description.targets:
        finished = np.isfinite(outcomes[:, description.tasks.index(target)])
        rows = [kept[place].get(target, ()) for place in np.flatnonzero(finished)]
        if len({len(each) for each in rows}) == 1:
            found[target] = np.full((len(trials), len(rows[0])), np.nan, dtype=np.float32)
            found[target][finished] = rows
    return found


def _scores(description: TransferStudy, summary: RunSummary) -> dict[str, float]:
    metrics = {task.name: task.metric for task in description.loaded}
    return {
        score.task: score.value
        for score in summary.scores
        if score.split == MEASURED_ON
        and score.metric == ("loss" if description.outcome == "loss" else metrics[score.task])
    }


def _pilot_noise(pilot: TrialOutcomes) -> float:
    """The largest deviation of a run about a target's linear surrogate."""
    found = [
        fit_linear_surrogate(pilot.table(target)).deviation for target in pilot.description.targets
    ]
    known = [value for value in found if np.isfinite(value) and value > 0]
    if not known:
        raise InputError(
            "The pilot should show how noisy the outcome is. Found that all its runs agree, or too "
            "few of them finished. Ask for a number of subsets instead of a precision."
        )
    return max(known)


def _subsets_for_precision(description: TransferStudy, noise: float, pilot: int) -> int:
    design, sources = description.design, len(description.tasks) - 1
    assert design.precision is not None
    # A row is the mean of the runs of its subset; the noise is that of one run.
    needed = subsets_for_error(
        noise / np.sqrt(design.repeats),
        sources=sources,
        size=design.source_size(sources),
        error=design.precision,
    )
    if needed > design.most:
        raise InputError(
            f"The precision should be within reach of {design.most:,} subsets a target. Found that a "
            f"standard error of {design.precision:g} takes {needed:,}, with the noise of {noise:.3g} "
            "that the pilot shows. Ask for a larger standard error, or allow more subsets."
        )
    return max(needed, pilot)

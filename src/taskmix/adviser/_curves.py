"""Shares from learning curves: more of the batches to tasks whose scores still rise with them.

The evaluations of the first shared runs say how the score of each task rises with its own batches:
score = a − b n^−c after n of them. The sum of the scores after N batches in all is the largest where
one more batch brings the same to every task, b c n^−(c + 1) = λ. What the batches of other tasks teach
a task counts here as its own doing, so this is a proposal for the race and not a result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from taskmix.adviser._candidates import with_shares
from taskmix.adviser._scores import Entry, comparable, mean_comparable
from taskmix.engine import Run
from taskmix.numerics import PowerLaw, fit_power_law
from taskmix.plans import Part, Plan
from taskmix.records import Study
from taskmix.tasks import TaskSet

SHARED_RUNS = ("uniform", "size")  # whose evaluations are read: all tasks in one model, drawn
POWERS = np.linspace(0.1, 1.5, 15)  # that are tried: learning curves are rarely flatter or steeper
FEWEST_EVALUATIONS = 6  # of a task: fewer fit any curve of three numbers
EVEN_SHARE = 0.25  # of the batches, divided evenly: a wrong curve should not starve a task


def dev_curve(
    part: Part, run: Run, tasks: TaskSet, study: Study
) -> list[tuple[float, Mapping[str, float]]]:
    """Batches, and the dev scores of what the part is for, at each evaluation of its run."""
    steps: dict[int, dict[str, float]] = {}
    for row in study.run(run.specification()).scores().to_pylist():
        named = row["task"] in part.scored and row["metric"] == tasks[row["task"]].metric
        if row["split"] == "dev" and named and row["value"] is not None:
            steps.setdefault(row["step"], {})[row["task"]] = row["value"]
    return [(run.cost_of(step), scores) for step, scores in sorted(steps.items())]


def best_so_far(
    entry: Entry, tasks: TaskSet, judged: Sequence[str], study: Study
) -> list[tuple[float, float, Mapping[str, float]]]:
    """Batches, the best mean score until then, and the scores of all tasks where it was reached.

    Models of one way are evaluated in step.
    """
    parts = [
        dev_curve(part, run, tasks, study)
        for part, run in zip(entry.candidate.models, entry.runs, strict=True)
    ]
    found: list[tuple[float, float, Mapping[str, float]]] = []
    best, reached = -np.inf, dict[str, float]()
    for together in zip(*parts, strict=False):  # the shortest has an evaluation less, by rounding
        scores = {name: value for _, some in together for name, value in some.items()}
        score = mean_comparable(tasks, scores, judged)
        if score > best:
            best, reached = score, scores
        if np.isfinite(best):
            found.append((sum(spent for spent, _ in together), best, reached))
    return found


def from_curves(
    entries: Mapping[str, Sequence[Entry]],
    tasks: TaskSet,
    usable: Sequence[str],
    batches: int,
    study: Study,
) -> Plan | None:
    """One model, each task as often as its curve asks for; None where the curves say nothing."""
    points = _points(entries, tasks, usable, study)
    if len(usable) < 2 or min(len(points[name]) for name in usable) < FEWEST_EVALUATIONS:
        return None
    curves = [
        fit_power_law(*np.array(points[name]).T, powers=POWERS, huber=True).best for name in usable
    ]
    if not any(curve.factor < 0 for curve in curves):
        return None
    shares = EVEN_SHARE / len(usable) + (1 - EVEN_SHARE) * best_shares(curves, batches)
    words = "shares by which one more batch brings the same to every task"
    return with_shares("curves", words, usable, shares.tolist())


def _points(
    entries: Mapping[str, Sequence[Entry]], tasks: TaskSet, usable: Sequence[str], study: Study
) -> dict[str, list[tuple[float, float]]]:
    """Own batches and score of each task, at every evaluation."""
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in usable}
    for entry in (entry for name in SHARED_RUNS for entry in entries.get(name, ())):
        ((part, run),) = zip(entry.candidate.models, entry.runs, strict=True)
        shares = part.probabilities
        for spent, scores in dev_curve(part, run, tasks, study):
            for name in usable:
                if np.isfinite(score := scores.get(name, np.nan)):
                    own = max(spent * shares[name], 1.0)
                    found[name].append((own, comparable(tasks[name], score)))
    return found


def best_shares(curves: Sequence[PowerLaw], batches: float) -> NDArray[np.float64]:
    """Of the batches, where the sum of all curves is the largest; a score that falls asks for none."""
    lack = np.array([max(-curve.factor, 0.0) for curve in curves])
    power = np.array([curve.power for curve in curves])

    def wanted(price: float) -> NDArray[np.float64]:
        """Batches of each task at which one more brings so much."""
        found: NDArray[np.float64] = (lack * power * np.exp(-price)) ** (1 / (power + 1))
        return found

    low, high = -100.0, 100.0  # the logarithm of what one more batch brings
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if wanted(middle).sum() > batches else (low, middle)
    found = wanted(low)
    shares: NDArray[np.float64] = found / found.sum()
    return shares

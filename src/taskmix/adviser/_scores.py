"""Scores of candidates from records, on one scale: higher is better, whatever the metric."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from taskmix.adviser._expect import sampling_error
from taskmix.engine import Executed, Run
from taskmix.plans import Plan
from taskmix.tasks import (
    MISSING,
    WRITTEN,
    Task,
    TaskSet,
    WrittenText,
    evaluate_outputs,
    evaluate_written,
    find_metric,
)

SMALLEST_DEVIATION = 1e-12  # of targets that are all alike, by which nothing can be divided
# Standard errors above the constant answer: with a lower bar shuffled tasks pass as learned and spoil
# the mean that ways are compared by, with a higher one small tasks no longer count.
LEARNED_AT = 2.0


@dataclass(frozen=True, kw_only=True)
class Entry:
    """What came of a candidate under one seed."""

    candidate: Plan
    seed: int
    runs: tuple[Run, ...]
    dev: Mapping[str, float]  # the metric of each target, as it is
    test: Mapping[str, float]  # kept for the end; nothing is chosen by it
    batches: float  # until each model's best evaluation, over its models
    folders: tuple[str, ...] = ()  # the names under which the study has the runs


def entry_of(
    candidate: Plan, seed: int, runs: Sequence[Run], results: Sequence[Executed]
) -> Entry | None:
    """The scores that the candidate's models were made for; None where one of them failed."""
    found: dict[str, dict[str, float]] = {"dev": {}, "test": {}}
    batches, folders = 0.0, []
    for part, run, result in zip(candidate.models, runs, results, strict=True):
        summary = result.summary
        if result.outcome not in ("finished", "already finished") or summary is None:
            return None
        folders.append(summary.name)
        batches += (summary.best_step or run.steps) * run.batches_a_step
        for score in summary.scores:
            if score.metric != "loss" and score.task in part.scored and score.split in found:
                found[score.split][score.task] = score.value
    return Entry(
        candidate=candidate,
        seed=seed,
        runs=tuple(runs),
        dev=found["dev"],
        test=found["test"],
        batches=batches,
        folders=tuple(folders),
    )


def comparable(task: Task, value: float) -> float:
    """A score of the task where higher is better and the unit of a regression does not count."""
    if task.metric == "rmse":
        targets = np.asarray(task.splits["train"].targets, dtype=np.float64)
        value /= max(float(np.nanstd(targets)), SMALLEST_DEVIATION)
    return value if find_metric(task.metric).higher_is_better else -value


def mean_comparable(tasks: TaskSet, scores: Mapping[str, float], names: Sequence[str]) -> float:
    """One number for a model: the mean over some tasks; those without a score do not count.

    >>> from taskmix.tasks import digits_tasks
    >>> mean_comparable(digits_tasks(), {"parity": 0.75, "half": 0.5}, ["parity", "half", "prime"])
    0.625
    """
    values = [comparable(tasks[name], scores[name]) for name in names if name in scores]
    known = [value for value in values if value == value]
    return float(np.mean(known)) if known else float("nan")


def judged_targets(targets: tuple[str, ...], unlearned: Sequence[str]) -> tuple[str, ...]:
    """The targets whose scores count; where nothing was learned of any, all of them."""
    return tuple(name for name in targets if name not in unlearned) or targets


def guessed_score(task: Task, split: str = "dev") -> float:
    """The best score that one and the same answer to every row can have.

    Of text that is written it is the commonest answer in training; of bits per byte, each byte as
    often as in training. Pieces depend on the model, so nobody knows how many a guess has right.
    """
    if task.kind in WRITTEN:
        return _guessed_text(task, split)
    targets = task.splits[split].targets
    if task.kind == "regression":
        mean = float(np.nanmean(task.splits["train"].targets))
        outputs = np.full(len(targets), mean)
        return evaluate_outputs(task.metric, outputs=outputs, targets=targets)
    if task.kind == "tagging":
        return 0.0 if task.metric == "entity_f1" else _guessed_class(task, targets)
    return _guessed_class(task, targets)


def _guessed_text(task: Task, split: str) -> float:
    column = "answer" if task.kind == "generation" else "text"
    known, asked = (
        task.splits[name].inputs.column(column).to_pylist() for name in ("train", split)
    )
    if task.metric == "bits_per_byte":
        counts = np.bincount(np.frombuffer("".join(known).encode(), np.uint8), minlength=256) + 0.5
        bits = -np.log2(counts / counts.sum())
        found = np.frombuffer("".join(asked).encode(), np.uint8)
        return float(bits[found].mean()) if len(found) else float("nan")
    if "token_accuracy" in task.metric.split("+"):
        return float("nan")
    ((guess, _),) = Counter(known).most_common(1)
    text = WrittenText(
        rows=len(asked),
        right_rows=asked.count(guess),
        answers=tuple((guess, answer) for answer in asked),
    )
    return evaluate_written(task.metric, text)


def _guessed_class(task: Task, targets: np.ndarray[tuple[int], np.dtype[np.int64]]) -> float:
    known = task.splits["train"].targets
    counts = np.bincount(known[known != MISSING], minlength=len(task.labels)).astype(np.float64)
    shares = np.log((counts + 0.5) / (counts + 0.5).sum())  # an honest guesser of probabilities
    best = -np.inf
    better = 1.0 if find_metric(task.metric).higher_is_better else -1.0
    for label in range(len(task.labels)):
        scores = shares.copy()
        scores[label] += 1e-6 if task.metric == "log_loss" else 100.0
        outputs = np.tile(scores, (len(targets), 1))
        value = evaluate_outputs(task.metric, outputs=outputs, targets=targets, labels=task.labels)
        if value == value:
            best = max(best, better * value)
    return better * best if np.isfinite(best) else float("nan")


def unlearned_tasks(
    entries: Mapping[str, Sequence[Entry]], tasks: TaskSet, targets: Sequence[str]
) -> tuple[str, ...]:
    """Targets on which no run is significantly better (2 standard errors) than one constant answer."""
    found = []
    for name in targets:
        task = tasks[name]
        guess = guessed_score(task)
        scores = [e.dev[name] for some in entries.values() for e in some if name in e.dev]
        if not scores or guess != guess:
            continue
        best = max(comparable(task, score) for score in scores)
        margin = LEARNED_AT * sampling_error(task.metric, guess, len(task.splits["dev"]))
        least = abs(comparable(task, guess + margin) - comparable(task, guess))
        if best - comparable(task, guess) <= least:
            found.append(name)
    return tuple(found)

"""What someone would score who knows the labels' shares and nothing of the inputs."""

from __future__ import annotations

from collections import Counter

import numpy as np

from taskmix.adviser._guess_sets import guessed_set
from taskmix.tasks import (
    MISSING,
    WRITTEN,
    Task,
    WrittenText,
    entity_counts,
    evaluate_outputs,
    evaluate_written,
    find_metric,
)


def guessed_score(task: Task, split: str = "dev") -> float:
    """The best score that one and the same answer to every row can have.

    Of the areas under curves it is that of rows in any order: a half, or the share of positives. Of
    macro-F1 it is one over the number of classes, which answers have that are as frequent as the
    classes: no other shares of answers to whatever the row says have more. Of text that is written
    it is the commonest answer in training; of bits per byte, each byte as often as in training.
    Pieces depend on the model, so nobody knows how many a guess has right. Where rows may have several
    labels, the answer is a set of them: the commonest set for subset accuracy, all labels for macro-F1,
    and as many of the commonest labels as are best for micro-F1.
    """
    if task.kind in WRITTEN:
        return _guessed_text(task, split)
    targets = task.splits[split].targets
    if task.kind == "multilabel":
        return guessed_set(task, split)
    if task.kind == "regression":
        mean = float(np.nanmean(task.splits["train"].targets))
        outputs = np.full(len(targets), mean)
        return evaluate_outputs(task.metric, outputs=outputs, targets=targets)
    if task.metric in ("auc", "average_precision"):
        return _guessed_area(task, split)
    if task.metric == "macro_f1":
        found = np.union1d(*(_known(task, name) for name in ("train", split)))
        return 1 / len(found) if len(found) else float("nan")
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


def _guessed_area(task: Task, split: str) -> float:
    known = _known(task, split)
    shares = np.array([(known == label).mean() for label in range(len(task.labels))])
    defined = (shares > 0) & (shares < 1)
    if not defined.any():
        return float("nan")
    if task.metric == "auc":
        return 0.5
    return float(shares[1]) if len(task.labels) == 2 else float(shares[defined].mean())


def _known(task: Task, split: str) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """The labels of a split's rows that have one."""
    targets = np.asarray(task.splits[split].targets).astype(np.int64)
    known: np.ndarray[tuple[int], np.dtype[np.int64]] = targets[targets != MISSING]
    return known


def rows_of_metric(task: Task, split: str = "dev") -> int:
    """What the metric is a mean over: rows with a target; of entities, those in the split."""
    part = task.splits[split]
    if task.kind in WRITTEN:
        return len(part)
    if task.kind == "tagging":
        if task.metric != "entity_f1":
            return len(part)  # words of a sentence are alike: each counts for less than a row
        targets = np.asarray(part.targets).astype(np.int64)
        return sum(entity_counts(targets, targets, task.labels).gold.values())
    if task.kind == "regression":
        return int((~np.isnan(part.targets)).sum())
    if task.kind == "multilabel":
        return int((part.targets != MISSING).any(axis=1).sum())
    return len(_known(task, split))


def positives_of(task: Task, split: str = "dev") -> int | None:
    """Rows of the class that is looked for; of many classes, their harmonic mean.

    None where the metric does not rest on them.
    """
    if task.metric not in ("auc", "average_precision"):
        return None
    if task.kind == "multilabel":
        counts = (task.splits[split].targets == 1).sum(axis=0)
    else:
        counts = np.bincount(_known(task, split), minlength=len(task.labels))
        if len(counts) == 2:
            return int(counts[1])
    present = counts[counts > 0]
    return int(len(present) / (1 / present).sum()) if len(present) else 0

"""What the same set of labels for every row would score."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from taskmix.tasks import MISSING, Task, evaluate_outputs, find_metric

CERTAIN = 100.0  # the logit of a label that is always said


def guessed_set(task: Task, split: str) -> float:
    """The best score that one and the same set of labels can have, by what train says of labels.

    Rankings of rows in any order have an area of a half, and a precision that is the share of rows.
    """
    marks = task.splits[split].targets
    if task.metric in ("auc", "average_precision"):
        return _guessed_ranking(task.metric, marks)
    better = 1.0 if find_metric(task.metric).higher_is_better else -1.0
    scores = [
        evaluate_outputs(
            task.metric,
            outputs=np.tile(logits, (len(marks), 1)),
            targets=marks,
            labels=task.labels,
        )
        for logits in _answers(task)
    ]
    known = [better * score for score in scores if score == score]
    return better * max(known) if known else float("nan")


def _answers(task: Task) -> Iterator[NDArray[np.float64]]:
    """[label], the logits of answers worth a try."""
    train = task.splits["train"].targets
    having, rows = (train == 1).sum(axis=0), (train != MISSING).sum(axis=0)
    shares = (having + 0.5) / (rows + 1.0)
    yield np.log(shares / (1 - shares))  # an honest guesser of probabilities
    order = np.argsort(-shares, kind="stable")
    for count in range(len(order) + 1):
        yield np.where(np.isin(np.arange(len(order)), order[:count]), CERTAIN, -CERTAIN)
    whole = train[(train != MISSING).all(axis=1)]
    if len(whole):
        sets, times = np.unique(whole, axis=0, return_counts=True)
        yield np.where(sets[times.argmax()] == 1, CERTAIN, -CERTAIN)


def _guessed_ranking(metric: str, marks: NDArray[np.int8]) -> float:
    having, rows = (marks == 1).sum(axis=0), (marks != MISSING).sum(axis=0)
    defined = (having > 0) & (having < rows)
    if not defined.any():
        return float("nan")
    return 0.5 if metric == "auc" else float((having[defined] / rows[defined]).mean())

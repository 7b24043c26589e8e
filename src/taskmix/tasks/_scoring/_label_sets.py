"""Metrics of tasks in which a row may have several labels, and what each row adds to them.

Outputs are logits [row, label], and marks [row, label] are 1 where a row has the label, 0 where not and
`MISSING` where nobody knows: such a cell counts nowhere. A label is predicted where its logit is above
0, that is, where the sigmoid of it is above one half.

| metric              | value                                                                     |
|---------------------|---------------------------------------------------------------------------|
| `micro_f1`          | F1 of all cells together: large labels count most                         |
| `macro_f1`          | the mean F1 of the labels that occur, in the targets or as predictions    |
| `average_precision` | the mean over labels of how well each ranks its rows                      |
| `auc`               | the same, of the area under the ROC curve                                 |
| `accuracy`          | the share of rows of which every label is right (subset accuracy)         |
| `log_loss`          | the mean binary cross-entropy over cells                                  |

scikit-learn's `f1_score(average="macro", zero_division=0)` counts a label as 0 that has no row and was
never predicted; here it is left out, as `zero_division=nan` does, because nothing a model does about
it is right or wrong. `average_precision` and `auc` leave out labels that all rows have, or none, which
cannot be ranked, and are NaN where nothing is left; F1 is then 0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from taskmix.tasks._scoring._ranking import (
    Values,
    area_credits,
    area_of_ranks,
    precision_credits,
    precision_of_ranks,
    ratio_credits,
)
from taskmix.tasks._task import MISSING

Marks = NDArray[np.generic]  # [row, label]
Truths = NDArray[np.bool_]


def micro_f1(outputs: Values, marks: Marks) -> float:
    right, size = (each.sum() for each in _rights_and_sizes(outputs, marks))
    return float(right / size) if size else 0.0


def macro_f1(outputs: Values, marks: Marks) -> float:
    right, size = (each.sum(axis=0) for each in _rights_and_sizes(outputs, marks))
    return float((right[size > 0] / size[size > 0]).mean()) if size.any() else 0.0


def subset_accuracy(outputs: Values, marks: Marks) -> float:
    return float(_all_right(outputs, marks).mean())


def log_loss(outputs: Values, marks: Marks) -> float:
    known = marks != MISSING
    return float(_cell_losses(outputs, marks)[known].mean())


def auc(outputs: Values, marks: Marks) -> float:
    return _mean_of_labels(area_of_ranks, outputs, marks)


def average_precision(outputs: Values, marks: Marks) -> float:
    return _mean_of_labels(precision_of_ranks, outputs, marks)


def _rights_and_sizes(outputs: Values, marks: Marks) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """[row, label] twice the true positives, and true and predicted ones together: F1 is the ratio."""
    true, predicted = marks == 1, (outputs > 0) & (marks != MISSING)
    return 2 * (true & predicted).astype(np.int64), true.astype(np.int64) + predicted


def _all_right(outputs: Values, marks: Marks) -> Truths:
    right: Truths = ((outputs > 0) == (marks == 1)) | (marks == MISSING)
    return np.asarray(right.all(axis=1), dtype=np.bool_)


def _cell_losses(outputs: Values, marks: Marks) -> Values:
    """[row, label], 0 where nobody knows."""
    losses = np.logaddexp(0.0, np.where(marks == 1, -outputs, outputs))
    return np.where(marks == MISSING, 0.0, losses)


def _mean_of_labels(
    measure: Callable[[Values, Truths], float], outputs: Values, marks: Marks
) -> float:
    found = []
    for label in range(outputs.shape[1]):
        known = marks[:, label] != MISSING
        found.append(measure(outputs[known, label], marks[known, label] == 1))
    defined = [each for each in found if not np.isnan(each)]
    return float(np.mean(defined)) if defined else float("nan")


def _micro_f1_credits(outputs: Values, marks: Marks) -> Values:
    right, size = (each.sum(axis=1) for each in _rights_and_sizes(outputs, marks))
    return ratio_credits(right, size)


def _macro_f1_credits(outputs: Values, marks: Marks) -> Values:
    right, size = _rights_and_sizes(outputs, marks)
    occur = np.flatnonzero(size.any(axis=0))
    if not len(occur):
        return np.zeros(len(marks))
    each = [ratio_credits(right[:, label], size[:, label]) for label in occur]
    return np.asarray(np.mean(each, axis=0), dtype=np.float64)


def _accuracy_credits(outputs: Values, marks: Marks) -> Values:
    return _all_right(outputs, marks).astype(np.float64)


def _log_loss_credits(outputs: Values, marks: Marks) -> Values:
    return ratio_credits(_cell_losses(outputs, marks).sum(axis=1), (marks != MISSING).sum(axis=1))


def _credits_of_labels(
    measure: Callable[[Values, Truths], Values | None], outputs: Values, marks: Marks
) -> Values:
    found = []
    for label in range(outputs.shape[1]):
        known = marks[:, label] != MISSING
        own = measure(outputs[known, label], marks[known, label] == 1)
        if own is not None:
            value = own.mean()
            whole = np.full(len(marks), value)  # a row whose cell nobody knows moves nothing
            whole[known] += (own - value) * (len(marks) / known.sum())
            found.append(whole)
    return np.mean(found, axis=0) if found else np.full(len(marks), np.nan)


def _auc_credits(outputs: Values, marks: Marks) -> Values:
    return _credits_of_labels(area_credits, outputs, marks)


def _average_precision_credits(outputs: Values, marks: Marks) -> Values:
    return _credits_of_labels(precision_credits, outputs, marks)


SET_CREDITS: Mapping[str, Callable[[Values, Marks], Values]] = MappingProxyType(
    {
        "accuracy": _accuracy_credits,
        "micro_f1": _micro_f1_credits,
        "macro_f1": _macro_f1_credits,
        "auc": _auc_credits,
        "average_precision": _average_precision_credits,
        "log_loss": _log_loss_credits,
    }
)

"""The metric of classes where nobody has named one: accuracy, unless a constant answer is nearly right.

Of two classes with one in twenty rows, "no" to everything has accuracy 0.95, and all that is learned
shows in the digits after it. The area under the ROC curve asks whether the rare rows rank above the
others, whatever their share. Of many classes macro-F1 counts each of them alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from taskmix.tasks._task import MISSING

RARE = 0.2  # of the rows, of two classes: below it a constant answer has four fifths of the scale
TIMES_EVEN = 2.0  # even shares, of many classes: from here on the commonest class decides accuracy
CONSTANT = 0.2  # accuracy of a constant answer: one that has less misleads nobody
FEWEST_ROWS = 30  # with a label: the shares of fewer are chance


def metric_of_imbalance(labels: tuple[str, ...], targets: Mapping[str, NDArray[Any]]) -> str | None:
    """The metric that the shares of the classes ask for; None where accuracy will do.

    `targets` are those of each split. Two classes that are not both in every split have no area.

    >>> metric_of_imbalance(("no", "yes"), {"train": np.arange(100) < 6})
    'auc'
    """
    if "train" not in targets or len(labels) < 2:
        return None
    counts = {split: _counts(values, len(labels)) for split, values in targets.items()}
    train = counts["train"]
    if train.sum() < FEWEST_ROWS:
        return None
    if len(labels) == 2:
        both = all(each.min() > 0 for split, each in counts.items() if each.sum())
        return "auc" if both and train.min() < RARE * train.sum() else None
    constant = train.max() / train.sum()
    return "macro_f1" if constant >= max(TIMES_EVEN / (train > 0).sum(), CONSTANT) else None


def class_shares(labels: tuple[str, ...], targets: NDArray[Any]) -> NDArray[np.float64]:
    """Of the rows with a label, the share of each class.

    >>> class_shares(("no", "yes"), np.array([0, 0, 0, 1, MISSING])).tolist()
    [0.75, 0.25]
    """
    counts = _counts(targets, len(labels)).astype(np.float64)
    return np.asarray(counts / max(counts.sum(), 1.0), dtype=np.float64)


def _counts(targets: NDArray[Any], classes: int) -> NDArray[np.int64]:
    known = np.asarray(targets)
    known = known[known != MISSING].astype(np.int64)
    return np.asarray(np.bincount(known, minlength=classes), dtype=np.int64)

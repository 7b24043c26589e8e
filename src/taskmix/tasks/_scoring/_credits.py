r"""What each row adds to a metric: one value a row whose mean is the metric's value.

Two models that are scored on the same rows share what is easy and what is hard in these rows, so the
error of their difference is found row by row: it is that of the mean of the differences of credits.

Of a mean over rows (accuracy, log loss) the credit is the row's own value. Of other metrics it is the
value plus the row's influence on it (the infinitesimal jackknife): how much the value would move if
the row weighed more. The mean of all influences is 0, and the standard deviation of credits divided by
the root of their number is the metric's standard error over rows of the same kind.

    Efron and Tibshirani, "An Introduction to the Bootstrap", 1993, Sections 11.5 and 22.
    DeLong, DeLong and Clarke-Pearson, Biometrics 44 (1988), Eqs. 3 to 5: placements, for the area
    under the curve.

Where a metric is at a bound (nothing right; predictions of one class) no row has influence and the
spread is 0, which says nothing of the error.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from taskmix.tasks._scoring._entities import sentence_chunks
from taskmix.tasks._scoring._label_sets import SET_CREDITS
from taskmix.tasks._scoring._metrics import ScoredRows, evaluate_written, find_metric, scored_rows
from taskmix.tasks._scoring._ranking import (
    Values,
    area_credits,
    precision_credits,
    ratio_credits,
    share_below,
)
from taskmix.tasks._scoring._written import WrittenText


def row_credits(
    metric: str,
    *,
    outputs: NDArray[Any],  # logits [row, class] or [row, word, class]; values [row] or [row, 1]
    targets: NDArray[Any],  # [row] or [row, word]
    labels: tuple[str, ...] = (),
    sentences: NDArray[Any] | None = None,  # [sentence + 1], where every token is a row
) -> Values:
    """What each row, or each sentence, adds to `evaluate_outputs`: values whose mean is the metric.

    A row without a target has NaN, so that the places of two models' rows are the same; all of them
    have where the metric itself is NaN.

    >>> logits, targets = np.array([[2.0, 1.0], [0.0, 3.0], [1.0, 0.0]]), np.array([0, 1, 1])
    >>> row_credits("accuracy", outputs=logits, targets=targets, labels=("no", "yes")).tolist()
    [1.0, 1.0, 0.0]
    >>> row_credits("rmse", outputs=np.array([1.0, 4.0]), targets=np.array([3.0, 4.0])).round(3).tolist()
    [2.121, 0.707]
    """
    rows, kept = scored_rows(metric, outputs, targets, labels, sentences)
    units = kept if rows.sentences is None else np.diff(rows.sentences) > 0
    found = np.full(len(units), np.nan)
    if rows.are_sound:
        found[units] = np.mean([_credits(name, rows) for name in metric.split("+")], axis=0)
    return found


def _credits(metric: str, rows: ScoredRows) -> Values:
    """Of each row, or of each sentence that has words to score."""
    if rows.are_sets:
        return SET_CREDITS[metric](rows.outputs, rows.targets)
    if rows.sentences is None:
        if metric == "entity_f1":  # all of it is one sentence: no row has a share of its own
            return np.full(len(rows.targets), find_metric(metric).compute(rows))
        return CREDITS[metric](rows)
    lengths = np.diff(rows.sentences)
    if metric == "entity_f1":
        chunks = sentence_chunks(rows.classes, rows.targets, rows.labels, rows.sentences)
        return ratio_credits(2 * chunks[0][lengths > 0], chunks[1][lengths > 0])
    # The influence of a sentence is the sum of those of its words.
    words = CREDITS[metric](rows)
    value, starts = words.mean(), rows.sentences[:-1][lengths > 0]
    sums = np.add.reduceat(words - value, starts)
    result: Values = value + sums * (len(starts) / len(words))
    return result


def _accuracy(rows: ScoredRows) -> Values:
    return np.asarray(rows.classes == rows.targets, dtype=np.float64)


def _log_loss(rows: ScoredRows) -> Values:
    result: Values = -rows.log_probabilities[np.arange(len(rows.targets)), rows.targets]
    return result


def _rmse(rows: ScoredRows) -> Values:
    squares = (rows.outputs - rows.targets) ** 2
    value = np.sqrt(squares.mean())
    if value == 0:
        return np.zeros(len(squares))
    # Divided by the value twice, not by its square, which may be too large or too small a number.
    result: Values = value / 2 * (1 + squares / value / value)
    return result


def _f1(rows: ScoredRows) -> Values:
    true, predicted = rows.targets == 1, rows.classes == 1
    return ratio_credits(2 * (true & predicted), true.astype(int) + predicted)


def _macro_f1(rows: ScoredRows) -> Values:
    # The mean of the classes' ratios; a row is in the sums of its true and its predicted class.
    count, sizes = len(rows.targets), rows.counts[0] + rows.counts[1]
    per_row = count / np.maximum(sizes, 1)
    ratios = 2 * rows.counts[2] / np.maximum(sizes, 1)
    true, predicted = rows.targets, rows.classes
    changes = (
        2 * (true == predicted) * per_row[true]
        - ratios[true] * per_row[true]
        - ratios[predicted] * per_row[predicted]
    )
    result: Values = ratios[sizes > 0].mean() + changes / (sizes > 0).sum()
    return result


def _matthews(rows: ScoredRows) -> Values:
    # Shares of rows in place of counts: a covariance divided by the root of two variances.
    count = len(rows.targets)
    true, predicted = rows.counts[0] / count, rows.counts[1] / count
    right = rows.classes == rows.targets
    of_true, of_predicted = true[rows.targets], predicted[rows.classes]
    crossed = predicted[rows.targets] + true[rows.classes]
    return _correlation_credits(
        right.mean() - true @ predicted,
        (right - right.mean()) - (crossed - 2 * true @ predicted),
        (1 - true @ true, -2 * (of_true - true @ true)),
        (1 - predicted @ predicted, -2 * (of_predicted - predicted @ predicted)),
    )


def _pearson(rows: ScoredRows) -> Values:
    a, b = _centred(rows.outputs), _centred(rows.targets.astype(np.float64))
    products = a * b
    return _correlation_credits(
        products.mean(),
        products - products.mean(),
        ((a * a).mean(), a * a - (a * a).mean()),
        ((b * b).mean(), b * b - (b * b).mean()),
    )


def _spearman(rows: ScoredRows) -> Values:
    # Pearson's of the shares of rows below each, which a row that weighs more changes as well.
    a, b = (share_below(np.sort(each), each) - 0.5 for each in (rows.outputs, rows.targets))
    above_a, above_b = _MeansAbove(a), _MeansAbove(b)

    def moment(first: Values, second: Values, changes: Values) -> tuple[float, Values]:
        value = float((first * second).mean())
        return value, first * second + changes - 3 * value

    covariance = moment(a, b, above_a.of(b) + above_b.of(a))
    return _correlation_credits(
        *covariance,
        moment(a, a, 2 * above_a.of(a)),
        moment(b, b, 2 * above_b.of(b)),
    )


def _correlation_credits(
    covariance: float,
    changes: Values,  # [row], the influence of each row on it
    first: tuple[float, Values],  # the variance of one side, and the influence of each row on it
    second: tuple[float, Values],
) -> Values:
    """[row] of a covariance divided by the root of two variances; 0 where one of them is."""
    if first[0] <= 0 or second[0] <= 0:
        return np.zeros(len(changes))
    spread = np.sqrt(first[0]) * np.sqrt(second[0])
    value = covariance / spread
    scaled = first[1] / first[0] + second[1] / second[0]
    result: Values = value + changes / spread - value / 2 * scaled
    return result


def _centred(values: Values) -> Values:
    # As `pearson` itself: squares of tiny or huge values stay in range.
    if np.ptp(values) == 0:
        return np.zeros(len(values))
    centred = values - values.mean()
    centred = centred / np.abs(centred).max()
    result: Values = centred - centred.mean()
    return result


class _MeansAbove:
    """For each row, the sum of something over the rows that lie above it, those beside it half."""

    def __init__(self, heights: Values) -> None:  # [row]
        self._order = np.argsort(heights, kind="stable")
        ordered = heights[self._order]
        # [row] how many lie below it, and how many below or beside it.
        self._below = np.searchsorted(ordered, heights, side="left")
        self._beside = np.searchsorted(ordered, heights, side="right")

    def of(self, values: Values) -> Values:
        """[row] the sum divided by the number of all rows."""
        sums = np.concatenate([[0.0], np.cumsum(values[self._order])])
        above = sums[-1] - (sums[self._below] + sums[self._beside]) / 2
        result: Values = above / len(values)
        return result


def _auc(rows: ScoredRows) -> Values:
    return _of_each_class(area_credits, rows)


def _average_precision(rows: ScoredRows) -> Values:
    return _of_each_class(precision_credits, rows)


def _of_each_class(
    measure: Callable[[Values, NDArray[np.bool_]], Values | None], rows: ScoredRows
) -> Values:
    """Of the second of two classes; of more, the mean of each against the rest, where defined."""
    if len(rows.labels) == 2:
        found = [measure(rows.outputs[:, 1] - rows.outputs[:, 0], rows.targets == 1)]
    else:
        scores = rows.log_probabilities
        found = [
            measure(scores[:, label], rows.targets == label) for label in range(scores.shape[1])
        ]
    defined = [each for each in found if each is not None]
    return np.mean(defined, axis=0) if defined else np.full(len(rows.targets), np.nan)


CREDITS: Mapping[str, Callable[[ScoredRows], Values]] = MappingProxyType(
    {
        "accuracy": _accuracy,
        "f1": _f1,
        "macro_f1": _macro_f1,
        "matthews": _matthews,
        "pearson": _pearson,
        "spearman": _spearman,
        "auc": _auc,
        "average_precision": _average_precision,
        "rmse": _rmse,
        "log_loss": _log_loss,
    }
)


def written_credits(
    metric: str,
    *,
    loss: NDArray[
        Any
    ],  # [row], the sum over its pieces of minus the logarithm of their probability
    right: NDArray[Any],  # [row], pieces that were the first choice
    pieces: NDArray[Any],  # [row]
    sizes: NDArray[Any] | None = None,  # [row], the bytes that its pieces spell
    answers: Sequence[tuple[str, str]] = (),  # [row], the model's and the true one
) -> NDArray[np.float64]:
    """What each row adds to `evaluate_written`: values whose mean is the metric; NaN without pieces.

    >>> loss, right, pieces = np.array([0.1, 2.0]), np.array([2, 1]), np.array([2, 2])
    >>> written_credits("exact_match", loss=loss, right=right, pieces=pieces).tolist()
    [1.0, 0.0]
    """
    known = pieces > 0
    found = np.full(len(pieces), np.nan)
    if np.isnan(loss).any():
        return found

    def of_metric(name: str) -> NDArray[np.float64]:
        if name == "exact_match":
            return np.asarray((right == pieces)[known], dtype=np.float64)
        if name == "token_accuracy":
            return ratio_credits(right[known], pieces[known])
        if name == "loss":
            return ratio_credits(loss[known], pieces[known])
        if name == "bits_per_byte":
            if sizes is None or sizes[known].sum() == 0:
                return np.full(known.sum(), np.nan)
            return ratio_credits(loss[known] / math.log(2), sizes[known])
        alone = (
            WrittenText(answers=(pair,))
            for pair, is_known in zip(answers, known, strict=True)
            if is_known
        )
        return np.array([evaluate_written(name, text) for text in alone])

    found[known] = np.mean([of_metric(name) for name in metric.split("+")], axis=0)
    return found

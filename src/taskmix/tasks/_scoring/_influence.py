r"""Metrics of outputs beside targets: a value, and how much it would move if a row weighed more.

    Efron and Tibshirani, "An Introduction to the Bootstrap", 1993, Sections 11.5 and 22: the
    infinitesimal jackknife, by which the standard deviation of these influences divided by the root of
    their number is the standard error of the value over rows of the same kind. Their mean is 0.
    DeLong, DeLong and Clarke-Pearson, Biometrics 44 (1988), Eqs. 3 to 5: placements, for the area
    under the curve.
    Gorodkin, Computational Biology and Chemistry 28 (2004), Eq. 8: Matthews' correlation for any number
    of classes.

Where a metric is at a bound (nothing right; predictions of one class) no row has influence.

Of rows that may have several labels the marks [row, label] are 1 where a row has the label, 0 where not
and `MISSING` where nobody knows: such a cell counts nowhere. A label is predicted where its logit is
above 0. `micro_f1` is that of all cells together; `macro_f1`, `auc` and `average_precision` are means
over labels, the first over those that occur, in the targets or as predictions, the others over those
that some rows have and others have not; `accuracy` is the share of rows of which every label is right,
and `log_loss` the mean binary cross-entropy over cells. scikit-learn's `f1_score(average="macro",
zero_division=0)` counts a label as 0 that has no row and was never predicted; here it is left out, as
`zero_division=nan` does, because nothing a model does about it is right or wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from taskmix.tasks._task import MISSING

Values: TypeAlias = NDArray[np.float64]
Moves: TypeAlias = tuple[float, Values]  # a value, and [row] the influence of each on it
Marks: TypeAlias = NDArray[np.generic]  # [row, label]
Ranking: TypeAlias = Callable[[Values, NDArray[np.bool_]], "Moves | None"]


@dataclass(frozen=True, eq=False)
class ScoredRows:
    """Outputs beside their targets; rows without a target are gone."""

    outputs: Values  # [row, class], logits, or [row], values or classes
    targets: NDArray[Any]  # [row], or marks [row, label] where a row has several labels
    labels: tuple[str, ...] = ()
    sentences: NDArray[np.int64] | None = None  # [sentence + 1], where rows are tokens

    @property
    def are_sets(self) -> bool:
        """Whether a row may have several labels."""
        return self.targets.ndim == 2

    @property
    def are_sound(self) -> bool:
        """Whether there is something to score, and no output is NaN."""
        return len(self.targets) > 0 and not np.isnan(self.outputs).any()

    @cached_property
    def classes(self) -> NDArray[np.int64]:
        """[row], the class with the largest logit; the first of equals."""
        found = self.outputs if self.outputs.ndim == 1 else self.outputs.argmax(axis=1)
        return np.asarray(found, dtype=np.int64)

    @cached_property
    def log_probabilities(self) -> Values:
        """[row, class]"""
        shifted = self.outputs - self.outputs.max(axis=1, keepdims=True)
        result: Values = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
        return result


def mean_of(values: NDArray[Any]) -> Moves:
    """Of [row]."""
    value = float(values.mean())
    return value, values - value


def ratio_of(parts: NDArray[Any], wholes: NDArray[Any]) -> Moves:
    """The sum of `parts` divided by that of `wholes`, [row] both; where that is 0, the ratio is too."""
    total = wholes.sum()
    if total == 0:
        return 0.0, np.zeros(len(parts))
    ratio = float(parts.sum() / total)
    return ratio, (parts - ratio * wholes) * (len(wholes) / total)


def _mean_of_moves(found: Sequence[Moves | None], rows: int) -> Moves:
    """Of those that are defined; NaN without any."""
    known = [each for each in found if each is not None]
    if not known:
        return float("nan"), np.full(rows, np.nan)
    return float(np.mean([each[0] for each in known])), np.mean([each[1] for each in known], axis=0)


def area_of(scores: Values, positive: NDArray[np.bool_]) -> Moves | None:
    """How often a positive row ranks above a negative one, ties half (Mann and Whitney)."""
    above, below = np.sort(scores[positive]), np.sort(scores[~positive])
    if len(above) == 0 or len(below) == 0:
        return None
    # A row's placement: the share of the rows of the other kind that it is on the right side of.
    placements = np.empty(len(scores))
    placements[positive] = _share_below(below, scores[positive])
    placements[~positive] = 1 - _share_below(above, scores[~positive])
    area = float(placements[positive].mean())
    shares = np.where(positive, len(above), len(below)) / len(scores)
    return area, (placements - area) / shares


def precision_of(scores: Values, positive: NDArray[np.bool_]) -> Moves | None:
    """The mean over positive rows of the precision among all that rank as high (ties together)."""
    count, total = int(positive.sum()), len(scores)
    if count in (0, total):
        return None
    order = np.argsort(-scores, kind="stable")
    ordered = -scores[order]
    last = np.searchsorted(ordered, ordered, side="right")  # rows at or above each one, by score
    precision = np.cumsum(positive[order])[last - 1] / last
    value = float(precision[positive[order]].mean())
    # A row moves the precision at its own place and at every positive row's below it or beside it.
    weights = np.where(positive[order], 1 / last, 0.0)
    first = np.searchsorted(ordered, ordered, side="left")

    def at_or_below(values: Values) -> Values:
        sums = np.concatenate([[0.0], np.cumsum(values)])
        result: Values = sums[-1] - sums[first]
        return result

    moved = positive[order] * at_or_below(weights) - at_or_below(weights * precision)
    changes = np.empty(total)
    changes[order] = (positive[order] * (precision - value) + moved) * (total / count)
    return value, changes


def _share_below(ordered: Values, scores: Values) -> Values:
    """[row] the share of some ordered scores that is lower than each, equal ones half."""
    lower = np.searchsorted(ordered, scores, side="left")
    result: Values = (lower + np.searchsorted(ordered, scores, side="right")) / (2 * len(ordered))
    return result


def _correlation(covariance: Moves, first: Moves, second: Moves) -> Moves:
    """A covariance divided by the root of two variances; 0 where one of them is."""
    if first[0] <= 0 or second[0] <= 0:
        return 0.0, np.zeros(len(covariance[1]))
    spread = np.sqrt(first[0]) * np.sqrt(second[0])
    value = float(covariance[0] / spread)
    scaled = first[1] / first[0] + second[1] / second[0]
    return float(np.clip(value, -1.0, 1.0)), covariance[1] / spread - value / 2 * scaled


# Of one answer a row.


def _accuracy(rows: ScoredRows) -> Moves:
    return mean_of((rows.classes == rows.targets).astype(np.float64))


def _log_loss(rows: ScoredRows) -> Moves:
    return mean_of(-rows.log_probabilities[np.arange(len(rows.targets)), rows.targets])


def _rmse(rows: ScoredRows) -> Moves:
    squares = (rows.outputs - rows.targets) ** 2
    value = float(np.sqrt(squares.mean()))
    if value == 0:
        return 0.0, np.zeros(len(squares))
    # Divided by the value twice, not by its square, which may be too large or too small a number.
    return value, value / 2 * (squares / value / value - 1)


def _f1(rows: ScoredRows) -> Moves:
    # Of the second class, the one that is looked for.
    true, predicted = rows.targets == 1, rows.classes == 1
    return ratio_of(2 * (true & predicted), true.astype(int) + predicted)


def _macro_f1(rows: ScoredRows) -> Moves:
    # The mean of the ratios of the classes that occur, in the targets or among the predictions; a row
    # is in the sums of its true and its predicted class.
    true, predicted = rows.targets, rows.classes
    right = true == predicted
    sizes = np.zeros(len(rows.labels)) + np.bincount(true, minlength=len(rows.labels))
    sizes += np.bincount(predicted, minlength=len(rows.labels))
    both = np.bincount(true[right], minlength=len(rows.labels))
    per_row = len(true) / np.maximum(sizes, 1)
    ratios = 2 * both / np.maximum(sizes, 1)
    changes = (
        2 * right * per_row[true]
        - ratios[true] * per_row[true]
        - ratios[predicted] * per_row[predicted]
    )
    return float(ratios[sizes > 0].mean()), changes / (sizes > 0).sum()


def _matthews(rows: ScoredRows) -> Moves:
    # Shares of rows in place of counts: a covariance divided by the root of two variances.
    count = len(rows.targets)
    true, predicted = (
        np.bincount(each, minlength=len(rows.labels)) / count
        for each in (rows.targets, rows.classes)
    )
    right = rows.classes == rows.targets
    of_true, of_predicted = true[rows.targets], predicted[rows.classes]
    crossed = predicted[rows.targets] + true[rows.classes]
    covariance = right.mean() - true @ predicted
    return _correlation(
        (covariance, (right - right.mean()) - (crossed - 2 * true @ predicted)),
        (float(1 - true @ true), -2 * (of_true - true @ true)),
        (float(1 - predicted @ predicted), -2 * (of_predicted - predicted @ predicted)),
    )


def _pearson(rows: ScoredRows) -> Moves:
    a, b = _centred(rows.outputs), _centred(rows.targets.astype(np.float64))
    return _correlation(mean_of(a * b), mean_of(a * a), mean_of(b * b))


def _centred(values: Values) -> Values:
    if np.ptp(values) == 0:
        return np.zeros(len(values))
    # Scaled by the largest deviation: squares of tiny or huge values stay in range. Centred twice: the
    # mean of values that are large and close together is rounded.
    centred = values - values.mean()
    centred = centred / np.abs(centred).max()
    result: Values = centred - centred.mean()
    return result


def _spearman(rows: ScoredRows) -> Moves:
    # Pearson's of the shares of rows below each, which a row that weighs more changes as well.
    a, b = (_share_below(np.sort(each), each) - 0.5 for each in (rows.outputs, rows.targets))

    def moment(first: Values, second: Values, changes: Values) -> Moves:
        value = float((first * second).mean())
        return value, first * second + changes - 3 * value

    covariance = moment(a, b, _mean_above(a, b) + _mean_above(b, a))
    return _correlation(
        covariance, moment(a, a, 2 * _mean_above(a, a)), moment(b, b, 2 * _mean_above(b, b))
    )


def _mean_above(heights: Values, values: Values) -> Values:
    """[row] the sum of values over the rows that lie above it, those beside it half, by all rows."""
    order = np.argsort(heights, kind="stable")
    ordered = heights[order]
    sums = np.concatenate([[0.0], np.cumsum(values[order])])
    below = sums[np.searchsorted(ordered, heights, side="left")]
    beside = sums[np.searchsorted(ordered, heights, side="right")]
    result: Values = (sums[-1] - (below + beside) / 2) / len(values)
    return result


def _ranked(ranking: Ranking, rows: ScoredRows) -> Moves:
    # Two classes: the second against the first, by the difference of logits, which does not saturate.
    # More: the mean of each against the rest, over the classes for which there is something to rank.
    if len(rows.labels) == 2:
        found = [ranking(rows.outputs[:, 1] - rows.outputs[:, 0], rows.targets == 1)]
    else:
        scores = rows.log_probabilities
        found = [ranking(scores[:, each], rows.targets == each) for each in range(scores.shape[1])]
    return _mean_of_moves(found, len(rows.targets))


OF_ROWS: Mapping[str, Callable[[ScoredRows], Moves]] = MappingProxyType(
    {
        "accuracy": _accuracy,
        "f1": _f1,
        "macro_f1": _macro_f1,
        "matthews": _matthews,
        "pearson": _pearson,
        "spearman": _spearman,
        "auc": lambda rows: _ranked(area_of, rows),
        "average_precision": lambda rows: _ranked(precision_of, rows),
        "rmse": _rmse,
        "log_loss": _log_loss,
    }
)


# Of several labels a row.


def _rights_and_sizes(outputs: Values, marks: Marks) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """[row, label] twice the true positives, and true and predicted ones together: F1 is the ratio."""
    true, predicted = marks == 1, (outputs > 0) & (marks != MISSING)
    return 2 * (true & predicted).astype(np.int64), true.astype(np.int64) + predicted


def _micro_f1_of_sets(outputs: Values, marks: Marks) -> Moves:
    right, size = (each.sum(axis=1) for each in _rights_and_sizes(outputs, marks))
    return ratio_of(right, size)


def _macro_f1_of_sets(outputs: Values, marks: Marks) -> Moves:
    right, size = _rights_and_sizes(outputs, marks)
    occur = np.flatnonzero(size.any(axis=0))
    if not len(occur):
        return 0.0, np.zeros(len(marks))
    return _mean_of_moves([ratio_of(right[:, each], size[:, each]) for each in occur], len(marks))


def _accuracy_of_sets(outputs: Values, marks: Marks) -> Moves:
    right = ((outputs > 0) == (marks == 1)) | (marks == MISSING)
    return mean_of(right.all(axis=1).astype(np.float64))


def _log_loss_of_sets(outputs: Values, marks: Marks) -> Moves:
    losses = np.logaddexp(0.0, np.where(marks == 1, -outputs, outputs))
    known = marks != MISSING
    return ratio_of(np.where(known, losses, 0.0).sum(axis=1), known.sum(axis=1))


def _ranked_of_sets(ranking: Ranking, outputs: Values, marks: Marks) -> Moves:
    def of_label(label: int) -> Moves | None:
        known = marks[:, label] != MISSING
        found = ranking(outputs[known, label], marks[known, label] == 1)
        if found is None:
            return None
        whole = np.zeros(len(marks))  # a row whose cell nobody knows moves nothing
        whole[known] = found[1] * (len(marks) / known.sum())
        return found[0], whole

    return _mean_of_moves([of_label(label) for label in range(outputs.shape[1])], len(marks))


OF_SETS: Mapping[str, Callable[[Values, Marks], Moves]] = MappingProxyType(
    {
        "accuracy": _accuracy_of_sets,
        "micro_f1": _micro_f1_of_sets,
        "macro_f1": _macro_f1_of_sets,
        "auc": lambda outputs, marks: _ranked_of_sets(area_of, outputs, marks),
        "average_precision": lambda outputs, marks: _ranked_of_sets(precision_of, outputs, marks),
        "log_loss": _log_loss_of_sets,
    }
)

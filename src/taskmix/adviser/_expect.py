r"""What score to expect of a plan that is trained once more and measured on rows nobody has seen.

The mean of the dev scores says where it lies. How far off a new score may be has three causes: the
new run has another seed, the dev rows were a sample, and so will be the test rows:

    variance = s² (1 + 1/n) + e(dev)² + e(test)²

with s the deviation over n seeds and e the sampling error of the metric on so many rows. The interval
is a prediction interval for one score, not a confidence interval for a mean.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from taskmix.errors import InputError
from taskmix.numerics import Interval, student_quantile

FEWEST_DEGREES = 3  # of the seeds' spread: two seeds would say "anything", other sources are known


def expect_score(
    scores: Sequence[float],  # [seed], on dev
    metric: str,
    *,
    dev_rows: int,
    test_rows: int,
    dev_positives: int
    | None = None,  # of two classes' rows: what AUC and average precision rest on
    test_positives: int | None = None,
    spread: float | None = None,  # over seeds, where it is known from more than these runs
    level: float = 0.9,
) -> Interval:
    """The score of a new run on new rows."""
    sample = np.asarray(scores, dtype=np.float64)
    if not len(sample) or not np.isfinite(sample).all():
        raise InputError(f"A score to expect should rest on finite dev scores. Found {sample}.")
    mean, count = float(sample.mean()), len(sample)
    if spread is None:
        spread = float(sample.std(ddof=1)) if count > 1 else 0.0
    variance = spread**2 * (1 + 1 / count)
    for rows, positives in ((dev_rows, dev_positives), (test_rows, test_positives)):
        variance += sampling_error(metric, mean, rows, positives=positives) ** 2
    reach = student_quantile(level, max(count - 1, FEWEST_DEGREES)) * math.sqrt(variance)
    least, most = _range(metric)
    return Interval(mean, max(mean - reach, least), min(mean + reach, most), count, level)


def _range(metric: str) -> tuple[float, float]:
    match metric:
        case "rmse" | "log_loss" | "bits_per_byte":
            return 0.0, math.inf
        case "pearson" | "spearman" | "matthews":
            return -1.0, 1.0
        case _:
            return 0.0, 1.0


def sampling_error(metric: str, value: float, rows: int, *, positives: int | None = None) -> float:
    """The standard error of a metric at this value, because the rows are a sample.

    A share of right answers has its binomial error, and the F measures are near enough to one. The
    others have their textbook error for large samples: (1 − r²) / √n of a correlation, which
    Matthews' coefficient is as well, that of the root of a mean of squares, and for the loss that
    of a mean whose terms spread as far as they are large. What ranks rows of two classes rests on
    the `positives` among them (half of the rows unless said): the area under the ROC curve by Hanley
    and McNeil (Radiology, 1982), average precision as a share of the positives (Boyd, Eng and Page,
    ECML 2013), which is twice too large where nothing is known of the rows.
    """
    if rows < 1:
        raise InputError(f"A metric should be of at least one row. Found {rows}.")
    match metric:
        case "rmse":
            return abs(value) / math.sqrt(2 * rows)
        case "log_loss" | "bits_per_byte":
            return abs(value) / math.sqrt(rows)
        case "pearson" | "spearman" | "matthews":
            return (1 - min(value**2, 1.0)) / math.sqrt(rows)
        case "auc":
            return _error_of_area(value, rows, positives)
        case "average_precision":
            share = min(max(value, 0.0), 1.0)
            return math.sqrt(share * (1 - share) / _positives(rows, positives))
        case _:
            share = min(max(value, 0.0), 1.0)
            return math.sqrt(share * (1 - share) / rows)


def _error_of_area(area: float, rows: int, positives: int | None) -> float:
    """Hanley and McNeil's Q1 and Q2, of which the exponential model gives the areas' pairs."""
    area = min(max(area, 0.0), 1.0)
    count = _positives(rows, positives)
    others = max(rows - count, 1.0)
    first, second = area / (2 - area), 2 * area**2 / (1 + area)
    variance = area * (1 - area)
    variance += (count - 1) * (first - area**2) + (others - 1) * (second - area**2)
    return math.sqrt(max(variance, 0.0) / (count * others))


def _positives(rows: int, positives: int | None) -> float:
    return max(rows / 2 if positives is None else float(positives), 1.0)

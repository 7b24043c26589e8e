r"""What score to expect of a model on rows that nobody has seen.

The dev score says where it lies. How far off a new score may be has three causes: another seed, the dev
rows were a sample, and so will be the test rows:

    variance = s² (1 + 1/n) + e(dev)² + e(test)²

with s the deviation over n seeds and e the sampling error of the metric on so many rows. The interval
is a prediction interval for one score, with Student's quantile at the degrees of freedom that the sum
has (Welch and Satterthwaite): the errors of rows are known, that of few seeds is not, and where rows
are most of it the interval is no wider for the seeds' sake. A score at its bound is no proof: half a
row more on either side is counted (Agresti and Coull, 1998).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from taskmix.errors import InputError
from taskmix.numerics import Interval, student_quantile

FEWEST_DEGREES = 3.0  # of the seeds' spread: two seeds would say "anything", other causes are known
FEW_POSITIVES = (
    20  # below which credits of rows say too little of how far a ranking's score may be off
)


def expect_score(
    scores: Sequence[float],  # [seed], on dev
    metric: str,
    *,
    dev_rows: int,
    test_rows: int,
    dev_positives: int | None = None,  # of two classes: what AUC and average precision rest on
    test_positives: int | None = None,
    spread: float | None = None,  # over seeds, where it is known from more than these runs
    degrees: float | None = None,  # of freedom of that spread
    row_deviation: float | None = None,  # of the metric's credits, where rows have them
    level: float = 0.9,
) -> Interval:
    """The score of a new run on new rows."""
    sample = np.asarray(scores, dtype=np.float64)
    if not len(sample) or not np.isfinite(sample).all():
        raise InputError(f"A score to expect should rest on finite dev scores. Found {sample}.")
    least, most = _range(metric)
    mean, count = min(max(float(sample.mean()), least), most), len(sample)
    if spread is None:
        spread = float(sample.std(ddof=1)) if count > 1 else 0.0
    seeds = spread**2 * (1 + 1 / count)
    freedom = max(degrees if degrees is not None else count - 1, FEWEST_DEGREES)
    rows = 0.0
    for number, positives in ((dev_rows, dev_positives), (test_rows, test_positives)):
        textbook = sampling_error(metric, mean, number, positives=positives) ** 2
        if row_deviation is None:
            rows += textbook
        elif positives is not None and positives < FEW_POSITIVES:
            rows += max(row_deviation**2 / max(number, 1), textbook)
        else:  # where all rows are alike, the next may still be another
            rows += max(row_deviation**2 / max(number, 1), (0.5 / max(number, 1)) ** 2)
    variance = seeds + rows
    total = variance**2 * freedom / seeds**2 if seeds > 0 else math.inf
    reach = student_quantile(level, min(total, 1e6)) * math.sqrt(variance)
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
            count = _positives(rows, positives)
            share = (count * min(max(value, 0.0), 1.0) + 0.5) / (count + 1)
            return math.sqrt(share * (1 - share) / count)
        case _:
            share = (rows * min(max(value, 0.0), 1.0) + 0.5) / (rows + 1)
            return math.sqrt(share * (1 - share) / rows)


def _error_of_area(area: float, rows: int, positives: int | None) -> float:
    """Hanley and McNeil's Q1 and Q2, of which the exponential model gives the areas' pairs."""
    count = _positives(rows, positives)
    area = (count * min(max(area, 0.0), 1.0) + 0.5) / (count + 1)
    others = max(rows - count, 1.0)
    first, second = area / (2 - area), 2 * area**2 / (1 + area)
    variance = area * (1 - area)
    variance += (count - 1) * (first - area**2) + (others - 1) * (second - area**2)
    return math.sqrt(max(variance, 0.0) / (count * others))


def _positives(rows: int, positives: int | None) -> float:
    return max(rows / 2 if positives is None else float(positives), 1.0)

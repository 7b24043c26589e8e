r"""A stack: laws that cannot be told apart, weighted by how well they did beyond left-out ranges.

    Breiman, "Stacked Regressions", Machine Learning 24, 1996, Section 2: weights that are not negative,
    from predictions of rows that were left out. Ours sum to 1, each range counts alike whatever its
    size and its errors, and with few ranges the weights are drawn towards equal ones.

The interval is that of a mixture: the variance is the mean of the laws' own variances plus the variance
between their values, so where tied laws part ways beyond the data it says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import nnls

from taskmix.laws._forms import Array
from taskmix.laws._judging._law import Law, LawPrediction
from taskmix.numerics import student_quantile

MOST_STACKED = 6  # laws in a stack, with the chosen one
SUM_TO_ONE = 1e3  # times the size of the deviations: how strictly the weights sum to 1


@dataclass(frozen=True, eq=False)
class Stack:
    """Tied laws and their weights.

    >>> n = [1, 4, 9, 16]
    >>> laws = [fit_formula(form, {"n": n}, [2.0, 4.0, 6.0, 8.1]) for form in ("sqrt(n)", "n + 3")]
    >>> found = Stack(tuple(laws), (0.75, 0.25)).predict({"n": [10.0, 10_000.0]})
    >>> found.values.round(1), (found.high - found.low > 100)
    (array([   6.7, 2650.4]), array([False,  True]))
    """

    laws: tuple[Law, ...]
    weights: tuple[float, ...]

    def __repr__(self) -> str:
        parts = zip(self.weights, self.laws, strict=True)
        return "Stack(" + ", ".join(f"{weight:.2f} of {law.text}" for weight, law in parts) + ")"

    def predict(
        self, table: Any, *, level: float = 0.95, measurement: bool = False
    ) -> LawPrediction:
        """Values with intervals; laws that have no value somewhere are left out there."""
        found = [law.predict(table, level=level, measurement=measurement) for law in self.laws]
        values = np.array([each.values for each in found])  # [law, row]
        half = np.array([(each.high - each.low) / 2 for each in found])
        known = np.isfinite(values) & np.isfinite(half)
        shares = np.where(known, np.array(self.weights)[:, None], 0.0)
        with np.errstate(all="ignore"):
            shares = shares / shares.sum(axis=0)
            mean = np.sum(shares * np.where(known, values, 0.0), axis=0)
            quantile = np.array([student_quantile(level, law.degrees) for law in self.laws])
            within = np.where(known, half / quantile[:, None], 0.0) ** 2
            between = np.where(known, values - mean, 0.0) ** 2
            spread = quantile.max() * np.sqrt(np.sum(shares * (within + between), axis=0))
        outside = np.any([each.outside for each in found], axis=0)
        return LawPrediction(mean, mean - spread, mean + spread, outside, found[0].warning)


def stack_of(
    laws: Sequence[Law],
    deviations: Sequence[Sequence[Array]],  # [law][range][left-out row], weighted
    tied: Sequence[int],  # places, the chosen law first
) -> Stack | None:
    """The chosen law and the best of those that cannot be told from it; None where there are none."""
    if len(tied) == 1:
        return None
    weights = weigh_tied_laws([deviations[place] for place in tied[:MOST_STACKED]])
    return Stack(tuple(laws[place] for place in tied[:MOST_STACKED]), weights)


def weigh_tied_laws(
    deviations: Sequence[Sequence[Array]],  # [law][range][left-out row], weighted
) -> tuple[float, ...]:
    """[law], not negative and with sum 1.

    The deviations of a mean of laws are the mean of their deviations, so the weights are those that
    make it smallest, by non-negative least squares, drawn towards equal ones by the number of laws
    against the number of ranges.

    >>> one, other = [np.array([0.1]), np.array([-0.1])], [np.array([0.9]), np.array([0.9])]
    >>> [round(weight, 2) for weight in weigh_tied_laws([one, other])]
    [0.74, 0.26]
    """
    count, ranges = len(deviations), len(deviations[0])
    if count == 1:
        return (1.0,)
    rows = []
    for place in range(ranges):
        each = np.array([law[place] for law in deviations])  # [law, row]
        scale = np.sqrt(np.median(np.mean(each**2, axis=1)) * each.shape[1])
        rows.append(each / (scale if scale > 0 else 1.0))
    design = np.concatenate(rows, axis=1).T  # [row, law]
    whole = np.vstack([design, np.full(count, SUM_TO_ONE)])
    found, _ = nnls(whole, np.append(np.zeros(len(design)), SUM_TO_ONE))
    found /= found.sum()
    towards_equal = count / (count + ranges)
    mixed = (1 - towards_equal) * found + towards_equal / count
    return tuple(float(weight) for weight in mixed)

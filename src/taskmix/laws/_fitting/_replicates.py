r"""Rows with equal inputs: what they differ by is noise, whatever the law.

The *pure error* is the variance of rows about the means of equal ones. A law that misses those means by
more than noise explains lacks fit: with $n$ rows, $m$ different ones and $p$ constants,
$F = \frac{(S - S_e) / (m - p)}{S_e / (n - m)}$ for the squares $S$ about the law and $S_e$ about the
means has an F distribution if the law is right (Draper and Smith, Applied Regression Analysis, 1998,
Section 2.1).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import f as f_distribution

from taskmix.laws._forms import Array, Columns


@dataclass(frozen=True, eq=False)
class Replicates:
    """Which rows have equal inputs."""

    cells: NDArray[np.intp]  # [row], the number of its inputs among the different ones
    sizes: NDArray[np.intp]  # [cell], rows

    @classmethod
    def of(cls, columns: Columns) -> Replicates:
        table = np.column_stack(list(columns.values()))
        _, cells, sizes = np.unique(table, axis=0, return_inverse=True, return_counts=True)
        return cls(cells.reshape(-1), sizes)

    @property
    def beyond(self) -> int:
        """Rows beyond one for each different inputs: the degrees of freedom of the pure error."""
        return len(self.cells) - len(self.sizes)

    def means(self, target: Array, weight: Array | None = None) -> Array:
        """[row], the (weighted) mean of the rows with equal inputs."""
        squares = np.ones(len(target)) if weight is None else weight**2
        total = np.bincount(self.cells, squares * target) / np.bincount(self.cells, squares)
        return np.asarray(total[self.cells])

    def stretch(self) -> Array:
        """[row], by which deviations from a mean are too small, since the row is part of it."""
        own = self.sizes[self.cells].astype(np.float64)
        return np.asarray(np.sqrt(own / np.maximum(own - 1, 1)))


@dataclass(frozen=True)
class LackOfFit:
    """The pure error, and whether a law misses more than that."""

    cells: int  # different inputs
    beyond: int  # rows beyond one for each
    deviation: float  # of one measurement, from rows with equal inputs alone
    statistic: float  # F
    probability: float  # of so large a statistic if the law is right


def lack_of_fit(
    columns: Columns,
    target: Array,
    values: Array,  # [row], of the law
    weight: Array,  # [row]
    constants: int,
    *,
    unit: float = 1.0,  # the weight of a row whose noise has the size 1
) -> LackOfFit | None:
    """The test above; None where no rows have equal inputs, or there is nothing to compare.

    With two rows at each of x = 1, 2, 3, values 1 and 3, 2 and 4, 9 and 11, and a law that says 2, 3
    and 4: S_e is 6 over 3 degrees, S - S_e is 2 (10 - 4)² = 72 over 2 with one constant.

    >>> x, y = np.array([1.0, 1, 2, 2, 3, 3]), np.array([1.0, 3, 2, 4, 9, 11])
    >>> found = lack_of_fit({"x": x}, y, x + 1, np.ones(6), 1)
    >>> round(found.statistic, 6), round(found.deviation**2, 6), found.probability < 0.05
    (18.0, 2.0, True)
    """
    same = Replicates.of(columns)
    rest = len(same.sizes) - constants
    if same.beyond == 0 or rest <= 0:
        return None
    pure = float(np.sum((weight * (target - same.means(target, weight))) ** 2))
    whole = float(np.sum((weight * (target - values)) ** 2))
    deviation = float(np.sqrt(pure / same.beyond)) / unit
    if not np.isfinite(whole):
        return None
    statistic = max(whole - pure, 0.0) / rest / max(pure / same.beyond, 1e-300)
    probability = float(f_distribution.sf(statistic, rest, same.beyond))
    return LackOfFit(len(same.sizes), same.beyond, deviation, statistic, probability)

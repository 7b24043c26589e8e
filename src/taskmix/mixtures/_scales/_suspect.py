"""Two sizes of model in one table that does not say so."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from taskmix.mixtures._table import MixtureTable

FEWEST_RUNS = 10
FEWEST_OF_A_SIZE = 3
SMALLEST_PART = 0.08  # of the runs; fewer are outliers
APART = 6.0  # distance of the two means in standard deviations; a uniform column, halved, has 3.5
AGREEING = 0.9  # of the metrics have to be better at the same size
PENALTIES = np.logspace(-4, 1, 11)


@dataclass(frozen=True, kw_only=True)
class TwoSizes:
    """Runs that look like those of two sizes.

    >>> TwoSizes(better=("b",), worse=("a", "c"), apart=12.0).words  # doctest: +ELLIPSIS
    'This looks like two sizes of model in one table: ...'
    """

    better: tuple[str, ...]  # runs
    worse: tuple[str, ...]
    apart: float  # standard deviations

    @property
    def words(self) -> str:
        """One sentence."""
        count = len(self.better)
        verb = "run is" if count == 1 else "runs are"
        return (
            f"This looks like two sizes of model in one table: {count} {verb} better than the other "
            f"{len(self.worse)} in all metrics, by {self.apart:.0f} standard deviations and with "
            "hardly any in "
            "between, whatever the mixture. Give the size of each run (--size-column)."
        )


def suspect_two_sizes(table: MixtureTable) -> TwoSizes | None:
    """Whether runs fall into two groups in all metrics at once, given their mixtures."""
    if table.sizes is not None or len(table) < FEWEST_RUNS:
        return None
    losses = table.values * table.signs
    whole = ~np.isnan(losses).any(axis=1)
    if whole.sum() < FEWEST_RUNS:
        return None
    return None

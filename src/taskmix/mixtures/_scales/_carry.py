"""How ranks of mixtures carry over from small models to larger ones, metric by metric."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, partial

import numpy as np

from taskmix.errors import InputError
from taskmix.mixtures._forecasting import Forecast
from taskmix.mixtures._optimum import MixtureTarget
from taskmix.mixtures._scales._known import forecast_known
from taskmix.mixtures._scales._pairs import (
    columns_of,
    group_mixtures,
    pairs_of_sizes,
)
from taskmix.mixtures._scales._sides import compare_sizes
from taskmix.mixtures._scales._verdict import CarryQuestion, RankCarry, judge_carry
from taskmix.mixtures._table import MixtureTable

TARGET = "target"  # the name under which the target stands beside the metrics


@dataclass(frozen=True)
class CarryOver:
    """Every metric, and the target, between every two sizes.

    >>> CarryOver(rows=()).warnings
    ()
    """

    rows: tuple[RankCarry, ...]

    def of(self, name: str) -> tuple[RankCarry, ...]:
        """One metric between all sizes; the target is called `target`."""
        return tuple(row for row in self.rows if row.name == name)

    @property
    def warnings(self) -> tuple[str, ...]:
        """A sentence for each that does not carry over or cannot be told."""
        return tuple(row.words for row in self.rows if row.verdict != "carries over")


def carry_over(
    table: MixtureTable,
    *,
    target: MixtureTarget | None = None,
    threshold: float = 0.8,  # the rank correlation from which on we say that ranks carry over
    level: float = 0.9,
    resamples: int = 400,
    seed: int = 0,
) -> CarryOver:
    """Whether small models rank mixtures as larger ones do.

    Where four or more mixtures were trained at both sizes, these are compared. Otherwise the forecast
    fitted on the small size is compared with the large runs, which it has not seen.

    >>> shares = np.array([[x, 1 - x] for x in np.linspace(0, 1, 10)])
    >>> small = np.column_stack([shares[:, 0] ** 2, shares[:, 1]])
    >>> table = MixtureTable(
    ...     domains=("web", "code"), metrics=("a", "b"), runs=tuple(map(str, range(20))),
    ...     shares=np.tile(shares, (2, 1)), values=np.concatenate([small, small * [0.8, -1.0]]),
    ...     sizes=np.repeat([1e6, 6e7], 10),
    ... )
    >>> [row.verdict for row in carry_over(table).rows]
    ['carries over', 'does not carry over']
    """
    if not 0 < threshold < 1:
        raise InputError(f"`threshold` should lie between 0 and 1. Found {threshold}.")
    names = table.metrics if target is None else (*table.metrics, TARGET)
    mixtures = {
        size: group_mixtures(part.shares, columns_of(part.values, part, target))
        for size in table.known_sizes
        for part in [table.of_size(size)]
    }
    question = CarryQuestion(threshold=threshold, level=level, resamples=resamples)
    random = np.random.default_rng(seed)

    @cache
    def forecast(size: float) -> Forecast | None:
        return forecast_known(table.of_size(size), seed=seed)

    rows: list[RankCarry] = []
    for small, large in pairs_of_sizes(table):
        compared = compare_sizes(
            mixtures[small],
            mixtures[large],
            target,
            partial(forecast, small),
            partial(forecast, large),
        )
        rows += [
            judge_carry(question, name, (small, large), compared, column, random)
            for column, name in enumerate(names)
        ]
    return CarryOver(rows=tuple(rows))

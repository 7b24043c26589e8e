"""Runs on mixtures as a table: what each was trained on, and what came of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from taskmix.errors import InputError

Floats = NDArray[np.float64]
WHOLE = 1e-6  # shares of a run sum to 1 up to this, once they are read
SINGLE = 1e-7  # by which a number of single precision misses the one that was meant
LEAST_ROUNDING = 1e-4  # of sums, however many digits there are


def rounding_of(shares: Floats) -> float:
    """By how much the sums of shares [run, domain] may miss 1, because they were rounded.

    Half of the last digit that is seen in any of them, times the domains; two digits at the least.
    """
    for digits in range(2, 6):
        if np.abs(shares.round(digits) - shares).max() < SINGLE:
            return float(shares.shape[1] * 0.5 * 10.0**-digits)
    return LEAST_ROUNDING


def few_names(names: Iterable[str], most: int = 8) -> str:
    """The first of them in backticks, and how many more there are."""
    names = list(names)
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(f"`{name}`" for name in names[:most]) + more


@dataclass(frozen=True, kw_only=True, eq=False)
class MixtureTable:
    """One row a run: its shares of the domains, and its metrics.

    >>> table = MixtureTable(
    ...     domains=("web", "code"), metrics=("loss",), runs=("a", "b"),
    ...     shares=np.array([[0.5, 0.5], [0.9, 0.1]]), values=np.array([[3.0], [3.2]]),
    ... )
    >>> table.only([1]).runs
    ('b',)
    """

    domains: tuple[str, ...]
    metrics: tuple[str, ...]
    runs: tuple[str, ...]
    shares: Floats  # [run, domain]; rows sum to 1
    values: Floats  # [run, metric]; NaN where it was not measured
    sizes: Floats | None = None  # [run], parameters of its model; None: all are of one size
    larger_is_better: tuple[str, ...] = ()  # metrics that should rise; the others are losses
    notes: tuple[str, ...] = ()  # what its reader guessed, changed or left out, a sentence each

    def __post_init__(self) -> None:
        runs, domains, metrics = len(self.runs), len(self.domains), len(self.metrics)
        if self.shares.shape != (runs, domains) or self.values.shape != (runs, metrics):
            raise InputError(
                "A table of mixtures should have a row of shares and a row of metrics for each run. "
                f"Found {runs} runs, {domains} domains, {metrics} metrics, and the shapes "
                f"{self.shares.shape} and {self.values.shape}."
            )
        if self.sizes is not None and self.sizes.shape != (runs,):
            raise InputError(
                f"A table of mixtures should have one size a run. Found {runs} runs and "
                f"{self.sizes.shape} sizes."
            )

    def __len__(self) -> int:
        return len(self.runs)

    @property
    def signs(self) -> Floats:
        """[metric], -1 for those that should rise: `values * signs` are losses."""
        return np.array([-1.0 if name in self.larger_is_better else 1.0 for name in self.metrics])

    @property
    def known_sizes(self) -> tuple[float, ...]:
        """The sizes of model that there are, small to large."""
        return () if self.sizes is None else tuple(float(size) for size in np.unique(self.sizes))

    def only(self, rows: Sequence[int] | NDArray[np.integer] | NDArray[np.bool_]) -> MixtureTable:
        """Some of the runs."""
        places = np.arange(len(self))[np.asarray(rows)]
        return replace(
            self,
            runs=tuple(self.runs[place] for place in places),
            shares=self.shares[places],
            values=self.values[places],
            sizes=None if self.sizes is None else self.sizes[places],
        )

    def of_size(self, size: float) -> MixtureTable:
        """The runs of models of one size."""
        assert self.sizes is not None
        return replace(self.only(self.sizes == size), sizes=None)

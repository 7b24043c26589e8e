"""What a merge hides: how far the proportions of its parts varied, and whether that mattered.

A merge is exact in shares. A law over merged domains is only as good as the parts are alike, or as their
proportions were fixed. Both can be asked of the runs: proportions are in the table, and whether parts
differ shows in how well runs are predicted that a law was not fitted to, with and without the merge.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from taskmix.errors import InputError
from taskmix.mixtures._domains._apply import merge_domains
from taskmix.mixtures._domains._law import HEAD, fit_law, worth_law
from taskmix.mixtures._table import Floats, MixtureTable
from taskmix.numerics import paired_interval

FOLDS = 5
FIXED = 1e-3  # proportions that vary less were fixed, up to rounding


@dataclass(frozen=True, kw_only=True)
class MergeCost:
    """What is lost for prediction when domains are merged; errors are in spreads of each metric.

    >>> MergeCost(
    ...     name="code", parts=("python", "c"), varied=0.4, parted=0.1, merged=0.15, differ=True, runs=90
    ... ).describe()
    "'python' and 'c' differ (95 %): merging costs 50 % in prediction (out-of-fold error 0.15 of a ..."
    """

    name: str
    parts: tuple[str, ...]
    varied: float  # of the proportions between runs: the largest standard deviation among the parts
    parted: float  # root mean square error out of fold of laws that see the parts; NaN: not asked
    merged: float  # and of laws that see their sum
    differ: bool  # whether the second is larger, significantly (95 %)
    runs: int  # that had any share of the parts

    @property
    def cost(self) -> float:
        """How much larger the error becomes, as a part of what it was."""
        return self.merged / self.parted - 1

    def describe(self) -> str:
        """In a sentence."""
        words = _joined(self.parts)
        if self.varied <= FIXED:
            return f"{words} were always in the same proportions: merging them loses nothing."
        if not np.isfinite(self.parted):
            return (
                f"The proportions of {words} varied between runs (standard deviation "
                f"{self.varied:.2f}), and there are too few runs to say whether that matters."
            )
        instead = f"instead of {self.parted:.2g}"
        errors = f"(out-of-fold error {self.merged:.2g} of a metric's spread {instead})"
        if self.differ:
            cost = f"{self.cost:.0%}".replace("%", " %")
            return f"{words} differ (95 %): merging costs {cost} in prediction {errors}."
        return (
            f"The proportions of {words} varied between runs (standard deviation {self.varied:.2f}), "
            f"and no difference between them was found {errors}."
        )


def merge_cost(table: MixtureTable, name: str, parts: Sequence[str], *, seed: int = 0) -> MergeCost:
    """Whether domains may be merged without loss, asked of the runs before they are.

    >>> shares = np.random.default_rng(0).dirichlet(np.ones(3), 60)
    >>> table = MixtureTable(
    ...     domains=("web", "python", "c"), metrics=("loss",), runs=tuple(map(str, range(60))),
    ...     shares=shares, values=3 - np.log(0.1 + shares @ np.array([[1.0], [0.7], [0.1]])),
    ... )
    >>> merge_cost(table, "code", ["python", "c"]).differ
    True
    """
    unknown = sorted(set(parts) - set(table.domains))
    if unknown:
        raise InputError(
            f"A merge should be of domains of the table. Found {unknown[0]!r}; the table has "
            f"{', '.join(map(repr, table.domains))}. Correct the name."
        )
    within = table.shares[:, [table.domains.index(part) for part in parts]]
    having = within.sum(axis=1) > 0
    proportions = within[having] / within[having].sum(axis=1, keepdims=True)
    varied = float(proportions.std(axis=0).max()) if having.any() else 0.0
    parted = merged = float("nan")
    differ = False
    if varied > FIXED and len(table) >= 2 * len(table.domains) + FOLDS:
        folds = np.random.default_rng(seed).permutation(len(table)) % FOLDS
        apart = _errors(table, folds)
        together = _errors(merge_domains(table, {name: parts}), folds)
        parted, merged = float(np.sqrt(apart.mean())), float(np.sqrt(together.mean()))
        interval = paired_interval(together, apart)
        differ = interval.excludes(0.0) and merged > parted
    return MergeCost(
        name=name, parts=tuple(parts), varied=varied, parted=parted, merged=merged, differ=differ,
        runs=int(having.sum()),
    )  # fmt: skip


def _errors(table: MixtureTable, folds: NDArray[np.int64]) -> Floats:
    """[run], the mean over metrics of squared errors out of fold, in units of each metric's variance."""
    values = table.values * table.signs
    squares = np.full(values.shape, np.nan)
    for fold in range(FOLDS):
        inside, outside = folds != fold, folds == fold
        for metric in range(values.shape[1]):
            fit = fit_law(table.shares[inside], values[inside, metric])
            law = worth_law(fit.theta, table.shares[outside] @ np.exp(fit.theta[HEAD:]))
            squares[outside, metric] = (law - values[outside, metric]) ** 2
    variance = np.nanvar(values, axis=0)
    scaled = squares / np.where(variance > 0, variance, 1.0)
    return np.asarray(np.nanmean(scaled[np.isfinite(scaled).any(axis=1)], axis=1))


def _joined(names: Sequence[str]) -> str:
    words = [repr(name) for name in names]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"

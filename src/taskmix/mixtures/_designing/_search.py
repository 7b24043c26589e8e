"""The whole search over your own trainer: a first design, then batches until it is enough."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from taskmix.errors import InputError
from taskmix.mixtures._designing._first import first_mixtures
from taskmix.mixtures._designing._next import NextRuns, next_mixtures
from taskmix.mixtures._forecasting import Forecast, forecast_mixtures
from taskmix.mixtures._optimum import MixtureLimits, MixtureTarget
from taskmix.mixtures._table import WHOLE, Floats, MixtureTable

Train = Callable[[Floats], Floats]  # shares [run, domain] to values [run, metric]
PATIENCE = 2  # batches in a row not worth running end a search: what one is worth is known roughly
MakeForecast = Callable[[MixtureTable], Forecast]


@dataclass(frozen=True, kw_only=True, eq=False)
class SearchRound:
    """Where a search stands after some runs.

    >>> from taskmix.mixtures import search_mixtures
    >>> rounds: list[SearchRound] = []
    >>> found = search_mixtures(
    ...     lambda shares: 3 - np.sqrt(shares[:, :1]), ("web", "code"), first=8, most_runs=8,
    ...     after_round=rounds.append,
    ... )
    >>> [each.runs for each in rounds]
    [8]
    """

    number: int  # 0 after the first design
    runs: int  # so far
    proposed: NextRuns  # what would be run next, the expected regret, and whether it is enough


@dataclass(frozen=True, kw_only=True, eq=False)
class MixtureSearch:
    """What a search found; `table` is what to hand in as `earlier` to go on.

    >>> found = search_mixtures(
    ...     lambda shares: 3 - np.sqrt(shares[:, :1]), ("web", "code"), first=8, most_runs=8
    ... )
    >>> found.recommended.round(1).tolist(), len(found.table)
    ([1.0, 0.0], 8)
    """

    table: MixtureTable  # all runs
    recommended: Floats  # [domain]
    rounds: tuple[SearchRound, ...]
    why: str  # it stopped, in a sentence

    @property
    def is_settled(self) -> bool:
        """Whether the expected regret is what was asked for, or below."""
        return self.rounds[-1].proposed.is_good_enough


def search_mixtures(
    train: Train,
    domains: Sequence[str],
    *,
    target: MixtureTarget | None = None,
    limits: MixtureLimits | None = None,
    metrics: Sequence[str] | None = None,  # names of what `train` returns; None: "metric 1", ...
    larger_is_better: Sequence[str] = (),
    prior: Mapping[str, float] | Sequence[float] | Floats | None = None,  # natural shares
    first: int | None = None,  # runs of the first design; None: twice the domains, at least 8
    batch: int = 4,
    tolerance: float | None = None,  # as of `next_mixtures`
    relative_tolerance: float = 0.02,
    most_runs: int = 128,
    earlier: MixtureTable | None = None,  # runs of before, which are not made again
    make_forecast: MakeForecast | None = None,  # None: `forecast_mixtures` with 64 draws
    after_round: Callable[[SearchRound], object] | None = None,
    seed: int = 0,
) -> MixtureSearch:
    """Trains mixtures, each batch chosen by all before it, until the expected regret is small enough.

    `train` is given shares [run, domain] and returns metrics [run, metric], NaN where a run failed. A
    search that is called again with the runs so far as `earlier`, and the same options, goes on as if
    it had not been interrupted.

    >>> def train(shares):
    ...     return 2.0 + (0.1 + shares @ np.array([[1.0], [0.2], [0.1]])) ** -0.5
    >>> found = search_mixtures(train, ("web", "code", "books"), first=10, most_runs=14)
    >>> bool(found.recommended[0] > 0.8)
    True
    """
    names = tuple(domains)
    count = max(8, 2 * len(names)) if first is None else first
    _check(batch, most_runs, count, earlier, names)
    design = first_mixtures(names, count, limits=limits, prior=prior, seed=seed)
    runner = _Runner(train, names, metrics, tuple(larger_is_better))
    make_forecast = make_forecast or forecast_mixtures
    table = earlier
    if table is None or len(table) < count:
        table = runner.add(table, design.shares[0 if table is None else len(table) :])
    rounds: list[SearchRound] = []
    idle = 0
    while True:
        proposed = next_mixtures(
            make_forecast(table),
            target,
            limits,
            count=max(min(batch, most_runs - len(table)), 1),
            tolerance=tolerance,
            relative_tolerance=relative_tolerance,
            seed=seed + len(table),  # the same after an interruption
        )
        rounds.append(SearchRound(number=len(rounds), runs=len(table), proposed=proposed))
        if after_round is not None:
            after_round(rounds[-1])
        idle = 0 if proposed.is_worth_running else idle + 1
        is_over = proposed.is_good_enough or idle >= PATIENCE
        if is_over or len(table) >= most_runs:
            why = proposed.describe()
            if not is_over:
                why = f"Stopped at the {most_runs} runs that were allowed. {why}"
            return MixtureSearch(
                table=table,
                recommended=proposed.regret.recommended,
                rounds=tuple(rounds),
                why=why,
            )
        table = runner.add(table, proposed.shares)


@dataclass(frozen=True, eq=False)
class _Runner:
    train: Train
    domains: tuple[str, ...]
    metrics: Sequence[str] | None
    larger_is_better: tuple[str, ...]

    def add(self, table: MixtureTable | None, shares: Floats) -> MixtureTable:
        """The table with the runs on these mixtures."""
        values = np.asarray(self.train(shares.copy()), dtype=np.float64)
        names = self.metrics if table is None else table.metrics
        if values.ndim != 2 or len(values) != len(shares) or values.shape[1] == 0:
            raise InputError(
                f"`train` should return a row of metrics for each of the {len(shares)} mixtures. Found "
                f"the shape {values.shape}.",
                arguments=("train",),
            )
        names = tuple(names or (f"metric {place + 1}" for place in range(values.shape[1])))
        if len(names) != values.shape[1]:
            raise InputError(
                f"`train` should return {len(names)} metrics: {', '.join(names[:8])}. Found "
                f"{values.shape[1]}.",
                arguments=("train",),
            )
        if table is None:
            return MixtureTable(
                domains=self.domains,
                metrics=names,
                runs=tuple(str(number) for number in range(len(shares))),
                shares=shares,
                values=values,
                larger_is_better=self.larger_is_better,
            )
        start = len(table)
        return replace(
            table,
            runs=(*table.runs, *(str(start + number) for number in range(len(shares)))),
            shares=np.concatenate([table.shares, shares]),
            values=np.concatenate([table.values, values]),
        )


def _check(
    batch: int, most_runs: int, first: int, earlier: MixtureTable | None, domains: tuple[str, ...]
) -> None:
    for option, number in (("batch", batch), ("first", first)):
        if number < 1:
            raise InputError(
                f"`{option}` should be at least 1, a number of runs. Found {number}.",
                arguments=(option,),
            )
    if most_runs < first:
        raise InputError(
            f"`most_runs` should be at least the {first} runs of the first design. Found {most_runs}.",
            arguments=("most_runs",),
        )
    if earlier is None:
        return
    if earlier.domains != domains:
        raise InputError(
            f"`earlier` should have the same domains in the same order: {', '.join(domains[:8])}. Found "
            f"{', '.join(earlier.domains[:8])}.",
            arguments=("earlier",),
        )
    if earlier.sizes is not None:
        raise InputError(
            "`earlier` should have runs of one size of model. Found a column of sizes. Hand in "
            "`table.of_size(...)`.",
            arguments=("earlier",),
        )
    if len(earlier) and np.abs(earlier.shares.sum(axis=1) - 1.0).max() > WHOLE * 10:
        raise InputError("`earlier` should have shares that sum to 1 in each run. Found others.")

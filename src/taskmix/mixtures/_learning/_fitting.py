"""The forecast that an answer rests on, what it says of runs it has not seen, and of new domains."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from taskmix.errors import InputError
from taskmix.mixtures._domains import DomainFeatures, forecast_with_new_domain
from taskmix.mixtures._forecasting import Forecast, forecast_mixtures
from taskmix.mixtures._learning._left_out import (
    PredictedRuns,
    predict_left_out,
    predict_left_out_at_size,
)
from taskmix.mixtures._reading import CheckedTable
from taskmix.mixtures._scales import forecast_at_size
from taskmix.mixtures._table import MixtureTable

Tell = Callable[[str], None]
Fit = Callable[[MixtureTable], Forecast]


@dataclass(frozen=True, kw_only=True)
class FitSettings:
    """How the forecast is made."""

    size: float | None  # of the model to train; None: the runs' own
    features: DomainFeatures | None  # of domains, with those that no run has seen
    seed: int
    tell: Tell
    given: Fit | None  # instead of `forecast_mixtures`

    def fit(self, table: MixtureTable) -> Forecast:
        """A forecast of runs of one size."""
        if self.given is not None:
            return self.given(table)

        def progress(done: int, total: int) -> None:
            self.tell(f"fitting laws ({done + 1} of {total})")

        return forecast_mixtures(table, seed=self.seed, progress=progress)


@dataclass(frozen=True, kw_only=True, eq=False)
class FittedMixtures:
    """The forecast, and the runs that it rests on."""

    table: MixtureTable  # as it was read, of all sizes
    of_runs: Forecast  # over the domains of the runs
    forecast: Forecast  # the same over new domains too
    left_out: PredictedRuns
    fixed: Mapping[str, float]  # domains that keep their shares
    new: tuple[str, ...]  # domains of which only features are known
    remarks: tuple[str, ...]

    @property
    def domains(self) -> tuple[str, ...]:
        """Old and new."""
        return self.forecast.table.domains


def new_domains(checked: CheckedTable, features: DomainFeatures | None) -> tuple[str, ...]:
    """Domains with features that no run has, or that all runs have alike."""
    if features is None:
        return ()
    known = set(checked.table.domains) - set(checked.fixed)
    return tuple(name for name in features.names if name not in known)


def fit_mixtures(checked: CheckedTable, settings: FitSettings) -> FittedMixtures:
    """Laws of the runs: of one size, or at the size that was asked for."""
    table, seed = checked.table, settings.seed
    new = new_domains(checked, settings.features)
    remarks: tuple[str, ...] = ()
    of_runs: Forecast
    if table.sizes is None:
        of_runs = settings.fit(table)
        settings.tell("predicting runs that were not seen")
        left_out = predict_left_out(of_runs, settings.fit, seed=seed)
    else:
        size = size_asked(table, settings.size)
        settings.tell("fitting laws of several sizes")
        at_size = forecast_at_size(table, size, seed=seed)
        of_runs, remarks = at_size, at_size.remarks
        settings.tell("predicting runs that were not seen")
        left_out = predict_left_out_at_size(
            table, size, at_size, lambda part: forecast_at_size(part, size, seed=seed), seed=seed
        )
    forecast = of_runs
    if new:
        settings.tell("placing new domains beside those that are like them")
        forecast = forecast_with_new_domain(of_runs, settings.features, new=list(new), seed=seed)
    return FittedMixtures(
        table=table,
        of_runs=of_runs,
        forecast=forecast,
        left_out=left_out,
        fixed={name: share for name, share in checked.fixed.items() if name not in new},
        new=new,
        remarks=remarks,
    )


def size_asked(table: MixtureTable, size: float | None) -> float:
    """The size that the answer is for: the one that was named, or the largest."""
    return table.known_sizes[-1] if size is None else size


def check_asked_size(table: MixtureTable, size: float | None) -> None:
    """Refuses a size where nothing says of which size the runs are."""
    if size is not None and table.sizes is None:
        raise InputError(
            "`size` should come with a column that says the size of each run's model. Found none. Name "
            "it in `size_column`, or leave `size` out.",
            arguments=("size", "size_column"),
        )

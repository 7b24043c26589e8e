"""A forecast where runs tell little: how far its laws reach, and how far apart its draws are."""

from __future__ import annotations

import numpy as np
import pytest

from taskmix.mixtures import (
    EffectiveDataLaw,
    ExponentialLaw,
    LogLinearLaw,
    MixtureLaw,
    MixtureTable,
    StackedForecast,
    find_optimum,
    forecast_mixtures,
)

DOMAINS = 8


def few_runs(seed: int) -> MixtureTable:
    """Twelve runs in which two of eight domains have 5 % at most."""
    random = np.random.default_rng(seed)
    natural = np.array([3.0, 3.0, 3.0, 3.0, 3.0, 3.0, 0.1, 0.1])
    shares = random.dirichlet(0.3 * natural, size=12)
    worths = random.gamma(0.5, 1.0, size=(DOMAINS, 3))
    values = 2.0 + (0.05 + shares @ worths) ** -0.5 + 0.05 * random.standard_normal((12, 3))
    return MixtureTable(
        domains=tuple(f"d{place}" for place in range(DOMAINS)),
        metrics=("a", "b", "c"),
        runs=tuple(f"r{place}" for place in range(12)),
        shares=shares,
        values=values,
    )


@pytest.fixture(scope="module")
def forecast() -> StackedForecast:
    return forecast_mixtures(few_runs(0))


@pytest.mark.parametrize(
    "law", [ExponentialLaw(), LogLinearLaw(), EffectiveDataLaw(), EffectiveDataLaw(crossed=True)]
)
def test_a_law_makes_no_loss_of_millions_of_a_domain_that_hardly_varied(law: MixtureLaw) -> None:
    table = few_runs(0)
    away = law.fit(table.shares, table.values).predict(np.eye(DOMAINS)) - table.values.mean(0)
    assert np.abs(away / np.ptp(table.values, axis=0)).max() < 60


def test_less_data_of_the_same_mixture_costs_what_the_power_law_says() -> None:
    table = few_runs(0)
    fitted = EffectiveDataLaw().fit(table.shares, table.values)
    whole, half, quarter = (fitted.predict(part * np.eye(DOMAINS)) for part in (1.0, 0.5, 0.25))
    powers = (quarter - half) / (half - whole)  # 2^a, whatever the mixture
    np.testing.assert_allclose(powers, np.tile(powers[0], (DOMAINS, 1)))


def test_a_draw_lies_between_the_laws_but_for_what_the_process_leaves_open(
    forecast: StackedForecast,
) -> None:
    shares = np.random.default_rng(0).dirichlet(np.full(DOMAINS, 0.3), size=50)
    each = np.stack([law.predict(shares) for law in forecast.fitted])
    open_ = forecast.calibration.factors * forecast.drawn.deviations(shares)
    drawn = forecast.draws(shares) - open_
    assert (drawn > each.min(axis=0) - 1e-9).all()
    assert (drawn < each.max(axis=0) + 1e-9).all()
    # Laws are followed as often as they count.
    mean = np.einsum("lnm,ml->nm", each, forecast.weights)
    apart = np.ptp(each, axis=0)
    assert np.abs(drawn.mean(axis=0) - mean).max() < (len(each) / len(drawn)) * apart.max()


def test_few_runs_leave_no_regret_larger_than_the_runs_differ(forecast: StackedForecast) -> None:
    assert 0 <= find_optimum(forecast).regret <= np.ptp(forecast.table.values.mean(axis=1))

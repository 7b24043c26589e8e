"""The forecast at the large size: few large runs, none, and sizes that were never trained."""

from __future__ import annotations

import numpy as np
import pytest
from quick_forecast import use_forecast
from scipy.stats import spearmanr
from size_worlds import Floats, forecast_roots, random_shares, roots_law, table_of

from taskmix.errors import InputError
from taskmix.mixtures import MixtureTable, forecast_at_size

SMALL, LARGE = 1e6, 6e7
NOISE = 0.01
SLOPES = np.array([0.5, 0.7, 0.9, 1.0, 1.1, 0.6])


@pytest.fixture(autouse=True)
def _known_form(monkeypatch: pytest.MonkeyPatch) -> None:
    use_forecast(monkeypatch, forecast_roots)


def large_law(shares: Floats, seed: int, remainder: float = 0.0) -> Floats:
    return np.asarray(
        SLOPES * (roots_law(seed)(shares) - 4)
        + 2.5
        + remainder * (roots_law(seed + 100)(shares) - 4)
    )


def world(seed: int, large: int, remainder: float = 0.0) -> tuple[MixtureTable, Floats, Floats]:
    """A table of 60 small runs and some large ones; new mixtures, and their large losses."""
    random = np.random.default_rng(seed)
    many, few, new = (random_shares(random, count) for count in (60, large, 100))
    noisy = roots_law(seed)(many) + NOISE * random.standard_normal((60, 6))
    above = large_law(few, seed, remainder) + NOISE * random.standard_normal((large, 6))
    return (
        table_of({SMALL: (many, noisy), LARGE: (few, above)}),
        new,
        large_law(new, seed, remainder),
    )


def test_six_large_runs_tell_levels_and_slopes() -> None:
    table, new, truth = world(0, large=6)
    forecast = forecast_at_size(table, LARGE)
    assert np.abs(forecast.predict(new) - truth).max() < 0.06  # losses differ by 1 between mixtures
    assert forecast.base_size == SMALL
    assert "what 6 runs of this size tell" in forecast.remarks[0]


@pytest.mark.parametrize("large", [3, 12])
def test_intervals_of_90_percent_hold_the_large_runs_about_as_often(large: int) -> None:
    hits = []
    for seed in range(8):
        table, new, truth = world(seed, large=large, remainder=0.1)
        low, high = forecast_at_size(table, LARGE).interval(new)
        noisy = truth + NOISE * np.random.default_rng(seed).standard_normal(truth.shape)
        hits.append(float(((low <= noisy) & (noisy <= high)).mean()))
    assert 0.8 <= np.mean(hits) <= 0.99


def test_without_a_large_run_the_order_is_that_of_the_small_size_and_it_says_so() -> None:
    table, new, _ = world(3, large=0)
    forecast = forecast_at_size(table, LARGE)
    np.testing.assert_allclose(forecast.predict(new), forecast.base.predict(new))
    assert forecast.draws(new).std(axis=0).mean() > 2 * forecast.base.draws(new).std(axis=0).mean()
    assert "nothing here shows that it does" in forecast.remarks[0]


def test_draws_are_the_same_laws_in_every_call_and_agree_with_the_prediction() -> None:
    table, new, _ = world(5, large=8)
    forecast = forecast_at_size(table, LARGE, draws=200)
    drawn = forecast.draws(new)
    assert drawn.shape == (200, 100, 6)
    np.testing.assert_array_equal(forecast.draws(new[:3]), drawn[:, :3])
    again = forecast_at_size(table, LARGE, draws=200)
    np.testing.assert_array_equal(again.draws(new), drawn)
    np.testing.assert_allclose(drawn.mean(axis=0), forecast.predict(new), atol=0.02)
    assert np.isfinite(forecast.predict(0.5 * new)).all()  # half of the budget teaches nothing


def sizes_world(sizes: tuple[float, ...], seed: int = 0) -> tuple[MixtureTable, Floats]:
    """Levels fall as a power of the size, slopes by 5 % for a tenfold size."""
    random = np.random.default_rng(seed)
    new = random_shares(random, 50)
    parts = {}
    for size in sizes:
        shares = random_shares(random, 30)
        noise = NOISE * random.standard_normal((30, 6))
        parts[size] = (shares, _at(size, shares, seed) + noise)
    return table_of(parts), new


def _at(size: float, shares: Floats, seed: int) -> Floats:
    slope = 0.95 ** np.log10(size / 1e6)
    return np.asarray(1.5 + 2.5 * (size / 1e6) ** -0.3 + slope * (roots_law(seed)(shares) - 4))


def test_a_size_never_trained_is_extrapolated_with_intervals_that_widen() -> None:
    table, new = sizes_world((1e6, 1e7, 3e7, 1e8))
    widths = []
    for size in (3e8, 1e9, 1e10):
        forecast = forecast_at_size(table, size)
        low, high = forecast.interval(new)
        truth = _at(size, new, 0)
        assert ((low <= truth) & (truth <= high)).mean() > 0.9
        for metric in range(6):
            found = spearmanr(forecast.predict(new)[:, metric], truth[:, metric]).statistic
            assert found > 0.98
        widths.append(float((high - low).mean()))
    assert widths[0] < widths[1] < widths[2]
    assert "extrapolated from 4 sizes, 1 M to 100 M" in forecast.remarks[0]


def test_a_table_without_sizes_and_a_size_of_nothing_are_refused() -> None:
    table, _, _ = world(0, large=2)
    with pytest.raises(InputError, match="whose sizes are known"):
        forecast_at_size(table.of_size(SMALL), LARGE)
    with pytest.raises(InputError, match="above 0"):
        forecast_at_size(table, 0.0)

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taskmix.errors import InputError, OptionError
from taskmix.mixtures import (
    DomainGroup,
    MixtureLimits,
    MixtureTarget,
    find_optimum,
)

from .known_forecasts import (
    Floats,
    KnownForecast,
    Law,
    effective_law,
    known,
    lowest_on_grid,
    table_of,
    two_valleys,
)
from .quick_forecast import RidgeForecast

LIMITS = {
    "none": MixtureLimits(),
    "bounds": MixtureLimits(at_least=0.1, at_most={"d0": 0.3, "d1": 0.45}),
    "groups": MixtureLimits(
        groups=(
            DomainGroup(domains=("d0", "d1"), at_most=0.5),
            DomainGroup(domains=("d1", "d2"), at_least=0.6, at_most=0.8),
        )
    ),
    "repetition": MixtureLimits(supply={"d0": 5, "d1": 2, "d2": 90}, budget=100, repetition=2.0),
    "passes": MixtureLimits(supply={"d0": 5, "d1": 9, "d2": 90}, budget=100, passes=4),
}
TARGETS = {
    "mean": MixtureTarget(),
    "weighted": MixtureTarget(weights={"m0": 1.0, "m2": 3.0}),
    "worst": MixtureTarget(worst=True),
    "relative": MixtureTarget(worst=True, reference={"m0": 2.0, "m1": 3.0, "m2": 2.5}),
}


@pytest.mark.parametrize("limits", LIMITS.values(), ids=LIMITS.keys())
@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS.keys())
def test_it_is_the_lowest_of_all_mixtures_on_a_fine_grid(
    target: MixtureTarget, limits: MixtureLimits
) -> None:
    forecast = known(effective_law(1))
    lowest, _ = lowest_on_grid(forecast, target, limits)
    optimum = find_optimum(forecast, target, limits)
    assert lowest - 1e-2 < optimum.target.mean <= lowest + 1e-6
    assert optimum.regret == pytest.approx(0.0, abs=1e-4)  # there is one law, and it is known


@pytest.mark.parametrize("limits", LIMITS.values(), ids=LIMITS.keys())
def test_the_deeper_of_two_valleys_is_found_though_no_run_is_in_it(limits: MixtureLimits) -> None:
    forecast = known(two_valleys)
    in_the_wide_one = np.abs(forecast.table.shares - [0.1, 0.2, 0.7]).sum(axis=1) > 0.3
    forecast = replace(forecast, table=forecast.table.only(in_the_wide_one))
    lowest, where = lowest_on_grid(forecast, MixtureTarget(), limits)
    optimum = find_optimum(forecast, None, limits)
    assert optimum.target.mean <= lowest + 1e-6
    np.testing.assert_allclose(optimum.row(forecast.table.domains), where, atol=0.02)


def test_a_law_with_steps_is_searched_too() -> None:
    def steps(shares: Floats) -> Floats:
        return np.round(4 * effective_law(3)(shares).mean(axis=1, keepdims=True)) / 4

    forecast = known(steps)
    lowest, _ = lowest_on_grid(forecast, MixtureTarget(), MixtureLimits())
    assert find_optimum(forecast).target.mean == pytest.approx(lowest)


def quadratic(center: Floats, height: float = 0.0) -> Law:
    return lambda shares: ((shares - center) ** 2).sum(axis=1)[:, None] + height


def three_laws() -> KnownForecast:
    """Equally likely: lowest at three places along one line."""
    centers = np.array([[0.2, 0.3, 0.5], [0.3, 0.3, 0.4], [0.4, 0.3, 0.3]])
    laws = tuple(quadratic(center) for center in centers)
    return KnownForecast(table_of(laws[1]), laws, spread=0.01)


def test_of_several_laws_the_mean_is_made_small_and_the_rest_worked_out_by_hand() -> None:
    forecast = three_laws()
    optimum = find_optimum(forecast, reference={"d0": 1.0})
    row = optimum.row(forecast.table.domains)
    np.testing.assert_allclose(row, [0.3, 0.3, 0.4], atol=1e-3)
    # The laws are 0.02, 0 and 0.02 there; each is 0 at its own lowest place.
    assert optimum.target.mean == pytest.approx(0.04 / 3, abs=1e-5)
    assert optimum.regret == pytest.approx(0.04 / 3, abs=1e-4)
    other = optimum.gains["the reference"]
    # All on the first domain: 0.98, 0.74 and 0.54; minus the optimum's.
    assert other.target.mean == pytest.approx((0.98 + 0.74 + 0.54) / 3)
    assert other.gain.mean == pytest.approx((0.96 + 0.74 + 0.52) / 3, abs=1e-4)
    assert other.better == pytest.approx(3.5 / 4), "three laws agree, and a fourth is not known"
    assert set(optimum.gains) == {"the best run", "uniform", "the reference"}


def test_shares_are_equally_good_where_the_laws_disagree_and_nowhere_where_they_do_not() -> None:
    found = find_optimum(three_laws()).equally_good
    # Along the line on which the laws disagree each share can be told from 0.3 (0.4) only beyond theirs.
    assert found["d0"][0] < 0.22 < 0.38 < found["d0"][1]
    assert found["d2"][0] < 0.32 < 0.48 < found["d2"][1]
    certain = find_optimum(known(quadratic(np.array([0.2, 0.3, 0.5])))).equally_good
    for name, share in zip(("d0", "d1", "d2"), (0.2, 0.3, 0.5), strict=True):
        assert certain[name] == pytest.approx((share, share), abs=1e-3)


def test_a_tolerance_widens_what_is_equally_good() -> None:
    # With others making up, a share that moves by x costs 1.5 x^2: 0.015 at 0.1.
    forecast = known(quadratic(np.array([0.3, 0.3, 0.4])))
    found = find_optimum(forecast, tolerance=0.015).equally_good
    assert found["d0"] == pytest.approx((0.2, 0.4), abs=0.01)


def test_a_domain_that_changes_nothing_may_have_any_share_it_can() -> None:
    forecast = known(lambda shares: shares[:, :1] + 1)
    found = find_optimum(forecast, None, MixtureLimits(at_most={"d1": 0.7})).equally_good
    assert found["d0"] == pytest.approx((0.0, 0.0), abs=1e-3)
    assert found["d1"] == pytest.approx((0.0, 0.7), abs=1e-6)
    assert found["d2"] == pytest.approx((0.3, 1.0), abs=0.02)


def test_metrics_that_should_rise_are_made_large() -> None:
    law = quadratic(np.array([0.2, 0.3, 0.5]))
    forecast = known(lambda shares: -law(shares), larger_is_better=("m0",))
    optimum = find_optimum(forecast)
    np.testing.assert_allclose(optimum.row(("d0", "d1", "d2")), [0.2, 0.3, 0.5], atol=1e-3)
    assert optimum.metrics["m0"].mean == pytest.approx(-optimum.target.mean)


@given(seed=st.integers(0, 1000), domains=st.integers(2, 6), bounded=st.booleans())
@settings(max_examples=8)
def test_it_is_allowed_and_no_allowed_run_is_better_by_the_forecast(
    seed: int, domains: int, bounded: bool
) -> None:
    law = effective_law(seed, domains)
    table = table_of(law, domains=domains, runs=20, seed=seed)
    noisy = table.values + 0.02 * np.random.default_rng(seed).standard_normal(table.values.shape)
    forecast = RidgeForecast(replace(table, values=noisy), draws=16)
    limits = MixtureLimits(at_most=max(0.6, 1.5 / domains)) if bounded else MixtureLimits()
    feasible = limits.feasible(table.domains)
    optimum = find_optimum(forecast, None, limits)
    row = optimum.row(table.domains)
    assert feasible.contains(row[None]).all()
    allowed = table.shares[feasible.contains(table.shares)]
    others = forecast.predict(allowed).mean(axis=1)
    assert (forecast.predict(row[None]).mean(axis=1) <= others + 1e-12).all()
    assert optimum.regret >= 0
    for name, share in optimum.shares.items():
        low, high = optimum.equally_good[name]
        assert low <= share <= high


@given(seed=st.integers(0, 1000), order=st.permutations(range(4)))
@settings(max_examples=8)
def test_domains_in_another_order_get_the_same_shares(seed: int, order: list[int]) -> None:
    law = effective_law(seed, 4)
    table = table_of(law, domains=4, seed=seed)
    back = np.argsort(order)
    turned = replace(
        table,
        domains=tuple(table.domains[place] for place in order),
        shares=table.shares[:, order],
    )
    one = find_optimum(KnownForecast(table, (law,)))
    other = find_optimum(KnownForecast(turned, (lambda shares: law(shares[:, back]),)))
    assert one.target.mean == pytest.approx(other.target.mean, abs=1e-6)
    for name in table.domains:
        assert one.shares[name] == pytest.approx(other.shares[name], abs=0.01)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"level": 95}, OptionError, "`level` should lie between 0 and 1"),
        ({"reference": {"webb": 1.0}}, InputError, "Found `webb`"),
        ({"reference": {"d0": 0.5}}, OptionError, "`reference` should sum to one"),
        ({"target": MixtureTarget(metric="m9")}, InputError, "Found `m9`"),
        ({"limits": MixtureLimits(at_least=0.5)}, InputError, "contradict each other"),
    ],
)
def test_what_cannot_be_searched_is_refused(
    options: dict[str, object], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        find_optimum(known(effective_law(0)), **options)  # type: ignore[arg-type]

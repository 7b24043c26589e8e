"""A forecast over a domain that no run had: as before without it, and wide along it."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from quick_forecast import RidgeForecast

from taskmix.errors import InputError
from taskmix.mixtures import (
    DomainFeatures,
    Forecast,
    MixtureTable,
    forecast_mixtures,
    forecast_with_new_domain,
    how_far,
)
from taskmix.mixtures._domains._law import HEAD, fit_law, worth_law
from taskmix.mixtures._domains._measured import measured_domains
from taskmix.mixtures._domains._worth import fit_worths
from taskmix.mixtures._table import Floats

DOMAINS = tuple("abcdefgh")


def worths_near(points: Floats, random: np.random.Generator) -> Floats:
    """[metric, domain]: a domain is worth most for its own metric, and much for those near it."""
    apart = np.abs(points[:, None] - points[None, :])
    return np.exp(4 * np.exp(-((apart / 0.3) ** 2)) + 0.3 * random.standard_normal(apart.shape))


def a_world(runs: int = 160, seed: int = 0) -> tuple[MixtureTable, DomainFeatures]:
    """Eight domains on a line; each has a metric; texts are near where the points are."""
    random = np.random.default_rng(seed)
    points = np.linspace(0, 1, len(DOMAINS)) + 0.02 * random.standard_normal(len(DOMAINS))
    worth = worths_near(points, random)
    shares = random.dirichlet(np.full(len(DOMAINS), 0.4), runs)
    shares[shares < 0.03] = 0
    shares /= shares.sum(axis=1, keepdims=True)
    values = 5 - 0.5 * np.log(0.05 + shares @ worth.T) + 0.03 * random.standard_normal(shares.shape)
    table = MixtureTable(
        domains=DOMAINS,
        metrics=tuple(f"loss/{name}" for name in DOMAINS),
        runs=tuple(map(str, range(runs))),
        shares=shares,
        values=values,
    )
    return table, DomainFeatures.of_vectors(DOMAINS, points[:, None])


def without(table: MixtureTable, name: str) -> MixtureTable:
    """The runs that had nothing of a domain, and the table without it."""
    place = table.domains.index(name)
    kept = table.only(table.shares[:, place] == 0)
    return replace(
        kept,
        domains=tuple(each for each in table.domains if each != name),
        shares=np.delete(kept.shares, place, axis=1),
    )


@cache
def forecast_without_d() -> Forecast:
    """Of the whole world's runs that had nothing of `d`; fitting it takes seconds."""
    return forecast_mixtures(without(a_world()[0], "d"))


def test_a_law_is_found_again_from_its_runs() -> None:
    random = np.random.default_rng(0)
    shares = random.dirichlet(np.ones(4), 200)
    worth = np.array([4.0, 1.0, 0.5, 0.5])
    values = 4 - 0.7 * np.log(0.02 + shares @ worth)
    fit = fit_law(shares, values + 0.005 * random.standard_normal(200))
    np.testing.assert_allclose(
        worth_law(fit.theta, shares @ np.exp(fit.theta[HEAD:])), values, atol=0.01
    )
    np.testing.assert_allclose(fit.log_worth, np.log(worth) - np.log(worth).mean(), atol=0.15)
    assert fit.noise == pytest.approx(0.005, rel=0.3)


def test_runs_without_a_metric_do_not_count_for_its_law() -> None:
    table, _ = a_world(40)
    holes = table.values.copy()
    holes[::3, 0] = np.nan
    kept = np.isfinite(holes[:, 0])
    with_holes = fit_law(table.shares, holes[:, 0])
    np.testing.assert_allclose(with_holes.theta, fit_law(table.shares[kept], holes[kept, 0]).theta)


def test_a_domain_that_never_varied_has_a_worth_that_is_unknown() -> None:
    table, _ = a_world(100)
    table = without(table, "c")
    shares = np.column_stack([table.shares, np.zeros(len(table))])
    fit = fit_law(shares, table.values[:, 0])
    spread = np.sqrt(np.diag(fit.covariance))[HEAD:]
    assert spread[-1] > 1.5
    assert np.median(spread[:-1]) < 0.5


def test_without_a_share_of_the_new_domain_the_forecast_is_the_old_one() -> None:
    _, features = a_world()
    old = forecast_without_d()
    wider = forecast_with_new_domain(old, features)
    assert wider.table.domains == (*old.table.domains, "d")
    shares = old.table.shares[:20]
    more = np.column_stack([shares, np.zeros(20)])
    np.testing.assert_allclose(wider.predict(more), old.predict(shares), rtol=1e-12)
    np.testing.assert_allclose(wider.draws(more), old.draws(shares), rtol=1e-12)
    np.testing.assert_allclose(wider.noise(more), old.noise(shares), rtol=1e-12)
    for ours, theirs in zip(wider.interval(more, 0.8), old.interval(shares, 0.8), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)


def test_the_forecast_is_wide_along_the_new_domain() -> None:
    _, features = a_world()
    wider = forecast_with_new_domain(forecast_without_d(), features)
    share = np.array([0.0, 0.02, 0.05, 0.3, 1.0])
    others = np.tile(wider.table.shares.mean(axis=0)[:-1], (5, 1))
    shares = np.column_stack([(1 - share)[:, None] * others, share])
    own = wider.table.metrics.index("loss/d")
    spread = wider.draws(shares).std(axis=0)[:, own]
    assert (np.diff(spread[:3]) > 0).all()
    assert (spread[3:] > 3 * spread[0]).all()
    low, high = wider.interval(shares)
    assert ((high - low)[3:, own] > 2 * (high - low)[0, own]).all()


def test_draws_are_the_same_laws_in_every_call() -> None:
    table, features = a_world(80)
    wider = forecast_with_new_domain(forecast_mixtures(without(table, "d")), features, seed=3)
    shares = np.full((2, 8), 1 / 8)
    first, second = wider.draws(shares), wider.draws(np.vstack([shares, shares]))
    np.testing.assert_allclose(first, second[:, 2:], rtol=1e-12)
    again = forecast_with_new_domain(forecast_mixtures(without(table, "d")), features, seed=3)
    np.testing.assert_array_equal(again.predict(shares), wider.predict(shares))


def test_the_prior_says_for_which_metrics_a_new_domain_is_good() -> None:
    """By its neighbours: the worths of a domain left out are ranked as they are."""
    _, features = a_world()
    points = features.vectors[:, 0]
    wider = forecast_with_new_domain(forecast_without_d(), features)
    mean = wider.prior.mean[0]  # type: ignore[attr-defined]
    near = np.argsort(np.abs(points - points[3]))
    assert np.argmax(mean) == 3  # its own
    assert mean[near[1:3]].mean() > mean[near[4:]].mean() + 1


def test_leaving_domains_out_covers_what_it_claims_and_beats_a_blind_guess() -> None:
    table, features = a_world()
    report = how_far(table, features)
    assert len(report.domains) == len(DOMAINS)
    assert 0.85 <= report.covered <= 0.97
    assert report.error < 0.5 * report.blind_error
    assert "taken as new" in report.describe()[0]


def test_features_that_say_something_make_the_prediction_better() -> None:
    table, features = a_world()
    shuffled = replace(features, names=tuple("hdbfgaec"))
    assert how_far(table, features).error < 0.9 * how_far(table, shuffled).error


def test_without_features_the_width_is_still_honest() -> None:
    table, _ = a_world()
    nameless = replace(table, metrics=tuple(f"m{n}" for n in range(8)))
    report = how_far(nameless)
    assert 0.83 <= report.covered <= 0.97
    assert np.isnan(report.domains[0].covered_own)


def test_a_domain_in_nearly_all_runs_cannot_be_left_out() -> None:
    table, _ = a_world(60)
    mixed = 0.9 * table.shares + 0.1 * np.eye(8)[0]
    report = how_far(replace(table, shares=mixed))
    assert report.left == ("a",)
    assert "nearly every run had them: 'a'" in report.describe()[-1]


def test_a_domain_that_all_runs_had_alike_gets_a_prior_too() -> None:
    table, _ = a_world()
    left = without(table, "d")
    shares = np.column_stack([0.8 * left.shares, np.full(len(left), 0.2)])
    constant = replace(left, domains=(*left.domains, "d"), shares=shares)
    old = forecast_mixtures(constant)
    wider = forecast_with_new_domain(old)
    assert wider.table.domains == constant.domains
    np.testing.assert_allclose(wider.predict(shares), old.predict(shares), rtol=1e-12)
    more = np.column_stack([0.4 * left.shares, np.full(len(left), 0.6)])
    less = np.column_stack([left.shares, np.zeros(len(left))])
    for other in (more, less):
        assert np.isfinite(wider.predict(other)).all()
        assert (wider.draws(other).std(axis=0) >= 0.9 * old.draws(shares).std(axis=0)).mean() > 0.8


def test_metrics_that_should_rise_are_turned_round_and_back() -> None:
    table, features = a_world()
    rising = replace(table, values=-table.values, larger_is_better=table.metrics)
    shares = np.full((1, 8), 1 / 8)
    plain = forecast_with_new_domain(forecast_without_d(), features)
    turned = forecast_with_new_domain(forecast_mixtures(without(rising, "d")), features)
    np.testing.assert_allclose(turned.predict(shares), -plain.predict(shares), rtol=1e-6)


def test_nothing_new_leaves_the_forecast_alone() -> None:
    table, features = a_world(40)
    forecast = RidgeForecast(table)
    assert forecast_with_new_domain(forecast, features) is forecast


@pytest.mark.parametrize(
    ("new", "sentence"),
    [
        (["a"], "should be one that no run varied. Found 'a'"),
        (["z"], "Features should be there for every domain. Found none for 'z'"),
    ],
)
def test_a_domain_that_cannot_be_new_gets_a_sentence(new: list[str], sentence: str) -> None:
    table, features = a_world(40)
    with pytest.raises(InputError, match=re.escape(sentence)):
        forecast_with_new_domain(RidgeForecast(table), features, new=new)


def test_too_few_domains_get_a_sentence() -> None:
    table = MixtureTable(
        domains=("a",), metrics=("loss",), runs=("x", "y"),
        shares=np.ones((2, 1)), values=np.ones((2, 1)),
    )  # fmt: skip
    with pytest.raises(InputError, match="at least two known ones to learn from"):
        forecast_with_new_domain(RidgeForecast(table), new=["b"])
    with pytest.raises(InputError, match="at least three domains, to leave one out"):
        how_far(table)


def test_a_metric_measures_the_domain_whose_name_it_bears() -> None:
    domains = ("c", "pile", "pile_cc", "python")
    metrics = ("python", "loss/pile_cc", "pile bpb", "C_bits", "pythonic", "mean")
    assert measured_domains(metrics, domains) == ("python", "pile_cc", "pile", "c", None, None)
    assert measured_domains(("mean",), domains, {"mean": "c"}) == ("c",)
    with pytest.raises(
        InputError, match=r"`measured` should name metrics of the table\. Found 'x'"
    ):
        measured_domains(("mean",), domains, {"x": "c"})


def test_metrics_of_one_kind_lend_each_other_the_shape_of_their_laws() -> None:
    """A metric whose own domain no run had cannot say how far it would fall; the others can."""
    table, _ = a_world()
    measures = tuple(DOMAINS)
    left = without(table, "d")
    worths = fit_worths(left, measures)
    full = fit_worths(table, measures)
    slope = worths.fits[3].theta[1]  # log b of the metric of d, without d
    assert slope == pytest.approx(np.log(0.5), abs=0.5)
    assert np.isnan(worths.own[3])
    assert np.isfinite(full.own).all()

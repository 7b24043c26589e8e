from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from numpy.typing import NDArray

from taskmix.adviser import _estimate
from taskmix.adviser._estimate import Estimate, Measured, estimate_ways, pooled_noise
from taskmix.errors import InputError

Array = NDArray[np.float64]


@pytest.fixture
def few_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """For worlds of which there are many: quantiles of 300 draws will do."""
    monkeypatch.setattr(_estimate, "DRAWS", 300)
    monkeypatch.setattr(_estimate, "WARM_UP", 60)


def measured(table: Array, name: str = "top") -> Measured:
    """Of [way, seed] or [way, seed, number], ways named by their places."""
    numbers = table[:, :, None] if table.ndim == 2 else table
    return Measured(name=name, values={str(way): rows.tolist() for way, rows in enumerate(numbers)})


def of_known_draws(mean: Array, covariance: Array, draws: int, noise: float) -> Estimate:
    generator = np.random.default_rng(7)
    found = generator.multivariate_normal(mean, covariance, draws)
    return Estimate(tuple("abcdefgh"[: len(mean)]), found, noise=noise, agreement={})


# The posterior.


def coverage(worlds: int, *, ways: int, seeds: int, spread: float, noise: float) -> float:
    """Share of true differences of two ways that lie in their 90 % intervals."""
    generator = np.random.default_rng([ways, seeds, round(10 * spread)])
    inside = []
    for _ in range(worlds):
        truth = spread * generator.standard_normal(ways)
        table = truth[:, None] + 5 * generator.standard_normal(seeds)
        table = table + noise * generator.standard_normal(table.shape)
        draws = estimate_ways([measured(table)]).draws
        for one, other in combinations(range(ways), 2):
            low, high = np.quantile(draws[:, one] - draws[:, other], [0.05, 0.95])
            inside.append(low <= truth[one] - truth[other] <= high)
    return float(np.mean(inside))


@pytest.mark.usefixtures("few_draws")
def test_intervals_of_differences_cover_what_they_say() -> None:
    """12 worlds of 15 pairs each, which go together: one of two worlds may be a bad one."""
    assert 0.8 < coverage(12, ways=6, seeds=3, spread=1.0, noise=1.0) <= 0.99


@pytest.mark.slow
@pytest.mark.usefixtures("few_draws")
@pytest.mark.parametrize(
    ("ways", "seeds", "spread"),
    [
        pytest.param(
            *(4, 2, 1.0),
            marks=pytest.mark.xfail(
                strict=True,
                reason="two seeds of ways that differ as seeds do: 76 % instead of 90 %",
            ),
        ),
        (6, 3, 1.0),
        (6, 3, 3.0),
        (8, 5, 0.5),
    ],
)
def test_intervals_of_differences_cover_what_they_say_in_many_worlds(
    ways: int, seeds: int, spread: float
) -> None:
    found = coverage(60, ways=ways, seeds=seeds, spread=spread, noise=1.0)
    assert 0.85 < found < 0.97


def test_the_same_data_have_the_same_draws() -> None:
    table = np.random.default_rng(0).normal(size=(3, 2))
    one, other = estimate_ways([measured(table)]), estimate_ways([measured(table.copy())])
    np.testing.assert_array_equal(one.draws, other.draws)
    assert one.noise == other.noise


def test_scores_that_are_all_alike_have_no_differences() -> None:
    found = estimate_ways([measured(np.full((4, 2), 0.5))])
    assert np.abs(found.draws - 0.5).max() < 1e-6
    assert found.noise < 1e-6


def test_many_seeds_leave_the_means_as_they_are() -> None:
    generator = np.random.default_rng(0)
    truth = np.array([0.0, 1.0, 2.0, 4.0])
    table = truth[:, None] + generator.normal(0, 0.2, (4, 40))
    found = estimate_ways([measured(table)])
    assert found.means == pytest.approx(table.mean(axis=1), abs=0.02)
    assert found.noise == pytest.approx(0.2, rel=0.15)
    behind = found.of("3") - found.of("0")
    assert behind.std() == pytest.approx(0.2 * np.sqrt(2 / 40), rel=0.25)


def world_with_a_loss(*, goes_with_score: bool) -> tuple[Array, Array]:
    """Truths of ten ways, and [way, seed, (score, loss)]: the loss has a fifth of the noise."""
    generator = np.random.default_rng(3)
    truth = generator.standard_normal(10)
    score = truth[:, None] + generator.standard_normal((10, 3))
    about = truth if goes_with_score else generator.standard_normal(10)
    loss = about[:, None] + 0.2 * generator.standard_normal((10, 3))
    return truth, np.stack([score, loss], axis=2)


def spread_of_differences(estimate: Estimate) -> float:
    centred = estimate.draws - estimate.draws.mean(axis=1, keepdims=True)
    return float(centred.std(axis=0).mean())


def test_a_loss_that_goes_with_the_score_sharpens_the_estimate() -> None:
    truth, both = world_with_a_loss(goes_with_score=True)
    alone, helped = (estimate_ways([measured(table)]) for table in (both[:, :, :1], both))
    assert spread_of_differences(helped) < 0.85 * spread_of_differences(alone)

    def off(found: Estimate) -> float:
        return float(np.std(found.means - truth))

    assert off(helped) < 0.75 * off(alone)


def test_a_loss_that_does_not_is_ignored() -> None:
    _, both = world_with_a_loss(goes_with_score=False)
    alone, beside = (estimate_ways([measured(table)]) for table in (both[:, :, :1], both))
    assert spread_of_differences(beside) > 0.85 * spread_of_differences(alone)
    shift = (beside.means - beside.means.mean()) - (alone.means - alone.means.mean())
    assert np.abs(shift).max() < 0.5 * spread_of_differences(alone)


def world_with_a_rung(*, agrees: bool) -> tuple[Array, list[Measured]]:
    """Twelve ways that a cheaper model has run, of which the model itself has run the first nine."""
    generator = np.random.default_rng(5)
    truth = np.linspace(-2, 2, 12)[generator.permutation(12)]
    below = truth if agrees else generator.permutation(truth)
    top = truth[:9, None] + 0.2 * generator.standard_normal((9, 2))
    rung = 0.1 * below[:, None] - 7 + 0.02 * generator.standard_normal((12, 2))
    return truth, [measured(top), measured(rung, "rung")]


def test_a_rung_that_agrees_says_how_good_ways_are_that_only_it_has_run() -> None:
    truth, groups = world_with_a_rung(agrees=True)
    found = estimate_ways(groups)
    assert np.quantile(found.agreement["rung"], 0.05) > 0.7
    unseen = found.means[9:] - found.means[:9].mean()
    assert unseen == pytest.approx(truth[9:] - truth[:9].mean(), abs=0.6)
    assert found.draws[:, 9:].std(axis=0).max() < 0.8


def test_a_rung_that_does_not_agree_says_nothing_of_them() -> None:
    _, groups = world_with_a_rung(agrees=False)
    found = estimate_ways(groups)
    low, high = np.quantile(found.agreement["rung"], [0.05, 0.95])
    assert low < 0.3
    assert high - low > 0.5
    known = found.means[:9]
    assert np.abs(found.means[9:] - known.mean()).max() < known.std(), "near the mean of all"
    assert found.draws[:, 9:].std(axis=0).min() > 0.7 * known.std(), "as wide as ways are apart"


@pytest.mark.parametrize("values", [{}, {"a": []}, {"a": [[float("nan")]]}])
def test_an_estimate_of_no_scores_is_refused(values: dict[str, list[list[float]]]) -> None:
    with pytest.raises(InputError, match="rest on a score"):
        estimate_ways([Measured(name="top", values=values)])


@pytest.mark.parametrize(("ways", "seeds"), [(2, 2), (5, 3), (3, 6)])
def test_noise_of_a_full_table_is_that_of_the_textbook(ways: int, seeds: int) -> None:
    table = np.random.default_rng(ways).normal(size=(ways, seeds))
    rest = table - table.mean(1, keepdims=True) - table.mean(0, keepdims=True) + table.mean()
    degrees = (ways - 1) * (seeds - 1)
    assert pooled_noise(table) == pytest.approx((np.sqrt((rest**2).sum() / degrees), degrees))


# What is done to it afterwards.


def test_ways_move_by_their_gains_and_draw_together() -> None:
    draws = np.array([[1.0, 3.0], [2.0, 2.0]])
    estimate = Estimate(("a", "b"), draws, noise=0.1, agreement={})
    moved = estimate.moved(np.array([1.0, 0.0]), 0.0, contraction=0.5)
    assert moved.draws == pytest.approx(np.array([[2.5, 2.5], [3.0, 2.0]]))


def test_each_way_moves_with_an_error_of_its_own() -> None:
    estimate = Estimate(("a", "b"), np.zeros((20_000, 2)), noise=0.1, agreement={})
    moved = estimate.moved(np.zeros(2), 0.3).draws
    assert moved.std(axis=0) == pytest.approx([0.3, 0.3], rel=0.03)
    assert np.corrcoef(moved.T)[0, 1] == pytest.approx(0.0, abs=0.03)


def test_longer_runs_move_an_estimate_as_the_normal_law_has_it() -> None:
    mean = np.array([0.0, 1.0, 2.0])
    covariance = np.array([[1.0, 0.5, 0.2], [0.5, 2.0, 0.3], [0.2, 0.3, 1.5]])
    estimate = of_known_draws(mean, covariance, 40_000, noise=0.6)
    seen = estimate.seen({"a": 10.5, "b": 13.0}, {"a": 2, "b": 3})
    # The difference b - a is 2.5 where 1 was expected, with a variance of 0.36 (1/2 + 1/3) = 0.3.
    contrast = np.array([-1.0, 1.0, 0.0])
    gain = covariance @ contrast / (contrast @ covariance @ contrast + 0.3)
    expected = covariance - np.outer(gain, contrast @ covariance)
    assert seen.means == pytest.approx(mean + gain * 1.5, abs=0.03)
    assert np.cov(seen.draws.T) == pytest.approx(expected, abs=0.04)


def test_what_longer_runs_have_in_common_is_no_news() -> None:
    estimate = of_known_draws(np.zeros(3), np.eye(3), 500, noise=0.5)
    one = estimate.seen({"a": 0.1, "b": 0.3}, {"a": 1, "b": 1})
    other = estimate.seen({"a": 100.1, "b": 100.3}, {"a": 1, "b": 1})
    np.testing.assert_allclose(one.draws, other.draws, atol=1e-9)
    assert estimate.seen({"a": 5.0}, {"a": 1}) is estimate, "of one way nothing can be compared"


def test_rows_that_favour_all_ways_alike_change_no_difference() -> None:
    estimate = of_known_draws(np.array([0.0, 1.0, 3.0]), 0.01 * np.eye(3), 200, noise=0.1)
    new = estimate.on_new_rows({way: np.full(3, 4.0) for way in "abc"})
    np.testing.assert_allclose(np.diff(new.draws), np.diff(estimate.draws), atol=1e-6)
    assert estimate.on_new_rows(None) is estimate


def test_new_rows_take_back_the_share_of_differences_that_the_old_ones_made() -> None:
    # Scores of many ways are known and their variance is 4: rows of variance 1 made a quarter of it.
    eta = np.random.default_rng(0).standard_normal(100)
    eta = 2 * (eta - eta.mean()) / eta.std(ddof=1)
    ways = tuple(map(str, range(100)))
    estimate = Estimate(ways, np.tile(eta, (2000, 1)), noise=0.1, agreement={})
    new = estimate.on_new_rows(dict(zip(ways, np.eye(100), strict=True)))
    assert new.means == pytest.approx(0.75 * eta, abs=0.15)
    assert new.draws.var(axis=0).mean() == pytest.approx(0.75, rel=0.05)  # T² R / (T² + R)


@pytest.mark.parametrize("spread", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("ways", [2, 6])
def test_differences_on_new_rows_are_covered_as_often_as_is_said(ways: int, spread: float) -> None:
    """Against brute force: ways, and what rows do to them, are drawn anew and anew.

    Rows favour the first half of the ways together. Where ways differ less than rows make them differ,
    nobody can know how little, and intervals are wider than they need be.
    """
    generator = np.random.default_rng([ways, round(10 * spread)])
    kind = np.arange(ways) // max(ways // 2, 1)
    rows = 0.4 * np.eye(ways) + 0.6 * (kind[:, None] == kind)
    names = tuple(map(str, range(ways)))
    inside = []
    for _ in range(250):
        truth = spread * generator.standard_normal(ways)
        eta = truth + generator.multivariate_normal(np.zeros(ways), rows)
        estimate = Estimate(names, np.tile(eta, (200, 1)), noise=0.1, agreement={})
        new = estimate.on_new_rows(dict(zip(names, rows, strict=True))).draws
        for one, other in combinations(range(ways), 2):
            low, high = np.quantile(new[:, one] - new[:, other], [0.05, 0.95])
            inside.append(low <= truth[one] - truth[other] <= high)
    assert 0.84 < np.mean(inside) < 0.99


def test_what_one_way_shows_of_a_shared_error_others_learn() -> None:
    draws = np.zeros((4000, 3)) + np.random.default_rng(0).normal(scale=0.01, size=(4000, 3))
    before = Estimate(ways=("a", "b", "c"), draws=draws, noise=0.01, agreement={})
    # `a` and `b` are foretold to gain by curves that may all be wrong together, `c` is not.
    moved = before.moved(np.zeros(3), 0.0, shared=np.array([1.0, 1.0, 0.0]))
    after = moved.seen({"a": -0.5, "c": 0.0}, {"a": 1, "c": 1})
    means = dict(zip(after.ways, after.means, strict=True))
    assert means["a"] - means["c"] == pytest.approx(-0.5, abs=0.05)
    assert means["b"] - means["c"] == pytest.approx(-0.5, abs=0.05), "it has not been run again"

"""Which runs of the large size would settle the order of the best mixtures."""

from __future__ import annotations

import numpy as np
import pytest
from quick_forecast import use_forecast
from size_worlds import forecast_roots, random_shares, roots_law, table_of

from taskmix.errors import InputError
from taskmix.mixtures import (
    MixtureLimits,
    MixtureTable,
    MixtureTarget,
    SettlingRuns,
    choose_large_runs,
    forecast_at_size,
)
from taskmix.mixtures._optimum._search import candidate_mixtures, optima_of_draws
from taskmix.mixtures._optimum._target import JudgedMixtures
from taskmix.mixtures._scales._large_runs import choose_runs

SMALL, LARGE = 1e6, 6e7


@pytest.fixture(autouse=True)
def _known_form(monkeypatch: pytest.MonkeyPatch) -> None:
    use_forecast(monkeypatch, forecast_roots)


def left_by_conditioning(
    drawn: np.ndarray, chances: np.ndarray, noise: np.ndarray, chosen: list[int]
) -> float:
    """The same by the textbook: the covariance after all chosen runs at once."""
    count = len(chances)
    covariance = np.cov(drawn, rowvar=False, bias=True)
    seen = covariance[np.ix_(chosen, chosen)] + np.diag(noise[chosen])
    across = covariance[:count, chosen]
    after = covariance[:count, :count] - across @ np.linalg.solve(seen, across.T)

    def differences(inner: np.ndarray) -> float:
        return float(chances @ np.diag(inner) - chances @ inner @ chances)

    return differences(after) / differences(covariance[:count, :count])


def test_what_is_left_is_what_conditioning_on_the_runs_leaves() -> None:
    random = np.random.default_rng(0)
    drawn = random.standard_normal((400, 9)) @ random.standard_normal((9, 9))
    chances, noise = np.array([0.5, 0.3, 0.2]), random.uniform(0.1, 2.0, 9)
    chosen, left = choose_runs(drawn, drawn[:, :3], chances, noise, 4)
    assert len(set(chosen)) == 4
    for count in range(1, 5):
        assert left[count - 1] == pytest.approx(
            left_by_conditioning(drawn, chances, noise, chosen[:count]), abs=1e-6
        )


def test_the_first_run_is_the_best_of_all_single_ones() -> None:
    random = np.random.default_rng(1)
    drawn = random.standard_normal((300, 7)) @ random.standard_normal((7, 7))
    chances, noise = np.array([0.6, 0.4]), np.full(7, 0.5)
    chosen, left = choose_runs(drawn, drawn[:, :2], chances, noise, 1)
    every = [left_by_conditioning(drawn, chances, noise, [place]) for place in range(7)]
    assert chosen == [int(np.argmin(every))]
    assert left[0] == pytest.approx(min(every), abs=1e-6)


def table(large: int, seed: int = 0, added: np.ndarray | None = None) -> MixtureTable:
    random = np.random.default_rng(seed)
    many, few = random_shares(random, 60), random_shares(random, large)
    few = few if added is None else np.concatenate([few, added])
    slopes = np.array([0.5, 0.7, 0.9, 1.0, 1.1, 0.6])
    noise = 0.01 * random.standard_normal((60, 6))
    above = slopes * (roots_law(seed)(few) - 4) + 2.5 + 0.3 * (roots_law(seed + 9)(few) - 4)
    return table_of({SMALL: (many, roots_law(seed)(many) + noise), LARGE: (few, above)})


def test_without_a_large_run_the_first_one_sets_the_level() -> None:
    settling = choose_large_runs(table(large=0), LARGE, count=3)
    assert settling.runs[0].reason.startswith("sets the level at 60 M")
    assert settling.runs[0].left > 0.8
    assert settling.runs[2].left < settling.runs[0].left
    assert not settling.measured
    assert settling.large == 0


def test_runs_keep_to_the_limits() -> None:
    limits = MixtureLimits(at_most={"domain 0": 0.2})
    settling = choose_large_runs(
        table(large=6), LARGE, MixtureTarget(metric="loss 0"), limits, count=3
    )
    assert all(run.shares["domain 0"] <= 0.2 + 1e-6 for run in settling.runs)


def test_the_runs_chosen_tell_more_than_as_many_at_random() -> None:
    """About the order of the mixtures that some law holds for the best."""
    random = np.random.default_rng(7)
    before = table(large=4, seed=1)
    judged = JudgedMixtures(
        forecast=forecast_at_size(before, LARGE, draws=128),
        target=MixtureTarget(),
        limits=MixtureLimits(),
    )
    feasible = MixtureLimits().feasible(before.domains)
    options = candidate_mixtures(feasible, before.shares, random)
    contenders, _ = optima_of_draws(judged, feasible, options)
    chosen = np.array(
        [list(run.shares.values()) for run in choose_large_runs(before, LARGE, count=5).runs]
    )

    def unsure(added: np.ndarray) -> float:
        after = table(large=4, seed=1, added=added)
        drawn = forecast_at_size(after, LARGE, draws=512).draws(contenders).mean(axis=2)
        return float((drawn - drawn.mean(axis=1, keepdims=True)).var(axis=0).mean())

    others = [unsure(random_shares(random, 5)) for _ in range(8)]
    assert unsure(chosen) < np.mean(others)


def test_small_runs_are_worth_large_ones_by_the_formula_of_control_variates() -> None:
    settling = SettlingRuns(size=LARGE, runs=(), correlation=0.9, measured=True, small=512, large=8)
    # 1 / (0.19 / 8 + 0.81 / 512)
    assert settling.variance_left == pytest.approx(0.19)
    assert settling.worth == 39.5
    assert "8 large runs with them tell as much as 40 alone" in settling.words
    useless = SettlingRuns(size=LARGE, runs=(), correlation=0.0, measured=True, small=512, large=8)
    assert useless.worth == 8


def test_no_runs_at_all_are_refused() -> None:
    with pytest.raises(InputError, match="`count`"):
        choose_large_runs(table(large=6), LARGE, count=0)

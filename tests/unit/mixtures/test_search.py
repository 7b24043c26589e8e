"""The search over a trainer: it stops by itself, goes on where it was, and beats runs at random."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from linear_forecasts import Floats, LinearForecast, inputs_of, table_from

from taskmix.errors import InputError
from taskmix.mixtures import (
    MixtureLimits,
    MixtureTable,
    MixtureTarget,
    SearchRound,
    search_mixtures,
)

DOMAINS = ("web", "code", "books", "chat")
PARTS = np.arange(21)
GRID = np.array([
    (one, two, three, 20 - one - two - three)
    for one in PARTS for two in PARTS[: 21 - one] for three in PARTS[: 21 - one - two]
]) / 20  # fmt: skip


class Trainer:
    """A linear law with noise that is a function of the run's number, and what was asked of it."""

    def __init__(self, seed: int, *, noise: float = 0.1, done: int = 0) -> None:
        self.weights = np.random.default_rng(seed).standard_normal((9, 2))
        self.noise, self.asked = noise, [np.empty((0, 4))]
        self.done = done

    def law(self, shares: Floats) -> Floats:
        return inputs_of(shares) @ self.weights

    def __call__(self, shares: Floats) -> Floats:
        luck = [
            np.random.default_rng(self.done + number).standard_normal(2)
            for number in range(len(shares))
        ]
        self.done += len(shares)
        self.asked.append(shares)
        return self.law(shares) + self.noise * np.array(luck)

    def regret(self, mixture: Floats) -> float:
        lowest = self.law(GRID).mean(axis=1).min()
        return float(self.law(mixture[None]).mean() - lowest)


def believe(table: MixtureTable) -> LinearForecast:
    return LinearForecast(table, draws=64)


def search(trainer: Trainer, **options: Any) -> Any:
    options = {"first": 8, "batch": 4, "make_forecast": believe, "most_runs": 40, **options}
    return search_mixtures(trainer, DOMAINS, **options)


def test_it_stops_by_itself_near_the_best_mixture_and_says_why() -> None:
    trainer = Trainer(2)
    rounds: list[SearchRound] = []
    found = search(trainer, tolerance=0.01, after_round=rounds.append)
    assert found.is_settled
    assert len(found.table) < 40
    assert found.why.startswith("Enough: the expected regret is")
    assert "0.01 was asked for" in found.why
    assert trainer.regret(found.recommended) < 0.02
    assert [each.runs for each in rounds] == list(range(8, len(found.table) + 1, 4))
    assert rounds[-1].proposed.regret.mean < rounds[0].proposed.regret.mean
    np.testing.assert_array_equal(found.table.shares, np.concatenate(trainer.asked))


def test_an_interrupted_search_goes_on_with_the_same_runs() -> None:
    whole = search(Trainer(1), tolerance=0.0, most_runs=20).table
    for runs in (3, 8, 12):
        resumed = Trainer(1, done=runs)
        table = search(resumed, tolerance=0.0, most_runs=20, earlier=whole.only(range(runs))).table
        np.testing.assert_array_equal(table.shares, whole.shares)
        np.testing.assert_array_equal(table.values, whole.values)
        assert resumed.done == 20


def test_it_stops_at_the_most_runs_and_says_so() -> None:
    found = search(Trainer(2), tolerance=0.0, most_runs=10)
    assert len(found.table) == 10
    assert not found.is_settled
    assert found.why.startswith(
        "Stopped at the 10 runs that were allowed. Go on: the expected regret"
    )


def test_it_stops_where_noise_drowns_what_runs_could_tell() -> None:
    trainer = Trainer(3, noise=50.0)
    found = search(
        trainer,
        tolerance=0.0,
        make_forecast=lambda table: LinearForecast(table, draws=64, noise=50.0),
    )
    assert len(found.table) < 40
    assert not found.is_settled
    assert "would lower it by" in found.why


def test_over_six_laws_it_leaves_less_regret_than_as_many_runs_at_random() -> None:
    ours, at_random = [], []
    for seed in range(6):
        trainer = Trainer(100 + seed)
        found = search(trainer, tolerance=0.0, most_runs=20, seed=seed)
        ours.append(trainer.regret(found.recommended))
        shares = np.random.default_rng(seed).dirichlet(np.ones(4), 20)
        believed = believe(table_from(shares, trainer(shares)))
        best = believed.predict(GRID).mean(axis=1).argmin()
        at_random.append(trainer.regret(GRID[best]))
    assert np.mean(ours) < 0.7 * np.mean(at_random)


def test_failed_runs_targets_and_limits_are_taken_as_they_are() -> None:
    trainer = Trainer(4)

    def train(shares: Floats) -> Floats:
        values = trainer(shares)
        values[0] = np.nan
        return values

    limits = MixtureLimits(at_most=0.4)
    found = search_mixtures(
        train,
        DOMAINS,
        first=9,
        most_runs=13,
        metrics=("loss", "accuracy"),
        larger_is_better=("accuracy",),
        target=MixtureTarget(metric="accuracy"),
        limits=limits,
        make_forecast=believe,
    )
    assert found.table.metrics == ("loss", "accuracy")
    assert np.isnan(found.table.values[[0, 9]]).all()
    assert limits.feasible(DOMAINS).contains(found.table.shares).all()
    grid = GRID[(GRID <= 0.4).all(axis=1)]
    wanted = found.rounds[-1].proposed.regret
    highest = believe(found.table).predict(grid)[:, 1].max()
    reached = believe(found.table).predict(wanted.recommended[None])[0, 1]
    assert reached > highest - 1e-3


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"batch": 0}, "`batch` should be at least 1"),
        ({"first": 0}, "`first` should be at least 1"),
        ({"first": 8, "most_runs": 4}, "`most_runs` should be at least the 8 runs"),
        ({"metrics": ("loss",)}, "`train` should return 1 metrics: loss. Found 2"),
        (
            {"earlier": table_from(np.full((2, 3), 1 / 3), np.ones((2, 2)))},
            "`earlier` should have the same domains in the same order: web, code, books, chat",
        ),
    ],
)
def test_what_cannot_be_searched_is_refused_in_a_sentence(
    options: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(InputError, match=sentence):
        search(Trainer(5), **options)


def test_a_trainer_that_returns_no_row_for_each_mixture_is_refused() -> None:
    with pytest.raises(InputError, match="a row of metrics for each of the 8 mixtures"):
        search_mixtures(lambda shares: shares[0], DOMAINS, first=8)

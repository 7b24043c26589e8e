"""The knowledge gradient from draws: values by hand, and an exact Bayesian law as the oracle."""

from __future__ import annotations

import numpy as np
import pytest
from linear_forecasts import LinearForecast, inputs_of, linear_table, table_from
from numpy.typing import NDArray
from scipy.stats import norm

from taskmix.mixtures import next_mixtures
from taskmix.mixtures._knowledge_gradient import Beliefs, shrunk_gains

Floats = NDArray[np.float64]


def one_unknown(mean: float, spread: float, noise: float, draws: int = 4000) -> Beliefs:
    """Two contenders of one metric: the first gives 0, of the second `mean` and `spread` are known."""
    unknown = mean + spread * norm.ppf((np.arange(draws) + 0.5) / draws)
    truth = np.stack([np.zeros(draws), unknown], axis=1)[:, :, None]
    return Beliefs.before(
        lambda values: values[..., 0],
        is_linear=True,
        truth=truth,
        run_truth=truth,
        noise=np.full((2, 1), noise),
        random=np.random.default_rng(0),
    )


@pytest.mark.parametrize(("mean", "noise"), [(0.0, 0.0), (0.5, 1.0), (-0.7, 0.3)])
def test_the_worth_of_a_run_is_that_of_the_formula(mean: float, noise: float) -> None:
    # Frazier et al.: s (z Phi(z) + phi(z)) with z = -|mean| / s, s the spread of what will be expected.
    beliefs = one_unknown(mean, 2.0, noise)
    moved = 4.0 / np.hypot(2.0, noise)
    away = -abs(mean) / moved
    worth = moved * (away * norm.cdf(away) + norm.pdf(away))
    found = beliefs.won_after_each([0, 1]).mean(axis=1)
    assert found[0] == pytest.approx(0.0, abs=1e-9)  # nothing is unknown of the first
    assert found[1] == pytest.approx(worth, rel=0.05)
    assert beliefs.after(1, np.random.default_rng(1)).won().mean() == pytest.approx(found[1])


def test_a_run_without_noise_leaves_nothing_to_learn_where_it_was() -> None:
    after = one_unknown(0.5, 2.0, 0.0).after(1, np.random.default_rng(1))
    np.testing.assert_allclose(after.run_expected[:, 1], after.run_truth[:, 1], atol=1e-9)
    assert after.explained([1])[0] == pytest.approx(0.0, abs=1e-12)


def test_gains_are_those_of_conditioning_where_draws_go_together() -> None:
    here = norm.ppf((np.arange(1000) + 0.5) / 1000)[:, None, None]
    gain = shrunk_gains(here, np.concatenate([here, -2 * here], axis=1), np.array([[1.0]]))
    # Variance 1 and noise 1: half of the surprise is believed, and twice as much the other way.
    np.testing.assert_allclose(gain[0, :, 0], [0.5, -1.0], rtol=5e-3)


def test_gains_between_draws_that_go_together_by_chance_are_mostly_nothing() -> None:
    random = np.random.default_rng(0)
    here, left = random.standard_normal((40, 1, 1)), random.standard_normal((40, 400, 1))
    gain = shrunk_gains(here, left, np.array([[0.0]]))
    plain = np.einsum("jr,jx->x", here[:, 0], left[:, :, 0]) / (here**2).sum()
    assert (gain == 0).mean() > 0.6
    assert (gain**2).mean() < 0.5 * (plain**2).mean()


def test_a_target_that_is_not_linear_is_judged_the_same_way_if_it_happens_to_be() -> None:
    linear = one_unknown(0.5, 2.0, 1.0)
    general = Beliefs(**{**vars(linear), "is_linear": False})
    np.testing.assert_allclose(
        linear.won_after_each([0, 1]), general.won_after_each([0, 1]), atol=1e-9
    )


def regret_by_refitting(table_seed: int, runs: Floats, *, truths: int = 300) -> float:
    """The oracle: for each of many truths the runs are done, and beliefs are updated exactly."""
    table = linear_table(domains=3, seed=table_seed)
    drawn = LinearForecast(table, draws=truths, seed=77).drawn
    random = np.random.default_rng(5)
    grid = np.concatenate([random.dirichlet(np.full(3, part), 700) for part in (0.3, 1.0)])
    shares = np.concatenate([table.shares, runs])
    regrets = []
    for weights in drawn:
        seen = inputs_of(runs) @ weights + 0.1 * random.standard_normal((len(runs), 2))
        after = LinearForecast(table_from(shares, np.concatenate([table.values, seen])), draws=1)
        true = (inputs_of(grid) @ weights).mean(axis=1)
        regrets.append(true[after.predict(grid).mean(axis=1).argmin()] - true.min())
    return float(np.mean(regrets))


def test_the_regret_foretold_is_what_exact_beliefs_give_and_below_that_of_runs_at_random() -> None:
    foretold, found, at_random = [], [], []
    for seed in range(4):
        table = linear_table(domains=3, seed=seed)
        runs = next_mixtures(LinearForecast(table, draws=128, seed=seed), count=3, seed=seed)
        foretold.append(runs.regret_after)
        found.append(regret_by_refitting(seed, runs.shares))
        drawn = np.random.default_rng(seed).dirichlet(np.ones(3), 3)
        at_random.append(regret_by_refitting(seed, drawn))
    assert np.mean(found) == pytest.approx(np.mean(foretold), rel=0.35)
    assert np.mean(found) < 0.8 * np.mean(at_random)

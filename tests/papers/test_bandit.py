"""The bandit of Glover and Hokamp (2019): a small one always, the whole of it when asked for."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from papers.bandit import BanditOptions, bandit_rows, gap_closed, play_bandit
from papers.bandit_world import MultitaskBandit, play_exp3s, play_fixed
from taskmix.policies import (
    AnyPolicy,
    AnyReward,
    Exp3S,
    Fixed,
    HardProgress,
    Outcome,
    PredictionGain,
    QuantileScaled,
)


def play_rounds(
    bandit: MultitaskBandit, policy: AnyPolicy, reward: AnyReward, generator: np.random.Generator
) -> Iterator[tuple[Outcome, np.ndarray]]:
    """The oracle: one run, pull by pull, by the policy and the reward themselves; what came of each
    pull, and all scores after it."""
    count = len(bandit.oracle)
    scores = bandit.init()
    state, reward_state = policy.init(np.ones(count, dtype=np.int64)), reward.init(count)
    latest: list[float | None] = [None] * count
    left = float(bandit.steps)
    while left > 0:
        choice = policy.select(state, generator)
        arm = choice.task
        before = float(bandit.losses(scores[arm]))
        scores = bandit.pull(scores, np.asarray(arm))
        after, cost = float(bandit.losses(scores[arm])), float(bandit.cost[arm])
        outcome = Outcome(choice, before, latest[arm], after, cost)
        value, reward_state = reward.observe(reward_state, outcome, generator)
        outcome = Outcome(choice, before, latest[arm], after, cost, value)
        state = policy.update(state, outcome)
        latest[arm] = before
        left -= cost
        yield outcome, scores


def one_run(bandit: MultitaskBandit) -> MultitaskBandit:
    names = ("oracle", "ceiling", "learning", "forgetting", "cost", "transfer")
    known = {name: getattr(bandit, name) for name in names}
    return replace(bandit, **{name: each[None] for name, each in known.items() if each is not None})


VARIANTS: dict[str, dict[str, Any]] = {
    "as in the paper": {},
    "transfer": {"transfer": (0.0, 0.3)},
    "negative transfer": {"transfer": (-0.3, 0.1)},
    "cost": {"cost": (0.5, 3.0)},
}


@pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS.keys())
def test_many_runs_at_once_are_the_policy_played_alone(variant: dict[str, Any]) -> None:
    bandit = MultitaskBandit.sample(np.random.default_rng(0), steps=600, **variant)
    shares = np.random.default_rng(1).dirichlet(np.ones(8))
    together = play_fixed(
        one_run(bandit), shares[None], generator=np.random.default_rng(2), points=10
    )
    reward = HardProgress(per_cost=True)
    rounds = list(play_rounds(bandit, Fixed(shares), reward, np.random.default_rng(2)))
    alone = [outcome for outcome, _ in rounds]
    length = int(together.lengths[0])
    assert length == len(alone)
    tasks = [one.choice.task for one in alone]
    assert tasks == together.tasks[:length, 0].tolist()
    np.testing.assert_allclose(
        [one.choice.probability for one in alone], together.probabilities[:length, 0]
    )
    np.testing.assert_allclose([one.loss for one in alone], together.losses[:length, 0])
    rewards = [np.nan if one.reward is None else one.reward for one in alone]
    np.testing.assert_allclose(rewards, together.rewards[:length, 0])
    assert rounds[-1][1].mean() == pytest.approx(together.curve[-1, 0])


def test_exp3s_at_once_is_exp3s_alone() -> None:
    # With room for every reward the reservoir draws no numbers, so both draw the same ones.
    bandit = MultitaskBandit.sample(np.random.default_rng(3), steps=600)
    together = play_exp3s(
        one_run(bandit), generator=np.random.default_rng(4), points=10, reservoir=600
    )
    reward = QuantileScaled(reward=PredictionGain(), reservoir=600)
    alone = [one for one, _ in play_rounds(bandit, Exp3S(), reward, np.random.default_rng(4))]
    assert [one.choice.task for one in alone] == together.tasks[:, 0].tolist()
    np.testing.assert_allclose(
        [one.choice.probability for one in alone], together.probabilities[:, 0], rtol=1e-9
    )


def test_the_gap_closed_is_a_ratio_of_means_with_its_interval() -> None:
    random, oracle = np.array([0.5, 0.6]), np.array([0.7, 1.0])
    found = gap_closed(np.array([0.6, 0.8]), random, oracle)
    assert found.mean == pytest.approx(0.5)
    assert found.low == pytest.approx(0.5)  # each environment closes just half
    assert gap_closed(oracle, random, oracle).mean == 1.0
    assert np.isnan(gap_closed(oracle[:1], random[:1], oracle[:1]).low)


def test_a_small_experiment_has_the_rows_of_the_whole() -> None:
    told: list[str] = []
    options = BanditOptions(environments=3, seeds=2, steps=1500, points=10)
    rows = bandit_rows(play_bandit(options, told.append))
    found = {row.quantity: row for row in rows}
    for name in ("paper_recipe", "auto", "staged", "both", "exp3s", "optimum"):
        assert found[f"gap_closed/{name}"].n == 3
    assert found["score/oracle"].ours > found["score/random"].ours
    drawn = found["figure_1/auto"]
    assert drawn.low < drawn.ours < drawn.high
    assert drawn.ours == pytest.approx((drawn.low + drawn.high) / 2), "the median of two seeds"
    assert list(rows[0].as_json()) == ["quantity", "paper", "ours", "low", "high", "n"]
    assert told[0] == "random"
    assert bandit_rows(play_bandit(options)) == rows  # the same seed, the same figures


@pytest.mark.parametrize("suffix", [".svg", ".gif"])
def test_the_command_prints_rows_and_draws_the_figure(
    suffix: str, tmp_path: Path, command: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    figure = tmp_path / f"figure{suffix}"
    words = ("bandit", "--environments", "1", "--seeds", "2", "--steps", "2000", "--json")
    code = command(*words, "--plot", figure)
    told = capsys.readouterr()
    if suffix == ".gif":
        assert (code, figure.exists()) == (2, False)
        assert "ends in .svg, .png or .html" in told.err
        return
    assert code == 0
    found = json.loads(told.out)
    assert found["experiment"] == "bandit"
    scores = {row["quantity"]: row["ours"] for row in found["rows"]}
    assert {"gap_closed/paper_recipe", "gap_closed/auto", "figure_1/exp3s"} <= set(scores)
    gained = scores["score/exp3s"] - scores["score/random"]
    assert scores["score_difference/exp3s_minus_random"] == pytest.approx(gained)
    assert figure.read_bytes().startswith(b"<svg")
    assert figure.stat().st_size > 10_000, "the curves of all policies are drawn"


@pytest.mark.slow
@pytest.mark.paper
def test_figure_1_with_twenty_environments() -> None:
    result = play_bandit(BanditOptions())
    found = {row.quantity: row for row in bandit_rows(result)}
    assert found["gap_closed/auto"].ours >= 1.0
    assert found["gap_closed/paper_recipe"].ours >= 0.45
    assert abs(found["gap_closed/exp3s"].ours) < 0.2
    # Random and Exp3.S lie within each other's bands, as in the figure.
    random, exp3s = found["figure_1/random"], found["figure_1/exp3s"]
    assert random.low <= exp3s.high
    assert exp3s.low <= random.high

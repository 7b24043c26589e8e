from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from taskmix.errors import OptionError, RunError
from taskmix.policies import (
    Choice,
    HardProgress,
    Outcome,
    PredictionGain,
    QuantileScaled,
    ScoreImprovement,
    hard_progress,
    steps_without_draws,
)

GENERATOR = np.random.default_rng(0)
CHOICE = Choice(1, 0.5)


def test_prediction_gain_is_the_fall_of_the_loss_on_the_same_batch() -> None:
    outcome = Outcome(CHOICE, loss=2.0, loss_after=1.25, cost=3.0)
    assert PredictionGain().observe(None, outcome, GENERATOR)[0] == 0.75
    assert PredictionGain(per_cost=True).observe(None, outcome, GENERATOR)[0] == 0.25
    assert PredictionGain().needs_loss_after


@pytest.mark.parametrize(
    ("loss", "previous", "reward"),
    [
        (math.log(2), 1.0, 0.5),  # the loss fell, and the right answer still has only 1/2
        (math.log(2), 0.5, 0.0),  # it rose
        (math.log(2), math.log(2), 0.0),  # it stayed
        (math.log(2), None, None),  # the first visit
        (math.inf, None, None),
        (0.0, 1.0, 0.0),  # perfect
        (-3.0, 1.0, 0.0),  # the density of a continuous target
        (800.0, math.inf, 1.0),
    ],
)
def test_progress_counts_as_much_as_the_task_is_still_hard(
    loss: float, previous: float | None, reward: float | None
) -> None:
    found, _ = HardProgress().observe(None, Outcome(CHOICE, loss, previous), GENERATOR)
    assert found == (reward if reward is None else pytest.approx(reward))
    many = hard_progress(np.array([loss]), np.array([math.nan if previous is None else previous]))
    np.testing.assert_allclose(many, [math.nan if reward is None else reward])


def test_progress_per_unit_of_cost_needs_a_cost() -> None:
    outcome = Outcome(CHOICE, math.log(2), 1.0, cost=4.0)
    assert HardProgress(per_cost=True).observe(None, outcome, GENERATOR)[0] == 0.125
    with pytest.raises(RunError, match="cost of a step"):
        HardProgress(per_cost=True).observe(
            None, Outcome(CHOICE, math.log(2), 1.0, cost=0.0), GENERATOR
        )


def test_score_improvement_compares_with_the_last_measurement_of_the_same_task() -> None:
    reward = ScoreImprovement()
    state = reward.init(2)
    found = []
    for task, score in [(0, 0.4), (1, 0.9), (0, None), (0, 0.55), (1, 0.8)]:
        value, state = reward.observe(
            state, Outcome(Choice(task, 0.5), 1.0, score=score), GENERATOR
        )
        found.append(value)
    assert found[:3] == [None, None, None]
    assert found[3:] == pytest.approx([0.15, -0.1])


def feed(scaled: QuantileScaled, gains: list[float]) -> list[float | None]:
    state, found = scaled.init(2), []
    for gain in gains:
        value, state = scaled.observe(state, Outcome(CHOICE, gain, loss_after=0.0), GENERATOR)
        found.append(value)
    return found


def test_the_20th_percentile_is_minus_one_and_the_80th_is_one() -> None:
    scaled = QuantileScaled(reward=PredictionGain())
    history = [float(gain) for gain in range(11)]  # 0 to 10: the quantiles are 2 and 8
    for gain, expected in [(5.0, 0.0), (3.5, -0.5), (2.0, -1.0), (-9.0, -1.0), (99.0, 1.0)]:
        assert feed(scaled, [*history, gain])[-1] == pytest.approx(expected)


def test_no_range_gives_zero() -> None:
    scaled = QuantileScaled(reward=PredictionGain())
    assert feed(scaled, [7.0]) == [0.0]  # nothing to compare with
    assert feed(scaled, [7.0, 7.0, 7.0, 9.0]) == [0.0, 0.0, 0.0, 0.0]  # all the same so far


@pytest.mark.parametrize(("reward", "expected"), [(4.0, -1.0), (5.0, 0.0), (6.0, 1.0)])
def test_where_the_quantiles_agree_smaller_is_minus_one_and_larger_is_one(
    reward: float, expected: float
) -> None:
    # Of 1 and ten 5s the 20th and the 80th percentile are both 5: Eq. 6 has 0 / 0 for another 5 alone.
    history = [1.0, *[5.0] * 10]
    assert feed(QuantileScaled(reward=PredictionGain()), [*history, reward])[-1] == expected
    with_floor = QuantileScaled(reward=PredictionGain(), floor=0.5)
    assert feed(with_floor, [*history, reward])[-1] == 0.0  # closer than the floor


@pytest.mark.parametrize(
    ("history", "reward", "expected"),
    [
        ([-1e308, 1e308], 0.0, 0.0),  # quantiles -6e307 and 6e307, whose difference is a float
        ([-1.7e308] * 2 + [1.7e308] * 2, 0.0, 0.0),  # -1.7e308 and 1.7e308, whose difference is not
        ([-1.7e308] * 2 + [1.7e308] * 2, 0.85e308, 0.5),
        ([-1.7e308] * 2 + [1.7e308] * 2, math.inf, 1.0),
        ([-1e308, 1.0, 2.0, 3.0, 4.0, 1e308], 1e308, 1.0),  # twice the reward is no float
        ([-1e308, 1.0, 2.0, 3.0, 4.0, 1e308], -math.inf, -1.0),
        ([-1e308, 1.0, 2.0, 3.0, 4.0, 1e308], 2.5, 0.0),
    ],
)
def test_the_largest_numbers_are_scaled_like_any_others(
    history: list[float], reward: float, expected: float
) -> None:
    found = feed(QuantileScaled(reward=PredictionGain()), [*history, reward])
    assert found[-1] == pytest.approx(expected)
    assert all(value is not None and -1 <= value <= 1 for value in found)


def test_a_floor_keeps_the_noise_of_a_plateau_small() -> None:
    noise = [0.01 * (step % 5) for step in range(50)]
    assert max(map(abs, feed(QuantileScaled(reward=PredictionGain()), noise))) == 1.0
    assert set(feed(QuantileScaled(reward=PredictionGain(), floor=0.1), noise)) == {0.0}


def test_the_reservoir_is_a_uniform_sample_of_all_rewards() -> None:
    scaled = QuantileScaled(reward=PredictionGain(), reservoir=100)
    counts = np.zeros(10)
    for seed in range(40):
        generator, state = np.random.default_rng(seed), scaled.init(1)
        for step in range(1000):
            outcome = Outcome(CHOICE, float(step), loss_after=0.0)
            _, state = scaled.observe(state, outcome, generator)
        assert state.seen == 1000
        assert np.all(np.diff(state.values) > 0)
        counts += np.bincount((state.values // 100).astype(int), minlength=10)
    # 4,000 members over ten equal parts of the history: 400 each, standard deviation 18.
    assert np.all(np.abs(counts - 400) < 4 * 18)


@pytest.mark.parametrize(
    "options", [{"low": 0.9}, {"high": 1.5}, {"reservoir": 1}, {"floor": -1.0}]
)
def test_scales_that_cannot_be_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(OptionError, match=next(iter(options))):
        QuantileScaled(reward=PredictionGain(), **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "reward",
    [
        HardProgress(),
        PredictionGain(),
        ScoreImprovement(),
        QuantileScaled(reward=HardProgress(), reservoir=7),
        QuantileScaled(reward=QuantileScaled(reward=PredictionGain(), reservoir=5), reservoir=9),
    ],
)
def test_a_reward_leaves_the_generator_alone_for_as_many_steps_as_it_says(reward: Any) -> None:
    generator = np.random.default_rng(0)
    untouched = generator.bit_generator.state
    state = reward.init(1)
    for step in range(1, 21):
        outcome = Outcome(
            Choice(0, 1.0), loss=1 / step, previous_loss=1.0, loss_after=0.1, score=0.1 * step
        )
        _, state = reward.observe(state, outcome, generator)
        quiet = step <= steps_without_draws(reward)
        assert (generator.bit_generator.state == untouched) == quiet
        if not quiet:
            break

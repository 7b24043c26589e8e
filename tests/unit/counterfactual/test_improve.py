from __future__ import annotations

import math

import numpy as np
import pytest
from simulated_logs import NAMES, learning_log, simulate

from taskmix.counterfactual import (
    Log,
    improve_policy,
    improve_stages,
    learning_curves,
    log_from_arrays,
    maximise,
)
from taskmix.errors import InputError, OptionError
from taskmix.policies import Scheduled


def test_the_entropy_is_chosen_so_that_the_hardest_task_does_not_get_everything() -> None:
    # Task b learns slowest, so it has the largest reward all along. Following the reward alone gives
    # it nearly everything, and the others end where they began.
    greedy = improve_policy(learning_log(0), entropy=0.03)
    assert greedy.probabilities[1] > 0.9
    assert greedy.performance < greedy.performance_before
    assert any("end lower" in note for note in greedy.notes)
    found = improve_policy(learning_log(0))
    assert found.performance > found.performance_before
    assert found.probabilities[1] > 1 / 3
    assert found.notes == ()


def test_the_chosen_entropy_scales_with_the_reward() -> None:
    one = improve_policy(learning_log(0))
    other = improve_policy(learning_log(0, scale=1000.0))
    assert other.entropy == pytest.approx(1000 * one.entropy)
    np.testing.assert_allclose(other.probabilities, one.probabilities, atol=1e-8)


def test_a_log_that_cannot_tell_keeps_to_the_uniform_policy() -> None:
    for seed in range(10):
        log = learning_log(seed, rows=600, rates=(0.0, 0.0, 0.0), noise=0.3, hard=False)
        found = improve_policy(log)
        np.testing.assert_allclose(found.probabilities, 1 / 3, atol=0.02)


def test_logs_without_losses_need_a_number() -> None:
    log = simulate(np.random.default_rng(0))
    plain = log_from_arrays(log.tasks, log.rewards, log.probabilities, names=list("abcde"))
    with pytest.raises(OptionError, match="loss of every row"):
        improve_policy(plain)
    found = improve_policy(plain, entropy=0.2)
    assert math.isnan(found.performance)
    np.testing.assert_allclose(found.probabilities, maximise(plain.total, 0.2).probabilities)
    with pytest.raises(OptionError, match="a number or"):
        improve_policy(plain, entropy="car")


def test_the_gain_is_judged_by_rows_that_did_not_teach() -> None:
    # Rewards without any difference between tasks: the in-sample gain is always above zero.
    inside, crossed, covered = [], [], 0
    for seed in range(100):
        generator = np.random.default_rng(seed)
        tasks = generator.integers(3, size=600)
        rewards = generator.random(600)
        log = log_from_arrays(tasks, rewards, np.full(600, 1 / 3), names=NAMES)
        found = improve_policy(log, entropy=0.02)
        inside.append(float(found.value.value - found.before.value))
        crossed.append(float(found.gain.value))
        covered += bool(found.gain.low <= 0 <= found.gain.high)
    assert np.mean(inside) > 0.005
    assert abs(np.mean(crossed)) < 3 * np.std(crossed) / 10
    assert covered >= 88


def test_rounds_are_pooled_and_faulty_or_foreign_logs_refused() -> None:
    one, other = learning_log(0), learning_log(1, shares=(0.2, 0.2, 0.6))
    pooled = improve_policy([one, other], entropy=0.2)
    np.testing.assert_allclose(
        pooled.probabilities, maximise(one.total + other.total, 0.2).probabilities
    )
    with pytest.raises(InputError, match="at least one log"):
        improve_policy([])
    whole = log_from_arrays([0, 1], [1.0] * 2, [0.5] * 2, names=["x", "y"], stages=1)
    with pytest.raises(InputError, match="at least two stages"):
        improve_policy(whole, entropy=0.2)
    foreign = log_from_arrays([0, 1], [1.0, 1.0], [0.5, 0.5], names=["x", "y"])
    with pytest.raises(InputError, match="same tasks"):
        improve_policy([one, foreign], entropy=0.2)
    wrong = log_from_arrays([0, 1, 2] * 500, [1.0] * 1500, [0.9] * 1500, names=NAMES)
    with pytest.raises(InputError, match="not those the tasks were drawn with"):
        improve_policy(wrong, entropy=0.2)


def test_few_effective_rows_are_noted() -> None:
    found = improve_policy(learning_log(0, rows=60), entropy=0.001)
    assert any("effective rows" in note for note in found.notes)


def turning_log(seed: int, *, rows: int, turns: bool) -> Log:
    """Task a pays in the first half of the run and task b in the second, or both all along."""
    generator = np.random.default_rng(seed)
    tasks = generator.integers(3, size=rows)
    early = np.arange(rows) < rows / 2
    means = np.where(early[:, None], [0.9, 0.1, 0.5], [0.1, 0.9, 0.5])
    means = means if turns else np.full((rows, 3), [0.5, 0.6, 0.4])
    rewards = (generator.random(rows) < means[np.arange(rows), tasks]).astype(float)
    return log_from_arrays(tasks, rewards, np.full(rows, 1 / 3), names=NAMES)


def test_stages_are_found_where_the_best_task_changes() -> None:
    found = improve_stages(turning_log(0, rows=6000, turns=True), entropy=0.1)
    assert len(found.begins) >= 2
    assert found.gain is not None
    assert found.gain.low > 0
    half = len(found.begins) // 2
    assert np.all(found.probabilities[:half, 0] > 0.8)
    assert np.all(found.probabilities[half:, 1] > 0.8)
    # Each stage earns 0.9 or so where the fixed policy earns 0.5.
    assert found.gain.value == pytest.approx(0.35, abs=0.1)
    schedule = found.schedule(1000)
    assert isinstance(schedule, Scheduled)
    assert schedule.stages[half][0] == 500


def test_stages_fall_back_to_the_fixed_policy_where_the_log_cannot_support_them() -> None:
    kept = 0
    for seed in range(40):
        found = improve_stages(turning_log(seed, rows=3000, turns=False), entropy=0.1)
        kept += len(found.begins) == 1
        if len(found.begins) == 1:
            np.testing.assert_array_equal(found.probabilities[0], found.fixed.probabilities)
            assert "not measurably better" in found.reason
    assert kept >= 36  # at most one in twenty by chance, for each of three numbers of stages
    short = improve_stages(turning_log(0, rows=90, turns=True), entropy=0.1)
    assert len(short.begins) == 1
    assert "too short" in short.reason
    assert short.gain is None
    with pytest.raises(OptionError, match="at least 2"):
        improve_stages(turning_log(0, rows=900, turns=True), stages=(1,), entropy=0.1)


def test_stages_that_would_end_lower_are_not_taken() -> None:
    # On the bandit the reward rises with stages more often than the scores do.
    from papers.bandit import logs_of
    from papers.bandit_world import MultitaskBandit, play_fixed

    generator = np.random.default_rng(0)
    bandit = MultitaskBandit.sample(generator, environments=6, steps=4000)
    plays = play_fixed(bandit, np.full((6, 8), 1 / 8), generator=generator)
    for log in logs_of(plays):
        found = improve_stages(log)
        curves = learning_curves([log])
        ends = curves.at(log.rows * found.probabilities.mean(axis=0)).mean()
        assert ends >= found.fixed.performance - 1e-9


def test_the_gain_at_the_end_is_that_of_curves_which_did_not_teach_the_policy() -> None:
    found = improve_policy(learning_log(0))
    assert found.gain_at_end is not None
    assert found.gain_at_end.low > 0
    # What taught the policy flatters it: both figures are of the same shares.
    in_sample = found.performance - found.performance_before
    assert found.gain_at_end.value == pytest.approx(in_sample, abs=0.02)


def test_a_gain_at_the_end_is_seldom_seen_where_there_is_none() -> None:
    seen = 0
    for seed in range(40):
        gain = improve_policy(
            learning_log(seed, rows=600, rates=(0.0, 0.0, 0.0), noise=0.3, hard=False)
        ).gain_at_end
        assert gain is not None
        seen += gain.low > 0
    assert seen <= 4  # one in forty is expected above a 95 % interval

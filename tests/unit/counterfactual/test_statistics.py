from __future__ import annotations

import math
from dataclasses import fields

import numpy as np
import pytest
from simulated_logs import simulate

from taskmix.counterfactual import LogStatistics, check_log, find_faults, sum_log
from taskmix.errors import InputError, OptionError, ShapeError


def same(one: LogStatistics, other: LogStatistics) -> None:
    for item in fields(LogStatistics):
        np.testing.assert_allclose(
            getattr(one, item.name), getattr(other, item.name), rtol=1e-12, err_msg=item.name
        )


def test_four_rows_give_the_sums_worked_out_by_hand() -> None:
    found = sum_log([0, 1, 0, 1], [1.0, 2.0, 0.0, -1.0], [0.5, 0.25, 1.0, 0.5], task_count=3)
    np.testing.assert_array_equal(found.visits, [2, 2, 0])
    np.testing.assert_allclose(found.reward, [2 + 0, 8 - 2, 0])  # A
    np.testing.assert_allclose(found.weight, [2 + 1, 4 + 2, 0])  # B
    np.testing.assert_allclose(found.reward_squared, [4 + 0, 64 + 4, 0])  # C
    np.testing.assert_allclose(found.reward_weight, [4 + 0, 32 - 4, 0])  # D
    np.testing.assert_allclose(found.weight_squared, [4 + 1, 16 + 4, 0])  # E
    np.testing.assert_allclose(found.largest_weight, [2, 4, 0])
    np.testing.assert_allclose(found.lowest, [0, -2, math.inf])
    np.testing.assert_allclose(found.highest, [2, 8, -math.inf])
    np.testing.assert_allclose(found.means, [2 / 3, 1, math.nan])
    assert found.rows == 4


def test_a_row_without_a_reward_is_left_out() -> None:
    with_gap = sum_log([0, 1, 0], [1.0, math.nan, 2.0], [0.5, 0.5, 0.5], task_count=2)
    same(with_gap, sum_log([0, 0], [1.0, 2.0], [0.5, 0.5], task_count=2))


def test_clipping_cuts_weights_off_and_counts_them() -> None:
    clipped = sum_log([0, 0], [1.0, 1.0], [0.1, 0.5], task_count=1, clip=4.0)
    np.testing.assert_allclose(clipped.weight, [4 + 2])
    np.testing.assert_allclose(clipped.reward, [4 + 2])
    np.testing.assert_array_equal(clipped.clipped, [1])
    assert clipped.largest_weight[0] == 4
    with pytest.raises(OptionError, match="at least 1"):
        sum_log([0], [1.0], [0.5], task_count=1, clip=0.5)


@pytest.mark.parametrize("probability", [0.0, -0.1, 1.5, math.nan, math.inf])
def test_a_probability_that_cannot_be_is_refused_with_its_row(probability: float) -> None:
    probabilities = np.full(40_000, 0.5)
    probabilities[30_000] = probability
    with pytest.raises(InputError, match="row 30000 of the log"):
        sum_log(np.zeros(40_000, dtype=int), np.ones(40_000), probabilities, task_count=1)


def test_columns_of_different_lengths_are_refused() -> None:
    with pytest.raises(ShapeError, match="one value per row"):
        sum_log([0, 1], [1.0], [0.5, 0.5], task_count=2)
    with pytest.raises(ShapeError, match="same tasks"):
        sum_log([0], [1.0], [0.5], task_count=2) + sum_log([0], [1.0], [0.5], task_count=3)


def test_a_sound_log_has_no_faults() -> None:
    for seed in range(20):
        log = simulate(np.random.default_rng(seed), drift=0.3)
        found = sum_log(log.tasks, log.rewards, log.probabilities, task_count=5)
        assert check_log(found) == ()


def test_probabilities_of_another_policy_are_refused_in_words() -> None:
    # The uniform part was left out of the logged probabilities, as in one public Exp3.S.
    log = simulate(np.random.default_rng(0), rows=20_000, floor=0.5)
    wrong = np.maximum((log.probabilities - 0.1) / 0.5, 0.01)
    found = sum_log(log.tasks, log.rewards, wrong, task_count=5)
    with pytest.raises(InputError, match="not those the tasks were drawn with"):
        check_log(found, ["a", "b", "c", "d", "e"])


def test_a_task_that_was_never_tried_is_refused_by_name() -> None:
    found = sum_log([0] * 100, [1.0] * 100, [1.0] * 100, task_count=2)
    with pytest.raises(InputError, match="no row of `b`"):
        check_log(found, ["a", "b"])


def test_a_task_that_was_hardly_tried_is_doubtful() -> None:
    generator = np.random.default_rng(3)
    tasks = (generator.random(2000) < 0.005).astype(int)
    found = sum_log(tasks, np.ones(2000), np.where(tasks, 0.005, 0.995), task_count=2)
    notes = check_log(found, ["a", "b"])
    assert len(notes) == 1
    assert notes[0].startswith(
        "Little is known of `b`: 1 of 2 tasks were tried fewer than 30 times"
    )


def test_a_small_error_of_the_probabilities_is_flagged_before_it_is_refused() -> None:
    tasks = np.arange(20_000) % 2
    # At 3.5 % too large the mean weight is 5.0 standard errors below one, at 10 % it is 14.9.
    for error, weights in ((0.0, set()), (0.035, {"doubtful"}), (0.1, {"refused"})):
        shares = np.full(20_000, 0.5 * (1 + error))
        faults = find_faults(sum_log(tasks, np.ones(20_000), shares, task_count=2))
        assert {fault.weight for fault in faults} == weights


def test_a_task_that_a_later_policy_hardly_draws_is_doubtful_and_no_fault_of_the_log() -> None:
    generator, doubts = np.random.default_rng(0), 0
    first = sum_log(
        generator.integers(4, size=2000), np.ones(2000), np.full(2000, 0.25), task_count=4
    )
    shares = np.array([0.5, 0.3, 0.1998, 0.0002])
    for _ in range(20):
        tasks = generator.choice(4, size=2000, p=shares)
        second = sum_log(tasks, np.ones(2000), shares[tasks], task_count=4)
        notes = check_log(first + second, ["a", "b", "c", "rare"])
        doubts += any(
            "`rare`" in note and "its value is that of the rest" in note for note in notes
        )
    assert doubts > 5


def test_choices_that_were_never_drawn_are_refused() -> None:
    # In turns, each logged as certain: nothing is known of the tasks that were not chosen.
    with pytest.raises(InputError, match=r"not those the tasks were drawn with\. And 2 more"):
        check_log(sum_log([0, 1, 2] * 100, np.ones(300), np.ones(300), task_count=3))


def test_one_task_drawn_for_certain_is_sound_and_an_empty_log_is_not() -> None:
    assert check_log(sum_log([0] * 50, [1.0] * 50, [1.0] * 50, task_count=1)) == ()
    with pytest.raises(InputError, match="rows with a reward"):
        check_log(sum_log([], [], [], task_count=1))


def test_clipped_logs_are_not_accused_of_wrong_probabilities() -> None:
    log = simulate(np.random.default_rng(1), rows=20_000, floor=0.05)
    found = sum_log(log.tasks, log.rewards, log.probabilities, task_count=5, clip=3.0)
    assert check_log(found) == ()


@pytest.mark.parametrize("learning", [False, True], ids=["fixed logger", "learning logger"])
@pytest.mark.parametrize("clip", [None, 4.0])
@pytest.mark.parametrize("rows", [1, 7, 120_000])
def test_rows_sorted_by_task_and_rows_counted_one_by_one_give_the_same_sums(
    monkeypatch: pytest.MonkeyPatch, learning: bool, clip: float | None, rows: int
) -> None:
    generator = np.random.default_rng(rows)
    shares = generator.dirichlet(np.ones(6))
    tasks = generator.choice(6, size=rows, p=shares)
    probabilities = shares[tasks] * (generator.uniform(0.5, 1.0, rows) if learning else 1.0)
    rewards = generator.normal(size=rows)
    rewards[generator.random(rows) < 0.01] = np.nan
    # Tasks 6 and 7 are never drawn, in any chunk.
    columns = (tasks, rewards, probabilities)
    by_sorting = sum_log(*columns, task_count=8, clip=clip)
    monkeypatch.setattr("taskmix.counterfactual._sums.FEW_TASKS", 0)
    same(by_sorting, sum_log(*columns, task_count=8, clip=clip))


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int32, np.int64, np.uint64])
def test_tasks_may_be_whole_numbers_of_any_size(kind: type) -> None:
    tasks = np.array([0, 2, 1, 2], dtype=kind)
    assert sum_log(tasks, np.ones(4), np.full(4, 0.5), task_count=3).visits.tolist() == [1, 1, 2]
    with pytest.raises(InputError, match="Found 2 in row 11"):
        sum_log(tasks, np.ones(4), np.full(4, 0.5), task_count=2, first_row=10)


@pytest.mark.parametrize("task", [-1, 299, 300, 2**40])
@pytest.mark.parametrize("count", [3, 256, 299])
def test_a_task_that_is_none_is_refused_however_tasks_are_counted(task: int, count: int) -> None:
    with pytest.raises(InputError, match=f"Found {task} in row 1 "):
        sum_log([0, task], [1.0, 1.0], [0.5, 0.5], task_count=count)

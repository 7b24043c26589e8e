from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from taskmix.counterfactual import check_log, improve_policy, log_of_runs, sum_log
from taskmix.errors import InputError, OptionError, RunError
from taskmix.policies import (
    Exp3S,
    Fixed,
    HardProgress,
    PredictionGain,
    QuantileScaled,
    Uniform,
)
from taskmix.records import RecordWriter, RunFolder, Study
from taskmix.training import PolicyBatchSampler

SIZES = (90, 17, 50)
NAMES = ("large", "small", "three")
SCALED = QuantileScaled(reward=HardProgress())


def make_sampler(**changes: Any) -> PolicyBatchSampler:
    options: dict[str, Any] = {
        "policy": Uniform(),
        "reward": HardProgress(),
        "batch_size": 8,
        "steps": 100,
        "generator": np.random.default_rng(0),
    }
    return PolicyBatchSampler(SIZES, **(options | changes))


def task_of(rows: list[int]) -> int:
    return int(np.searchsorted(np.cumsum(SIZES), rows[0], side="right"))


def loss_of(task: int, visits: int) -> float:
    """Falls with practice, faster for later tasks, and wobbles."""
    return float(2.0 * math.exp(-0.02 * (task + 1) * visits) + 0.2 * math.sin(visits))


def train(sampler: PolicyBatchSampler, most: int = 10**9) -> list[list[int]]:
    """Goes on with the sampler for at most so many batches."""
    batches: list[list[int]] = []
    visits = [0] * len(SIZES)
    for rows in sampler:
        batches.append(rows)
        task = task_of(rows)
        visits[task] += 1
        assert sampler.observe(loss_of(task, visits[task])).task == task
        if len(batches) == most:
            break
    return batches


def start(path: Path) -> tuple[RunFolder, Any]:
    return (run := Study(path).run({"loop": "mine"})), run.claim()


def begin_record(writer: RecordWriter, steps: int = 100) -> None:
    tasks = [{"name": name} for name in NAMES]
    writer.start(specification={"loop": "mine"}, seed=0, label="mine", tasks=tasks, steps=steps)


def test_iterating_again_goes_on_with_the_budget() -> None:
    whole = train(make_sampler())
    sampler = make_sampler()
    assert len(sampler) == 100
    first = train(sampler, most=30)
    assert len(sampler) == 70
    assert first + train(sampler) == whole
    assert len(sampler) == 0
    assert train(sampler) == []


def test_a_batch_an_iteration_left_behind_comes_again_under_its_number() -> None:
    whole = train(make_sampler())
    sampler = make_sampler()
    batches = iter(sampler)
    ahead = [next(batches) for _ in range(3)]
    sampler.observe(1.0, draw=2)
    assert len(sampler) == 99
    again = list(sampler)
    assert again[:2] == [whole[0], whole[2]] == [ahead[0], ahead[2]]
    assert [row.draw for row in again[1]] == [3] * 8
    assert again[2:] == whole[3:]


def test_the_record_is_a_log_that_policies_are_learned_from(tmp_path: Path) -> None:
    policy = Exp3S(eta=0.1, propensity="mixture")
    run, claiming = start(tmp_path)
    with claiming as claim:
        begin_record(claim.writer, steps=2000)
        sampler = make_sampler(policy=policy, reward=SCALED, steps=2000, record=claim.writer)
        batches = train(sampler)
        claim.writer.finish(scores=[], best_step=None)
    steps = run.steps()
    assert steps["step"].to_pylist() == list(range(1, 2001))
    assert steps["task"].to_pylist() == [NAMES[task_of(rows)] for rows in batches]
    assert set(steps["examples"].to_pylist()) == {8}
    # The probability of each row is that of its task in the vector of its row.
    vectors = run.probabilities()
    tasks = steps["task"].combine_chunks().indices.to_numpy()
    drawn = steps["probability"].to_numpy()
    np.testing.assert_array_equal(drawn, vectors[np.arange(2000), tasks])
    assert len(np.unique(drawn)) > 100  # the policy learned
    (log,) = log_of_runs([run])
    assert log.tasks == NAMES
    assert log.rows == 2000
    assert log.performance is not None
    assert check_log(log.total, log.tasks) == ()
    rewards = np.array([math.nan if r is None else r for r in steps["reward"].to_pylist()])
    assert np.isnan(rewards).sum() == 3  # the first visits
    expected = sum_log(tasks, rewards, drawn, task_count=3)
    np.testing.assert_allclose(log.total.reward, expected.reward)
    assert improve_policy(log).probabilities.sum() == pytest.approx(1)


def train_ahead(sampler: PolicyBatchSampler, visits: list[int], *, ahead: int, most: int) -> Any:
    """As a loader that reads some batches ahead; gives the batches trained on."""
    batches, waiting, trained = iter(sampler), deque[list[int]](), []
    while len(trained) < most:
        waiting.extend(islice(batches, ahead + 1 - len(waiting)))
        if not waiting:
            break
        rows = waiting.popleft()
        task = task_of(rows)
        visits[task] += 1
        sampler.observe(loss_of(task, visits[task]), rows[0].draw)  # type: ignore[attr-defined]
        trained.append(rows)
    return trained


@pytest.mark.parametrize("ahead", [0, 4], ids=["between steps", "with batches drawn ahead"])
@pytest.mark.parametrize("reward", [HardProgress(), SCALED], ids=["plain", "drawing"])
def test_a_sampler_goes_on_from_its_state_as_if_it_had_never_stopped(
    tmp_path: Path, ahead: int, reward: Any
) -> None:
    options: dict[str, Any] = {"policy": Exp3S(eta=0.1), "reward": reward}
    expected = train_ahead(make_sampler(**options), [0] * 3, ahead=ahead, most=100)
    stopped, visits = make_sampler(**options), [0] * 3
    train_ahead(stopped, visits, ahead=ahead, most=40)
    run, claiming = start(tmp_path)
    with claiming as claim:
        begin_record(claim.writer)
        tree = {"sampler": stopped.state_dict()}
        claim.writer.commit(40, tree, best=None, best_step=None)
    checkpoint = run.checkpoint()
    assert checkpoint is not None
    later = make_sampler(**options, generator=np.random.default_rng(99))
    later.load_state_dict(checkpoint.state["sampler"])
    assert len(later) == 60
    assert train_ahead(later, visits, ahead=ahead, most=100) == expected[40:]


def test_a_loss_that_is_not_finite_is_logged_and_teaches_nothing(tmp_path: Path) -> None:
    run, claiming = start(tmp_path)
    with claiming as claim:
        begin_record(claim.writer, steps=4)
        sampler = PolicyBatchSampler(
            [9, 9, 9],
            policy=Fixed((0.98, 0.01, 0.01)),
            reward=HardProgress(),
            batch_size=3,
            steps=4,
            generator=np.random.default_rng(0),
            record=claim.writer,
        )
        losses = iter([2.0, math.nan, math.inf, 1.0])
        assert [sampler.observe(next(losses)).task for _ in sampler] == [0, 0, 0, 0]
        claim.writer.finish(scores=[], best_step=None)
    rewards = run.steps(["reward"])["reward"].to_pylist()
    assert rewards == [None, None, None, pytest.approx(1 - math.exp(-1))]
    (log,) = log_of_runs([run])
    assert log.rows == 4
    assert log.total.rows == 1


@pytest.mark.parametrize("workers", [0, 2])
def test_a_loader_s_batches_know_their_draw_also_when_it_reads_ahead(workers: int) -> None:
    rows = [
        [{"task": place, "row": row} for row in range(size)] for place, size in enumerate(SIZES)
    ]
    sampler = make_sampler(steps=20, policy=Exp3S())
    seen = []
    for batch in sampler.loader(rows, num_workers=workers):
        assert sampler.observe(1.0, batch["draw"]).task == int(batch["task"][0])
        seen.append(int(batch["draw"][0]))
    assert seen == list(range(1, 21))


def test_accelerate_saves_it_and_brings_it_back(tmp_path: Path) -> None:
    accelerate = pytest.importorskip("accelerate")
    sampler, later = make_sampler(policy=Exp3S()), make_sampler(policy=Exp3S())
    train(sampler, most=5)
    ahead = list(islice(sampler, 2))
    for each, action in ((sampler, "save_state"), (later, "load_state")):
        accelerator = accelerate.Accelerator(cpu=True)
        accelerator.register_for_checkpointing(each)
        getattr(accelerator, action)(str(tmp_path / "state"))
    assert list(islice(later, 2)) == ahead


def test_each_process_of_several_has_its_own_batches_of_the_same_rounds() -> None:
    numbers = []
    for process in range(3):
        loader = make_sampler(steps=11).loader(range(sum(SIZES)), processes=(process, 3))
        assert len(loader) == 3
        numbers.append([int(draw[0]) for _, draw in loader])
    assert numbers == [[1, 4, 7], [2, 5, 8], [3, 6, 9]]
    with pytest.raises(OptionError, match="Found 3 of 3"):
        make_sampler().loader(range(sum(SIZES)), processes=(3, 3))


def test_batches_skipped_after_a_state_was_loaded_are_refused() -> None:
    sampler = make_sampler()
    train(sampler, most=4)
    later = make_sampler()
    later.load_state_dict(sampler.state_dict())
    skipped = list(later)[4:]
    with pytest.raises(
        RunError, match=r"should be that of draw 5. Found draw 9.*skip_first_batches"
    ):
        later.observe(1.0, draw=skipped[0][0].draw)


def test_processes_without_a_group_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    sampler = make_sampler()
    next(iter(sampler))
    with pytest.raises(RunError, match="WORLD_SIZE=2 and no process group"):
        sampler.observe(1.0, draw=1)


def of_sizes(*sizes: int) -> PolicyBatchSampler:
    return PolicyBatchSampler(
        sizes, policy=Uniform(), batch_size=8, steps=5, generator=np.random.default_rng(0)
    )


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: make_sampler(steps=0), "should be 1 or more"),
        (lambda: make_sampler(batch_size=0), "should be 1 or more"),
        (lambda: make_sampler(reward=PredictionGain()), "needs none"),
        (lambda: make_sampler(reward=QuantileScaled(reward=PredictionGain())), "needs none"),
        (lambda: of_sizes(3, 0), "Leave empty tasks out"),
        (lambda: make_sampler().load_state_dict(of_sizes(3, 4).state_dict()), "Found one of 2"),
        (lambda: make_sampler().loader(range(90)), r"157 in all\. Found 90"),
        (
            lambda: next(iter(make_sampler().loader([[{"draw": 0}] * size for size in SIZES]))),
            "no key `draw` of its own",
        ),
    ],
)
def test_what_cannot_be_is_told_in_a_sentence(make: Callable[[], object], sentence: str) -> None:
    with pytest.raises((OptionError, InputError), match=sentence):
        make()


@pytest.mark.parametrize(
    ("drawn", "draw", "sentence"),
    [
        (0, None, "which draw"),
        (2, None, "2 batches without a loss"),
        (1, 7, "draw 7, one never drawn"),
        (1, [1, 2], "rows of 2 draws in one batch"),
    ],
)
def test_a_loss_of_no_one_batch_is_told_in_a_sentence(drawn: int, draw: Any, sentence: str) -> None:
    sampler = make_sampler()
    list(islice(sampler, drawn))
    with pytest.raises(RunError, match=sentence):
        sampler.observe(1.0, draw)


def test_a_draw_is_observed_once() -> None:
    sampler = make_sampler()
    next(iter(sampler))
    sampler.observe(1.0, draw=1)
    with pytest.raises(RunError, match="draw 1, one that was observed before"):
        sampler.observe(1.0, draw=1)

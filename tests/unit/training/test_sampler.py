from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import chisquare
from torch.utils.data import ConcatDataset, DataLoader, TensorDataset

from taskmix.counterfactual import check_log, improve_policy, log_of_runs, sum_log
from taskmix.errors import InputError, MissingExtraError, OptionError, RunError, ShapeError
from taskmix.policies import (
    Exp3S,
    Fixed,
    HardProgress,
    Outcome,
    PredictionGain,
    QuantileScaled,
    Uniform,
)
from taskmix.records import RecordWriter, RunFolder, Study
from taskmix.training import PolicyBatchSampler, trainer_callback

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


def test_every_batch_is_of_one_task() -> None:
    ends = np.cumsum(SIZES)
    for rows in train(make_sampler()):
        assert len(rows) == 8
        assert len(set(np.searchsorted(ends, rows, side="right"))) == 1


def test_tasks_are_drawn_as_often_as_the_policy_says() -> None:
    shares = (0.2, 0.1, 0.7)
    batches = train(make_sampler(policy=Fixed(shares), steps=3000))
    counts = np.bincount([task_of(rows) for rows in batches], minlength=3)
    assert chisquare(counts, 3000 * np.array(shares)).pvalue > 1e-3


def test_every_pass_over_a_task_has_each_of_its_rows_once_in_a_new_order() -> None:
    sampler = PolicyBatchSampler(
        [20], policy=Uniform(), batch_size=5, steps=12, generator=np.random.default_rng(3)
    )
    passes = []
    batches = iter(sampler)
    for _ in range(3):
        rows = []
        for _ in range(4):
            rows += next(batches)
            sampler.observe(1.0)
        passes.append(rows)
    assert all(sorted(rows) == list(range(20)) for rows in passes)
    assert passes[0] != passes[1] != passes[2]


def test_a_task_smaller_than_a_batch_gives_batches_of_its_size() -> None:
    sampler = PolicyBatchSampler(
        [3, 3], policy=Uniform(), batch_size=8, steps=5, generator=np.random.default_rng(0)
    )
    assert [len(rows) for rows in sampler] == [3] * 5


def test_iterating_again_goes_on_with_the_budget() -> None:
    whole = train(make_sampler())
    sampler = make_sampler()
    assert len(sampler) == 100
    first = train(sampler, most=30)
    assert len(sampler) == 70
    assert first + train(sampler) == whole
    assert len(sampler) == 0
    assert train(sampler) == []


def test_a_batch_an_iteration_left_behind_is_drawn_again() -> None:
    whole = train(make_sampler())
    sampler = make_sampler()
    batches = iter(sampler)
    ahead = [next(batches) for _ in range(3)]
    sampler.observe(loss_of(task_of(ahead[0]), 1))
    assert next(iter(sampler)) == whole[1] == ahead[1]


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


def test_the_log_of_the_probabilities_before_the_uniform_part_would_be_refused() -> None:
    # What `check_log` is for, and what the sampler spares its users.
    policy, generator = Exp3S(epsilon=0.5, eta=0.5), np.random.default_rng(0)
    state, tasks, wrong = policy.init(np.array(SIZES)), [], []
    for _ in range(3000):
        choice = policy.select(state, generator)
        weights = np.exp(state.log_weights)
        wrong.append(weights[choice.task] / weights.sum())
        tasks.append(choice.task)
        state = policy.update(state, Outcome(choice, 1.0, reward=float(choice.task == 0)))
    with pytest.raises(InputError, match="not those the tasks were drawn with"):
        check_log(sum_log(tasks, np.ones(3000), wrong, task_count=3), NAMES)


@pytest.mark.parametrize("ahead", [0, 4], ids=["between steps", "with batches drawn ahead"])
def test_a_sampler_goes_on_from_its_state_as_if_it_had_never_stopped(
    tmp_path: Path, ahead: int
) -> None:
    options: dict[str, Any] = {"policy": Exp3S(eta=0.1), "reward": HardProgress()}
    whole = make_sampler(**options)
    expected = train(whole)
    stopped = make_sampler(**options)
    visits = [0] * 3
    batches = iter(stopped)
    for _ in range(40):
        task = task_of(next(batches))
        visits[task] += 1
        stopped.observe(loss_of(task, visits[task]))
    for _ in range(ahead):
        next(batches)
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
    rest = []
    for rows in later:
        rest.append(rows)
        task = task_of(rows)
        visits[task] += 1
        later.observe(loss_of(task, visits[task]))
    assert rest == expected[40:]


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


def test_a_data_loader_with_a_worker_draws_ahead_and_loses_nothing() -> None:
    data = ConcatDataset(
        [TensorDataset(torch.full((size,), place)) for place, size in enumerate(SIZES)]
    )
    sampler = make_sampler(steps=20, policy=Exp3S())
    loader = DataLoader(data, batch_sampler=sampler, num_workers=1)
    seen = 0
    for (tasks,) in loader:
        assert sampler.observe(1.0).task == int(tasks[0])
        seen += 1
    assert seen == 20


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"steps": 0}, "should be 1 or more"),
        ({"batch_size": 0}, "should be 1 or more"),
        ({"reward": PredictionGain()}, "needs none"),
        ({"reward": QuantileScaled(reward=PredictionGain())}, "needs none"),
    ],
)
def test_an_option_that_cannot_be_is_told_in_a_sentence(
    changes: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(OptionError, match=sentence):
        make_sampler(**changes)


def test_an_empty_task_is_told_in_a_sentence() -> None:
    with pytest.raises(OptionError, match="Leave empty tasks out"):
        PolicyBatchSampler(
            [3, 0], policy=Uniform(), batch_size=8, steps=5, generator=np.random.default_rng(0)
        )


def test_a_loss_without_a_batch_is_told_in_a_sentence() -> None:
    sampler = make_sampler()
    with pytest.raises(RunError, match="once for each batch"):
        sampler.observe(1.0)


def test_the_state_of_other_tasks_is_told_in_a_sentence() -> None:
    other = PolicyBatchSampler(
        [3, 4], policy=Uniform(), batch_size=8, steps=5, generator=np.random.default_rng(0)
    )
    with pytest.raises(OptionError, match="Found one of 2"):
        make_sampler().load_state_dict(other.state_dict())


def test_a_record_of_other_tasks_is_told_in_a_sentence(tmp_path: Path) -> None:
    with Study(tmp_path).run({}).claim() as claim:
        assert claim.writer is not None
        claim.writer.start(specification={}, seed=0, label="", tasks=[{"name": "only"}], steps=1)
        sampler = make_sampler(record=claim.writer)
        next(iter(sampler))
        with pytest.raises(ShapeError, match="each of the 1 tasks"):
            sampler.observe(1.0)


class Regression(torch.nn.Module):
    """What a Trainer trains: called with a batch's columns, answers with its loss."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(4, 1)
        self.batches: list[int] = []

    def forward(self, values: torch.Tensor, targets: torch.Tensor, task: torch.Tensor) -> Any:
        self.batches.append(int(task[0]))
        return {"loss": ((self.linear(values)[:, 0] - targets) ** 2).mean()}


@pytest.mark.parametrize("accumulation", [1, 3])
def test_a_hugging_face_trainer_leaves_a_log_that_policies_are_learned_from(
    tmp_path: Path, accumulation: int
) -> None:
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("accelerate", reason="the Trainer needs it")
    generator = torch.Generator().manual_seed(0)
    rows = [
        {"values": torch.randn(4, generator=generator), "targets": float(task), "task": task}
        for task, size in enumerate(SIZES)
        for _ in range(size)
    ]
    batches = 120
    run, claiming = start(tmp_path / "study")
    with claiming as claim:
        begin_record(claim.writer, steps=batches)
        sampler = make_sampler(steps=batches, record=claim.writer)

        class Trainer(transformers.Trainer):
            def get_train_dataloader(self) -> Any:
                return DataLoader(rows, batch_sampler=sampler)

        model = Regression()
        Trainer(
            model=model,
            args=transformers.TrainingArguments(
                output_dir=str(tmp_path / "trainer"),
                max_steps=batches // accumulation,
                gradient_accumulation_steps=accumulation,
                learning_rate=0.05,
                save_strategy="no",
                report_to=[],
                use_cpu=True,
                disable_tqdm=True,
            ),
            callbacks=[trainer_callback(sampler)],
        ).train()
        claim.writer.finish(scores=[], best_step=None)
    steps = run.steps(["task", "loss", "reward"])
    assert steps["task"].to_pylist() == [NAMES[task] for task in model.batches]
    assert len(steps) == batches
    (log,) = log_of_runs([run])
    check_log(log.total, log.tasks)
    improved = improve_policy(log)
    assert improved.probabilities.min() > 0
    losses = np.array(steps["loss"].to_pylist())
    assert losses[-30:].mean() < losses[:30].mean()


def test_without_transformers_the_callback_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(MissingExtraError, match=r"taskmix\[text\]"):
        trainer_callback(make_sampler())

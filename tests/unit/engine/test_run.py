from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from taskmix.engine import (
    DigitsSource,
    Fleet,
    FolderSource,
    Here,
    Observers,
    Optimization,
    Progress,
    Run,
    execute,
    model_of_run,
)
from taskmix.errors import DivergedError, InputError, OptionError, RunError
from taskmix.models import Perceptron
from taskmix.policies import SizeProportional, Uniform
from taskmix.records import Study
from taskmix.training import StepEvent, evaluate
from taskmix.weighting import Equal

RUN = Run(
    label="uniform",
    source=DigitsSource(),
    architecture=Perceptron(hidden=(8,)),
    steps=20,
    evaluate_every=10,
    checkpoint_every=10,
    seed=0,
)


def test_asking_twice_costs_once(tmp_path: Path) -> None:
    steps: list[int] = []

    def listen(event: object) -> None:
        if isinstance(event, StepEvent):
            steps.append(event.step)

    first = execute(RUN, Study(tmp_path), listener=listen)
    again = execute(RUN, Study(tmp_path), listener=listen)
    assert (first.outcome, again.outcome) == ("finished", "already finished")
    assert steps == list(range(1, 21))
    assert first.summary is not None
    assert again.summary is not None
    assert first.summary.scores == again.summary.scores


def test_fresh_starts_over_and_gives_the_same_scores(tmp_path: Path) -> None:
    first = execute(RUN, Study(tmp_path))
    again = execute(RUN, Study(tmp_path), fresh=True)
    assert again.outcome == "finished"
    assert first.summary is not None
    assert again.summary is not None
    assert first.summary.scores == again.summary.scores
    (folder,) = Study(tmp_path).runs()
    assert folder.steps()["step"].to_pylist() == list(range(1, 21))


def test_the_record_has_every_choice_with_its_probability(tmp_path: Path) -> None:
    run = replace(RUN, policy=SizeProportional())
    execute(run, Study(tmp_path))
    steps = Study(tmp_path).run(run.specification()).steps()
    tasks = run.load()
    sizes = dict(zip(tasks.names, tasks.sizes / tasks.sizes.sum(), strict=True))
    for task, probability in zip(
        steps["task"].to_pylist(), steps["probability"].to_pylist(), strict=True
    ):
        assert probability == pytest.approx(sizes[task])
    vectors = steps["probabilities"].to_pylist()
    np.testing.assert_allclose(vectors[0], list(sizes.values()))


def test_a_weighted_run_has_a_row_for_each_task_and_its_weight(tmp_path: Path) -> None:
    run = replace(RUN, weighting=Equal())
    execute(run, Study(tmp_path))
    steps = Study(tmp_path).run(run.specification()).steps()
    count = len(run.load())
    assert len(steps) == 20 * count
    assert set(steps["weight"].to_pylist()) == {1.0}


def test_the_name_of_a_run_depends_on_what_the_tasks_say_and_not_on_where_they_lie(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "here"
    for name in ("a", "b"):
        (folder / name).mkdir(parents=True)
        for split in ("train", "dev", "test"):
            rows = "x,label\n" + "".join(f"{row}.5,{row % 2}\n" for row in range(10))
            (folder / name / f"{split}.csv").write_text(rows)
    shutil.copytree(folder, tmp_path / "there")
    run = replace(RUN, source=FolderSource(path=str(folder)))
    moved = replace(RUN, source=FolderSource(path=str(tmp_path / "there")))
    assert run.specification() == moved.specification()
    (tmp_path / "there" / "b" / "dev.csv").write_text("x,label\n1.5,1\n2.5,0\n")
    changed = replace(RUN, source=FolderSource(path=str(tmp_path / "there"), tasks=("a", "b")))
    assert run.specification() != changed.specification()
    assert run.specification() != replace(run, seed=1).specification()


def test_a_run_that_diverges_is_recorded_as_failed(tmp_path: Path) -> None:
    run = replace(RUN, optimization=Optimization(optimizer="sgd", learning_rate=1e30))
    with pytest.raises(DivergedError):
        execute(run, Study(tmp_path))
    summary = Study(tmp_path).run(run.specification()).summary()
    assert summary is not None
    assert summary.status == "failed"
    assert "should be finite" in (summary.error or "")


def test_many_runs_give_what_each_gives_alone_and_one_failure_stops_no_other(
    tmp_path: Path,
) -> None:
    runs = [replace(RUN, seed=seed) for seed in (0, 1)]
    bad = replace(RUN, optimization=Optimization(optimizer="sgd", learning_rate=1e30))
    told: list[Progress] = []
    results = Here(workers=2, observers=Observers.telling(told.append)).run(
        [*runs, bad], Study(tmp_path / "many")
    )
    assert [result.outcome for result in results] == ["finished", "finished", "failed"]
    assert results[2].error is not None
    assert {progress.run for progress in told if progress.done} == {0, 1, 2}
    for run, result in zip(runs, results, strict=False):
        alone = execute(run, Study(tmp_path / "alone")).summary
        assert alone is not None
        assert result.summary is not None
        assert alone.scores == result.summary.scores


def test_what_the_user_must_mend_stops_all_runs(tmp_path: Path) -> None:
    run = replace(RUN, source=FolderSource(path=str(tmp_path / "nowhere")))
    with pytest.raises(InputError):
        Here(workers=1).run([run, run], Study(tmp_path / "study"))


def test_the_best_model_can_be_loaded_again(tmp_path: Path) -> None:
    done = execute(RUN, Study(tmp_path))
    model, tasks = model_of_run(RUN, Study(tmp_path))
    assert done.summary is not None
    expected = {
        s.task: s.value for s in done.summary.scores if (s.split, s.metric) == ("test", "accuracy")
    }
    found = {score.task: score.value for score in evaluate(model, tasks, "test")}
    assert {name: found[name] for name in expected} == expected
    with pytest.raises(RunError, match="Train it first"):
        model_of_run(replace(RUN, seed=77), Study(tmp_path))


def test_the_learning_rate_rises_and_falls_as_asked() -> None:
    linear = Optimization(schedule="linear", warmup=0.2)
    assert [linear.factor(step, 10) for step in (0, 1, 2, 6, 10)] == [0.0, 0.5, 1.0, 0.5, 0.0]
    cosine = Optimization(schedule="cosine")
    assert [cosine.factor(step, 10) for step in (0, 5, 10)] == pytest.approx([1.0, 0.5, 0.0])
    assert Optimization().build([torch.nn.Parameter(torch.zeros(1))], 10)[1] is None


@pytest.mark.parametrize("executor", [Here, Fleet])
@pytest.mark.parametrize("change", ["learning_rate", "clip_norm"])
def test_a_rate_or_a_gradient_of_zero_trains_nothing(
    executor: Any, change: str, tmp_path: Path
) -> None:
    run = replace(RUN, optimization=Optimization(optimizer="sgd"), steps=3)
    if change == "clip_norm":
        run = replace(run, clip_norm=0.0)
    else:
        run = replace(run, optimization=Optimization(learning_rate=0.0))
    study, longer = Study(tmp_path), replace(run, steps=6)
    results = executor(workers=1).run([run, longer], study)
    assert [result.outcome for result in results] == ["finished", "finished"]
    first, second = (model_of_run(each, study)[0] for each in (run, longer))
    for one, other in zip(first.parameters(), second.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0)


def test_the_usual_rate_is_for_whoever_gave_none() -> None:
    assert Optimization.usual_rate(0.0, tuning="all") == 0.0
    assert Optimization.usual_rate(None, tuning="all") == 2e-5
    assert Optimization.usual_rate(None, tuning="adapters") == 5e-4
    assert Optimization.usual_rate(None, tuning="heads") == 1e-3
    assert Optimization.usual_rate(None) == 1e-3


def test_wrong_options_are_refused_in_words(tmp_path: Path) -> None:
    for rate in (-1e-9, float("nan"), float("inf")):
        with pytest.raises(OptionError, match="above 0, or 0 to train nothing"):
            Optimization(learning_rate=rate)
    with pytest.raises(OptionError, match="`weight_decay` should be a number of at least 0"):
        Optimization(weight_decay=float("nan"))
    with pytest.raises(OptionError, match="largest norm of a gradient"):
        replace(RUN, clip_norm=-1.0)
    for workers in (0, -1):
        with pytest.raises(OptionError, match="`workers` should be 1 or more"):
            Here(workers=workers).run([RUN], Study(tmp_path))
    with pytest.raises(OptionError, match="share of the steps"):
        Optimization(warmup=1.0)
    with pytest.raises(OptionError, match="a device of PyTorch"):
        execute(replace(RUN, device="toaster"), Study(tmp_path))
    if not torch.cuda.is_available():
        with pytest.raises(OptionError, match="no CUDA device"):
            execute(replace(RUN, device="cuda"), Study(tmp_path))


def test_policies_of_other_options_are_other_runs() -> None:
    assert replace(RUN, policy=Uniform()).specification() == RUN.specification()
    assert replace(RUN, policy=SizeProportional()).specification() != RUN.specification()

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from taskmix.engine import (
    DigitsSource,
    FolderSource,
    Here,
    Optimization,
    Run,
    execute,
    model_of_run,
)
from taskmix.errors import DivergedError, OptionError, RunError
from taskmix.models import Perceptron
from taskmix.policies import SizeProportional, Uniform
from taskmix.records import Study
from taskmix.training import evaluate

RUN = Run(
    label="uniform",
    source=DigitsSource(),
    architecture=Perceptron(hidden=(8,)),
    steps=20,
    evaluate_every=10,
    checkpoint_every=10,
    seed=0,
)


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


def test_the_usual_rate_is_for_whoever_gave_none() -> None:
    assert Optimization.usual_rate(None, tuning="all") == 2e-5
    assert Optimization.usual_rate(None, tuning="adapters") == 5e-4
    assert Optimization.usual_rate(None, tuning="heads") == 1e-3
    assert Optimization.usual_rate(None) == 1e-3


def test_wrong_options_are_refused_in_words(tmp_path: Path) -> None:
    for rate in (0.0, -1e-9, float("nan"), float("inf")):
        with pytest.raises(OptionError, match="a number above 0"):
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

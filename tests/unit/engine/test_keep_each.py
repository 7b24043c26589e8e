"""Runs in which every task is served by the parameters of its own best evaluation."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from fleet_toys import (
    RUN,
    SharedRows,
    after,
    alone_until,
    must_be_alike,
    passage_runs,
    runs_of,
    side_by_side,
)

from taskmix.engine import (
    DigitsSource,
    Fleet,
    Here,
    Optimization,
    Run,
    execute,
    load_model,
    model_of_run,
    save_models,
    trained_model,
)
from taskmix.errors import OptionError
from taskmix.models import Perceptron
from taskmix.records import Study
from taskmix.training import evaluate, served_together
from taskmix.weighting import Equal

# A rate so high that scores jump, so that no two tasks are at their best at the same moment.
JUMPY = Run(
    label="jumpy",
    source=DigitsSource(tasks=("parity", "half", "remainder")),
    architecture=Perceptron(hidden=(8,)),
    optimization=Optimization(learning_rate=0.1),
    steps=24,
    evaluate_every=3,
    checkpoint_every=6,
    seed=0,
    keep="each",
)


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def final_scores(run: Run, study: Study) -> dict[tuple[str, str], float]:
    summary = run.folder(study).summary()
    assert summary is not None
    assert summary.status == "finished"
    return {
        (score.task, score.split): score.value for score in summary.scores if score.metric != "loss"
    }


def best_scores(run: Run, study: Study) -> dict[str, float]:
    """The highest dev score that each task ever had."""
    rows = run.folder(study).scores().to_pylist()
    found: dict[str, float] = {}
    for row in rows:
        if row["metric"] == "accuracy":
            found[row["task"]] = max(found.get(row["task"], 0.0), row["value"])
    return found


def test_every_task_is_scored_by_its_own_best_evaluation_and_not_by_that_of_the_mean(
    tmp_path: Path,
) -> None:
    study = Study(tmp_path)
    shared = replace(JUMPY, keep="mean")
    for run in (JUMPY, shared):
        assert execute(run, study).outcome == "finished"
    best = best_scores(JUMPY, study)
    each, mean = final_scores(JUMPY, study), final_scores(shared, study)
    assert {name: each[name, "dev"] for name in best} == best
    assert any(mean[name, "dev"] < best[name] for name in best)
    assert {key[1] for key in each} == {"dev", "test"}


def test_the_model_of_a_task_gives_the_scores_that_the_record_has(tmp_path: Path) -> None:
    study = Study(tmp_path)
    execute(JUMPY, study)
    recorded = final_scores(JUMPY, study)
    for name in JUMPY.load().names:
        model, tasks = model_of_run(JUMPY, study, task=name)
        for split in ("dev", "test"):
            found = {score.task: score.value for score in evaluate(model, tasks, split)}
            assert found[name] == recorded[name, split]
    plain, _ = model_of_run(JUMPY, study)
    same, _ = model_of_run(replace(JUMPY, keep="mean"), _trained(tmp_path / "mean"))
    assert all(map(torch.equal, plain.parameters(), same.parameters()))


def _trained(path: Path) -> Study:
    study = Study(path)
    execute(replace(JUMPY, keep="mean"), study)
    return study


def test_what_a_run_keeps_is_part_of_its_name_only_where_it_is_not_the_mean() -> None:
    plain = replace(JUMPY, keep="mean").specification()
    assert "keep" not in plain
    assert JUMPY.specification() == {**plain, "keep": "each"}
    with pytest.raises(OptionError, match="mean or each"):
        replace(JUMPY, keep="all")  # type: ignore[arg-type]


@pytest.mark.parametrize("step", [4, 13, 20])
def test_a_run_that_was_stopped_ends_with_the_same_bits(tmp_path: Path, step: int) -> None:
    whole, broken = Study(tmp_path / "whole"), Study(tmp_path / "broken")
    execute(JUMPY, whole)
    alone_until(JUMPY, broken, step)
    assert execute(JUMPY, broken).outcome == "finished"
    must_be_alike(JUMPY.folder(whole), JUMPY.folder(broken), tolerance=0.0)


@pytest.mark.parametrize("weighting", [Equal(), None], ids=["all", "drawn"])
def test_a_fleet_keeps_the_best_of_each_task_as_solo_runs_do(
    tmp_path: Path, weighting: Any
) -> None:
    runs = runs_of(weighting=weighting, keep="each", evaluate_every=4)
    side_by_side(runs, tmp_path)


def test_a_fleet_keeps_the_best_of_tasks_on_shared_rows_and_of_passages(tmp_path: Path) -> None:
    shared = replace(RUN, source=SharedRows(), keep="each", evaluate_every=5)
    side_by_side([replace(shared, seed=seed) for seed in range(2)], tmp_path / "rows")
    side_by_side(
        passage_runs(tmp_path, keep="each", evaluate_every=4, steps=8), tmp_path / "passages"
    )


def test_either_engine_goes_on_with_what_the_other_began(tmp_path: Path) -> None:
    runs = runs_of(keep="each", evaluate_every=3, checkpoint_every=5)
    whole, first, second = (Study(tmp_path / name) for name in ("whole", "first", "second"))
    Here(workers=1).run(runs, whole)
    for run in runs:
        alone_until(run, first, 11)
    Fleet(workers=1).run(runs, first)
    Fleet(workers=1).run(runs, second, stop=after(3))
    for run in runs:
        assert execute(run, second).outcome == "finished"
        for study in (first, second):
            must_be_alike(run.folder(whole), run.folder(study))


def test_a_kept_model_answers_each_task_by_its_own_parameters(tmp_path: Path) -> None:
    study = Study(tmp_path / "study")
    execute(JUMPY, study)
    tasks = JUMPY.load()
    groups = served_together(JUMPY.folder(study).best(), tasks.names)  # type: ignore[arg-type]
    assert len(groups) > 1
    saved = load_model(save_models(tmp_path / "model", [(JUMPY, tasks.names)], study))
    kept = trained_model([(JUMPY, tasks.names)], study)
    assert set(saved.tasks) == set(kept.tasks) == set(tasks.names)
    recorded = final_scores(JUMPY, study)
    for task in tasks:
        split = task.splits["test"]
        for model in (saved, kept):
            answers = model.predict(split.inputs, task.name)
            right = [
                answer["label"] == task.labels[target]
                for answer, target in zip(answers, split.targets, strict=True)
            ]
            assert sum(right) / len(right) == pytest.approx(recorded[task.name, "test"])

"""Runs that are merged from others: from adapters and heads over one tiny random model."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from fleet_toys import word_tasks

from taskmix.engine import (
    DigitsSource,
    Here,
    Optimization,
    Run,
    TorchrunExecutor,
    execute,
    keep_best,
    load_model,
    model_of_run,
)
from taskmix.errors import InputError, OptionError, RunError
from taskmix.models import (
    Adapters,
    Merge,
    Perceptron,
    TaskArithmetic,
    Transformer,
    WeightAverage,
    tuned,
)
from taskmix.plans import Part, Plan, Shares
from taskmix.records import Study
from taskmix.training import evaluate

pytestmark = pytest.mark.usefixtures("own_cache")

TASKS = ("letter", "length", "vowels")


@pytest.fixture
def template(tmp_path: Path, save_encoder: Callable[..., str]) -> Run:
    """Adapters of a tiny BERT with random weights, on three tasks about short words."""
    path = save_encoder()
    architecture = Transformer(path=path, max_length=8, tune="adapters", adapters=Adapters(rank=2))
    return Run(
        label="template",
        source=word_tasks(tmp_path / "tasks", TASKS),
        architecture=architecture,
        optimization=Optimization(learning_rate=0.02),
        steps=36,
        evaluate_every=12,
        batch_size=8,
        seed=0,
    )


def merging(merge: Merge) -> Plan:
    parts = [
        Part(tasks=(name,), scored=(name,), share=1 / 3, division=Shares.equal(1)) for name in TASKS
    ]
    return Plan(name="merged", parts=tuple(parts), merge=merge)


@pytest.mark.parametrize("tuning", ["adapters", "heads", "all"])
def test_a_plan_merges_models_into_one_with_every_tasks_own_head(
    template: Run, tmp_path: Path, tuning: Any
) -> None:
    study = Study(tmp_path / "study")
    run = replace(template, architecture=tuned(template.architecture, tuning))
    plan = merging(Merge(method=WeightAverage()))
    (merged,) = plan.runs(run, seeds=[0])
    (result,) = Here(workers=1).run([merged], study)
    assert result.outcome == "finished"
    assert result.notes == ("3 models merged by WeightAverage at a scale of 1.",)
    model, _ = model_of_run(merged, study)
    singles = [model_of_run(source, study)[0] for source in merged.sources]
    for name, value in model.encoder.state_dict().items():
        wanted = torch.stack([single.encoder.state_dict()[name] for single in singles])
        if value.is_floating_point():
            torch.testing.assert_close(value, wanted.mean(dim=0), atol=1e-6, rtol=1e-5)
    names = merged.load().names
    for source, single in zip(merged.sources, singles, strict=True):
        place = names.index(source.load().names[0])
        ours, theirs = model.heads[place].state_dict(), single.heads[0].state_dict()
        assert all(torch.equal(ours[name], theirs[name]) for name in theirs)


def test_the_scale_is_the_best_on_dev_and_the_record_has_its_scores(
    template: Run, tmp_path: Path
) -> None:
    study = Study(tmp_path / "study")
    means = {}
    for scale in (0.0, 0.5, 1.0):
        plan = merging(Merge(method=TaskArithmetic(scales=(scale,))))
        means[scale] = _mean_dev(plan.runs(template, seeds=[0])[0], study)
    whole = merging(Merge(method=TaskArithmetic(scales=(0.0, 0.5, 1.0))))
    (run,) = whole.runs(template, seeds=[0])
    assert _mean_dev(run, study) == max(means.values())
    model, tasks = model_of_run(run, study)
    summary = run.folder(study).summary()
    assert summary is not None
    recorded = {(s.task, s.split): s.value for s in summary.scores if s.metric != "loss"}
    for split in ("dev", "test"):
        for score in evaluate(model, tasks, split):
            assert recorded[score.task, split] == score.value


def _mean_dev(run: Run, study: Study) -> float:
    """By the scores of the two tasks with classes; the regression counts in its own unit."""
    (result,) = Here(workers=1).run([run], study)
    assert result.summary is not None
    sign = {"accuracy": 1.0, "rmse": -1.0}
    scores = [s for s in result.summary.scores if s.split == "dev" and s.metric in sign]
    targets = run.load()["length"].splits["train"].targets
    values = [
        sign[s.metric] * s.value / (float(targets.std()) if s.metric == "rmse" else 1.0)
        for s in scores
    ]
    return round(sum(values) / len(values), 6)


def test_multiples_are_kept_only_where_they_do_better(template: Run, tmp_path: Path) -> None:
    study = Study(tmp_path / "study")
    alike, more = (
        merging(Merge(method=TaskArithmetic(scales=(0.5,)), multiples=multiples)).runs(
            template, seeds=[0]
        )[0]
        for multiples in ((), (0.0, 2.0))
    )
    assert _mean_dev(more, study) >= _mean_dev(alike, study)
    assert more.merge is not None
    assert more.merge.evaluations(3) == 7


def test_merged_runs_wait_for_their_sources_whatever_the_order_they_are_asked_in(
    template: Run, tmp_path: Path
) -> None:
    study = Study(tmp_path / "study")
    plan = merging(Merge())
    alone = replace(plan, merge=None, name="single").runs(template, seeds=[0])
    asked = [*plan.runs(template, seeds=[0, 1]), *alone]
    results = Here(workers=1).run(asked, study)
    assert [each.outcome for each in results] == ["finished"] * 5
    labels = [each.summary.label for each in results if each.summary is not None]
    assert labels == ["merged", "merged", "single", "single", "single"]
    stopped = Here(workers=1).run(plan.runs(template, seeds=[2]), study, stop=lambda: True)
    assert [each.outcome for each in stopped] == ["stopped"]
    over = Here(workers=1).run(asked, study, fresh=True)
    assert [each.outcome for each in over] == ["finished"] * 5


def test_a_merged_model_is_kept_and_answers(template: Run, tmp_path: Path) -> None:
    study = Study(tmp_path / "study")
    runs = merging(Merge()).runs(template, seeds=[0])
    results = Here(workers=1).run(runs, study)
    folder = keep_best(runs, results, study, tmp_path / "model")
    assert folder is not None
    model = load_model(folder)
    assert set(model.tasks) == set(TASKS)
    task = template.load()["letter"]
    answers = model.predict(task.splits["test"].inputs, "letter")
    right = [
        answer["label"] == task.labels[target]
        for answer, target in zip(answers, task.splits["test"].targets, strict=True)
    ]
    summary = results[0].summary
    assert summary is not None
    (recorded,) = (
        s.value
        for s in summary.scores
        if (s.task, s.split, s.metric) == ("letter", "test", "accuracy")
    )
    assert sum(right) / len(right) == pytest.approx(recorded)


def test_a_merge_that_was_stopped_is_done_when_it_is_asked_for_again(
    template: Run, tmp_path: Path
) -> None:
    study = Study(tmp_path / "study")
    (run,) = merging(Merge()).runs(template, seeds=[0])
    Here(workers=1).run(run.sources, study)
    assert execute(run, study, should_stop=lambda: True).outcome == "stopped"
    assert execute(run, study).outcome == "finished"


def test_the_order_of_a_plans_parts_makes_no_other_run(template: Run) -> None:
    plan = merging(Merge())
    turned = replace(plan, parts=plan.parts[::-1])
    (first,), (second,) = (each.runs(template, seeds=[0]) for each in (plan, turned))
    assert first.specification() == second.specification()


def test_models_that_cannot_be_merged_are_refused_in_words(template: Run, tmp_path: Path) -> None:
    study = Study(tmp_path / "study")
    (run,) = merging(Merge()).runs(template, seeds=[0])
    with pytest.raises(RunError, match=r"Found that of length missing\. Train it"):
        execute(run, study)
    other = replace(run, sources=(replace(run.sources[0], seed=1), *run.sources[1:]))
    with pytest.raises(InputError, match="begin alike"):
        execute(other, study)
    digits = replace(run, source=DigitsSource(), tasks=None, architecture=Perceptron())
    with pytest.raises(InputError, match="one pretrained model"):
        execute(digits, study)


def test_processes_of_a_launcher_do_not_merge(template: Run, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="by one process of this machine"):
        TorchrunExecutor().run(
            merging(Merge()).runs(template, seeds=[0]), Study(tmp_path / "study")
        )


def test_a_plan_that_merges_comes_back_from_its_file(tmp_path: Path) -> None:
    for merge in (Merge(), Merge(method=WeightAverage(), multiples=(0.5, 2.0))):
        plan = merging(merge)
        assert Plan.load(plan.save(tmp_path / "plan.json")) == plan
        assert [part.scored for part in plan.models] == [TASKS]
    path = tmp_path / "plan.json"
    document = json.loads(path.read_text())
    for bad in ({"kind": "WeightAverage"}, {"kind": "Merge", "method": {"kind": "Perceptron"}}):
        path.write_text(json.dumps({**document, "merge": bad}))
        with pytest.raises(InputError, match="The `merge` of a plan"):
            Plan.load(path)


def test_a_plan_that_merges_should_have_parts_of_their_own_tasks() -> None:
    both = Part(tasks=TASKS, scored=TASKS, share=1.0, division=Shares.equal(3))
    with pytest.raises(InputError, match="two parts or more"):
        Plan(parts=(both,), merge=Merge())

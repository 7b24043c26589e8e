"""What people take home: one model for every task, which is the same after it was kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch

import taskmix
from taskmix.adviser import Advised
from taskmix.tasks import Task, TaskSet, digits_tasks, tables_as_tasks
from taskmix.training import TrainedModel

QUICK: dict[str, Any] = {"quiet": True, "budget": "100-steps", "steps": 10}
SIZES = {"train": 80, "dev": 40, "test": 40}


def table(generator: np.random.Generator, rows: int) -> pa.Table:
    amount, age = generator.normal(size=(2, rows))
    label = np.where(amount - age + generator.normal(size=rows) > 0, "fraud", "other")
    return pa.table({"amount": amount, "age": age, "label": label})


def text(generator: np.random.Generator, rows: int) -> pa.Table:
    words = np.array(["one", "two", "three", "four", "five", "six", "seven"])
    label = generator.choice(["pos", "neg"], rows)
    honest = {"pos": ["good", "fine"], "neg": ["bad", "poor"]}
    texts = [
        " ".join([*generator.choice(words, 4), *([generator.choice(honest[each])] * (n % 4 > 0))])
        for n, each in enumerate(label)
    ]
    return pa.table({"text": texts, "label": label})


def tokens(generator: np.random.Generator, rows: int) -> pa.Table:
    sentences = [generator.choice(["Paris", "Rome", "go", "to", "the"], 5) for _ in range(rows)]
    tags = [
        ["B-LOC" if w in ("Paris", "Rome") and generator.random() < 0.9 else "O" for w in words]
        for words in sentences
    ]
    return pa.table({"tokens": [words.tolist() for words in sentences], "tags": tags})


def tasks_of(kind: Any) -> TaskSet:
    generator = np.random.default_rng(0)
    return tables_as_tasks(
        {
            name: {split: kind(generator, rows) for split, rows in SIZES.items()}
            for name in ("a", "b")
        }
    )


def said(model: TrainedModel, rows: pa.Table, task: Task) -> Any:
    """Probabilities, where the model gives any: of tags it gives none."""
    if task.kind == "tagging":
        return []
    return model.probabilities(rows, task.name)


@pytest.fixture(scope="module", params=[table, text, tokens], ids=lambda kind: kind.__name__)
def delivered(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[TaskSet, Advised]:
    tasks = tasks_of(request.param)
    return tasks, taskmix.advise(tasks, out=tmp_path_factory.mktemp("out") / "advice", **QUICK)


def test_the_kept_folder_says_what_the_model_says(delivered: tuple[TaskSet, Advised]) -> None:
    tasks, advised = delivered
    assert advised.advice.delivered is not None, advised.document.notes
    kept = taskmix.load_model(advised.study.path)
    assert set(kept.tasks) == set(advised.model.tasks) == {"a", "b"}
    for task in tasks:
        rows = task.splits["test"].inputs
        assert kept.predict(rows, task.name) == advised.predict(rows, task.name)
        assert said(kept, rows, task) == pytest.approx(said(advised.model, rows, task), abs=1e-6)


def test_the_promised_scores_are_those_of_the_model(delivered: tuple[TaskSet, Advised]) -> None:
    """On test rows, by the answers themselves, and not by what the adviser kept of them."""
    tasks, advised = delivered
    found = advised.advice.delivered
    assert found is not None
    task = tasks["a"]
    rows = task.splits["test"].inputs
    true = np.array(task.labels)[task.splits["test"].targets]
    for model, scores in ((advised.model, found.scores), (advised.checked, found.checked)):
        answers = model.predict(rows, "a")
        if task.kind != "tagging":
            right = np.mean([each["label"] for each in answers] == true)
        else:  # an entity is a word here, so F1 is that of words
            tags = np.concatenate([each["tags"] for each in answers])
            both = np.sum((tags == "B-LOC") & (true == "B-LOC"))
            right = 2 * both / (np.sum(tags == "B-LOC") + np.sum(true == "B-LOC"))
        assert scores["a"] == pytest.approx(right)


def test_what_was_checked_is_beside_what_was_trained_again_on_dev_rows_too(
    delivered: tuple[TaskSet, Advised],
) -> None:
    tasks, advised = delivered
    found = advised.advice.delivered
    assert found is not None
    assert found.is_refitted
    assert found.final.networks or found.final.peers
    both = SIZES["train"] + SIZES["dev"]
    for run, _ in found.final.networks:
        assert all(task.sizes["train"] == both for task in run.load())
    for run, _ in found.before.networks:
        assert all(task.sizes["train"] == SIZES["train"] for task in run.load())
    for (last, _), (first, _) in zip(found.final.peers, found.before.peers, strict=True):
        again = first.peer.fit(tasks, splits=("train", "dev"), seed=0)
        rows = tasks["a"].splits["test"].inputs
        torch.testing.assert_close(last.outputs("a", rows), again.outputs("a", rows))
    checked = taskmix.load_model(advised.study.path / "checked-model")
    rows = tasks["b"].splits["test"].inputs
    assert checked.predict(rows, "b") == advised.checked.predict(rows, "b")
    assert said(checked, rows, tasks["b"]) == pytest.approx(said(advised.checked, rows, tasks["b"]))
    assert "trained again on train and dev rows" in " ".join(advised.lines)


def test_without_training_again_the_checked_model_is_delivered(tmp_path: Path) -> None:
    tasks = tasks_of(table)
    advised = taskmix.advise(tasks, out=tmp_path, refit=False, **QUICK)
    found = advised.advice.delivered
    assert found is not None
    assert not found.is_refitted
    assert found.scores == found.checked
    assert not (tmp_path / "checked-model").exists()
    rows = tasks["a"].splits["test"].inputs
    assert advised.checked.predict(rows, "a") == advised.predict(rows, "a")
    assert all(run.load()["a"].sizes["train"] == SIZES["train"] for run, _ in found.final.networks)


@pytest.mark.parametrize("budget", ["1-steps", "0.5s"])
def test_where_the_budget_pays_for_no_network_shallow_models_answer(
    tmp_path: Path, budget: str
) -> None:
    tasks = tasks_of(table)
    advised = taskmix.advise(tasks, out=tmp_path, budget=budget, quiet=True)
    found = advised.advice.delivered
    assert found is not None
    assert not found.final.networks
    assert found.final.peers
    assert any("pays for no shared network" in note for note in advised.document.notes)
    model = taskmix.load_model(tmp_path)
    for task in tasks:
        rows = task.splits["test"].inputs
        assert model.predict(rows, task.name) == advised.predict(rows, task.name)
        right = model.probabilities(rows, task.name).argmax(axis=1) == task.splits["test"].targets
        assert right.mean() > 0.6
    assert (tmp_path / "plan.json").exists()


def test_a_task_of_which_nothing_was_learned_has_an_answer_that_says_little(
    tmp_path: Path,
) -> None:
    tasks = digits_tasks().select(("parity", "half", "shuffled_parity"))
    advised = taskmix.advise(tasks, out=tmp_path, budget="1200-steps", steps=60, quiet=True)
    assert "shuffled_parity" in advised.lines[0]
    assert "shuffled_parity" not in advised.plan().tasks
    model = taskmix.load_model(tmp_path)
    assert set(model.tasks) == {"parity", "half", "shuffled_parity"}
    rows = tasks["shuffled_parity"].splits["test"].inputs
    shares = model.probabilities(rows, "shuffled_parity")
    honest = model.probabilities(rows, "parity")
    assert shares.max(axis=1).mean() < 0.65 < honest.max(axis=1).mean()
    assert advised.document.delivered is not None
    assert {row.task for row in advised.document.delivered.tasks} == set(model.tasks)


def test_asking_again_delivers_the_same_model_and_trains_nothing(tmp_path: Path) -> None:
    tasks = tasks_of(table)
    first = taskmix.advise(tasks, out=tmp_path, **QUICK)
    runs = {run.name for run in first.study.runs()}
    again = taskmix.advise(tasks, out=tmp_path, **QUICK)
    assert {run.name for run in again.study.runs()} == runs
    assert again.plan() == first.plan()
    rows = tasks["a"].splits["test"].inputs
    assert again.predict(rows, "a") == first.predict(rows, "a")

"""The adviser from Python: its answers are the command's, for any data set and any encoder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import TensorDataset

import taskmix
from taskmix.errors import InputError, OptionError
from taskmix.models import own_module
from taskmix.tasks import digits_tasks, gather_tasks

QUICK: dict[str, Any] = {"budget": "400-steps", "steps": 20, "quiet": True}


def arrays(seed: int, count: int = 60) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    generator = np.random.default_rng(seed)
    inputs = generator.normal(size=(count, 4))
    return inputs, (inputs[:, 0] > 0).astype(int)


def parts(first: int) -> tuple[Any, Any, Any]:
    return arrays(first), arrays(first + 1), arrays(first + 2)


def datasets(first: int) -> tuple[Any, ...]:
    return tuple(TensorDataset(*map(torch.as_tensor, part)) for part in parts(first))


def encoder() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU())


def test_arrays_get_a_model_of_ours(tmp_path: Path) -> None:
    advised = taskmix.advise({"a": parts(0), "b": parts(10)}, out=tmp_path, **QUICK)
    assert set(advised.plan().tasks) <= {"a", "b"}
    assert advised.plan() == taskmix.Plan.load(tmp_path / "plan.json")
    inputs, targets = arrays(12)
    rows = [{f"x{place}": value for place, value in enumerate(row)} for row in inputs]
    found = advised.predict(rows, "b")
    assert taskmix.load_model(tmp_path).predict(rows, "b") == found
    assert np.mean(np.array([int(each["label"]) for each in found]) == targets) > 0.5


def test_what_only_adds_to_an_answer_never_costs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        raise OverflowError("too large")

    for place in ("_adviser.peer_members", "_adviser.propose_candidates", "_advised.write_report"):
        monkeypatch.setattr(f"taskmix.adviser.{place}", fail)
    advised = taskmix.advise({"a": parts(0), "b": parts(10)}, out=tmp_path, **QUICK)
    assert advised.lines
    assert advised.plan() == taskmix.Plan.load(tmp_path / "plan.json")
    assert taskmix.load_model(tmp_path).tasks
    kept = json.loads((tmp_path / "advice.json").read_text())
    assert tuple(kept["notes"]) == advised.document.notes
    for what in ("Linear models and trees", "What the first runs suggest", "The page"):
        assert sum(note.startswith(f"{what} was left out: ") for note in kept["notes"]) == 1


@pytest.mark.parametrize("given", [encoder, encoder()])
def test_a_module_or_a_function_that_makes_one_is_trained_on_data_sets(
    given: Any, tmp_path: Path
) -> None:
    tasks = {"a": datasets(0), "b": datasets(10)}
    advised = taskmix.advise(tasks, model=given, out=tmp_path, **QUICK)
    entry = advised.advice.entries[advised.answer.chosen.name][0]
    assert set(entry.dev) == {"a", "b"}
    inputs = [row for row, _ in tasks["a"][2]]
    found = advised.predict(inputs, "a")
    assert len(found) == 60
    assert found == advised.predict(torch.stack(inputs), "a")
    assert str(advised).startswith(advised.lines[0])
    page = advised._repr_html_()
    assert "<table>" in page
    assert "uniform" in page
    again = taskmix.advise(tasks, model=given, out=tmp_path, **QUICK)
    assert again.plan() == advised.plan()


def test_a_module_s_answers_have_the_promised_score_and_only_its_maker_can_keep_it(
    tmp_path: Path,
) -> None:
    tasks = {"a": datasets(0), "b": datasets(10)}
    advised = taskmix.advise(tasks, model=encoder, out=tmp_path, **QUICK)
    delivered = advised.advice.delivered
    assert delivered is not None
    assert not delivered.final.peers
    assert not delivered.is_refitted
    assert not (tmp_path / "model").exists()
    found = advised.predict([row for row, _ in tasks["a"][2]], "a")
    true = [int(target) for _, target in tasks["a"][2]]
    right = [int(each["label"]) == label for each, label in zip(found, true, strict=True)]
    assert np.mean(right) == pytest.approx(delivered.scores["a"])


def test_it_says_how_the_tasks_were_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    taskmix.advise({"a": parts(0), "b": parts(10)}, out=tmp_path, budget="1-steps")
    assert "accuracy" in capsys.readouterr().err.splitlines()[0]


def test_a_folder_and_a_task_set_give_the_same_plan(tmp_path: Path) -> None:
    tasks = digits_tasks().select(["parity", "half"])
    taskmix.advise(tasks, out=tmp_path / "a", **QUICK)
    from taskmix.tasks import write_tasks

    write_tasks(tasks, tmp_path / "folder")
    taskmix.advise(str(tmp_path / "folder"), out=tmp_path / "b", **QUICK)
    first, second = (taskmix.Plan.load(tmp_path / name / "plan.json") for name in "ab")
    assert set(first.tasks) == set(second.tasks) == {"parity", "half"}


class Wrong(nn.Module):
    def forward(self, batch: Tensor) -> Tensor:
        return batch.sum()


@pytest.mark.parametrize(
    ("tasks", "model", "said"),
    [
        ({}, "auto", "at least one task"),
        ({"a": 3}, "auto", r"`a` should be a frame .* or \(train, dev, test\)"),
        ({"a": ([1, 2], [3])}, "auto", "a target for each row. Found 2 rows and 1 targets"),
        (5, "auto", "should be a frame"),
        ({"a": datasets(0)}, 5, "`model` should be a module"),
        ({"a": datasets(0)}, lambda: 3, "`model` should make a module"),
        ({"a": datasets(0)}, nn.Linear(5, 2), "should read a batch"),
        ({"a": datasets(0)}, Wrong(), "should give a vector for each of 2 rows"),
        ({"a": parts(0), "b": ([{"text": "x", "label": 1}],) * 2}, "auto", "given alike"),
        ({"a": ((np.zeros((4, 2, 2)), [0, 1, 0, 1]),) * 2}, "auto", "Give a `model`"),
    ],
)
def test_what_cannot_be_used_is_told_in_a_sentence(
    tasks: Any, model: Any, said: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=said):
        taskmix.advise(tasks, model=model, out=tmp_path / "x", **QUICK)
    assert not (tmp_path / "x").exists()


def test_a_module_of_one_s_own_runs_in_this_process(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="in this process"):
        taskmix.advise({"a": datasets(0)}, model=encoder, workers=2, out=tmp_path, **QUICK)


def test_modules_with_other_parameters_are_other_runs() -> None:
    tasks, encoding = gather_tasks({"a": datasets(0)}, hold=True)
    assert encoding is not None
    encoded = encoding.encode(tasks)
    module = encoder()
    one, same = (own_module(module, encoding, encoded) for _ in range(2))
    assert one == same
    assert one != own_module(encoder(), encoding, encoded)
    made = own_module(lambda given: nn.Linear(4, len(given)), encoding, encoded)
    assert made.build(encoded).encoder.out_features == 1

"""The folders of the benchmark of advice, and what it adds to them."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import SimpleNamespace

import pytest

from taskmix.tasks import digits_tasks, load_tasks

ROOT = Path(__file__).parents[2]


def test_rows_that_some_task_trains_on_are_in_no_dev_or_test(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    folders = importlib.import_module("_advice_folders")
    texts = {"train": "abcd", "dev": "aefg", "test": "hijk"}
    rows = {
        split: [{"text": f"text {letter}", "label": place % 2} for place, letter in enumerate(some)]
        for split, some in texts.items()
    }
    others = {**rows, "train": [{"text": f"text {letter}", "label": "yes"} for letter in "hlmn"]}
    tasks = folders.without_seen({"one": rows, "other": others}, lambda row: row["text"])
    assert [row["text"][-1] for row in tasks["one"]["dev"]] == ["e", "f", "g"]  # a is trained on
    assert [row["text"][-1] for row in tasks["one"]["test"]] == ["i", "j", "k"]  # h by the other
    folders.write(tmp_path / "folder", {"one": tasks["one"]}, 'metric = "auc"\n')
    (read,) = load_tasks(tmp_path / "folder")
    assert read.sizes == {"train": 4, "dev": 3, "test": 3}
    assert read.metric == "auc"


def test_folders_put_aside_are_refused_until_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    better = importlib.import_module("better")
    with pytest.raises(SystemExit, match="weak is put aside: nothing may be chosen by its results"):
        better.refuse_put_aside(["votes", "weak"], final=False)
    better.refuse_put_aside(["votes", "weak"], final=True)
    better.refuse_put_aside(["votes"], final=False)


def test_four_harmful_tasks_are_added_and_asked_for_by_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    harm = importlib.import_module("_advice_harm")
    tasks = digits_tasks()
    spoiled = harm.spoil(tasks, seed=0)
    assert len(spoiled.tasks) == len(tasks) + 4
    (short,) = spoiled.names["few rows"]
    assert spoiled.tasks[short].size == harm.FEW
    (leaking,) = spoiled.names["leaking"]
    dev = spoiled.tasks[leaking].splits["dev"]
    told = dev.inputs.column("outcome").to_pylist()
    labels = spoiled.tasks[leaking].labels
    assert told == [f"answer{labels[int(target)]}" for target in dev.targets]

    (wrong,) = spoiled.names["shuffled"]
    findings = [
        SimpleNamespace(kind="leak", tasks=(leaking,)),
        SimpleNamespace(kind="few rows", tasks=("another",)),
    ]
    document = SimpleNamespace(
        unlearned=(wrong,), plan=SimpleNamespace(tasks=()), findings=findings
    )
    assert harm.named(SimpleNamespace(document=document), spoiled) == {
        "shuffled": True,
        "copy": False,
        "leaking": True,
        "few rows": False,
        "left out": True,
    }

"""The folders of the benchmark of advice, and what it adds to them."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from taskmix.tasks import load_tasks

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
    advice = importlib.import_module("advice")
    with pytest.raises(
        SystemExit, match="votes is put aside: nothing may be chosen by its results"
    ):
        advice.refuse_put_aside("somewhere/votes", final=False)
    advice.refuse_put_aside("somewhere/votes", final=True)
    advice.refuse_put_aside("somewhere/incomes", final=False)

from __future__ import annotations

import csv
import io
import json
import random
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as arrow_parquet
import pytest
import torch

from taskmix.tasks import Question

from .running import Program, run_cli


@pytest.fixture(scope="module")
def model(shared_folder: Path) -> Path:
    """A model that knows which word decides."""
    out = shared_folder.parent
    words = ("--steps", "60", "--out", out / "study", "--keep", out / "model", "--json")
    assert run_cli("train", shared_folder, *words) == 0
    return out / "model"


def test_each_row_is_answered_for_by_the_task_that_a_column_names(
    model: Path, shared_folder: Path, tmp_path: Path, cli: Program
) -> None:
    tasks = sorted(path.name for path in shared_folder.iterdir() if path.is_dir())[:2]
    texts = [json.loads(line) for line in (shared_folder / tasks[0] / "test.jsonl").open()][:3]
    rows = [{**row, "about": task} for row in texts for task in tasks]
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = cli.json("predict", model, path, "--task-column", "about", "--json")["rows"]
    alone = {}
    for task in tasks:
        alone[task] = cli.json("predict", model, path, "--task", task, "--json")["rows"]
    expected = [alone[row["about"]][place] for place, row in enumerate(rows)]
    assert [each["label"] for each in found] == [each["label"] for each in expected]
    assert cli("predict", model, path, "--task-column", "about") == 0
    assert "the tasks of the rows" in cli.said().err
    both = ("--task", tasks[0], "--task-column", "about")
    assert "one of the two" in cli.refused("predict", model, path, *both)


def test_answers_come_as_lines_as_one_object_and_as_files(
    model: Path, shared_folder: Path, tmp_path: Path, cli: Program
) -> None:
    cli.said()
    rows = shared_folder / "fruit" / "test.jsonl"
    assert cli("predict", model, rows, "--task", "fruit") == 0
    lines = [json.loads(line) for line in cli.said().out.splitlines()]
    assert len(lines) == 12
    assert set(lines[0]) == {"label", "probability"}

    found = cli.json("predict", model, rows, "--task", "fruit", "--json")
    assert (found["task"], found["kind"]) == ("fruit", "classification")
    assert found["rows"] == lines

    for ending in ("jsonl", "csv", "parquet"):
        out = tmp_path / f"answers.{ending}"
        assert cli("predict", model, rows, "--task", "fruit", "--answers", out) == 0
    cli.said()
    again = ("predict", model, rows, "--task", "fruit", "--answers", out)
    before = out.read_bytes()
    assert cli(*again) == 2, "it may be anybody's file"
    assert "replace it with --overwrite" in " ".join(cli.said().err.split())
    assert out.read_bytes() == before
    assert cli(*again, "--overwrite") == 0
    assert [json.loads(line) for line in (tmp_path / "answers.jsonl").open()] == lines
    assert arrow_parquet.read_table(tmp_path / "answers.parquet").to_pylist() == lines
    assert (tmp_path / "answers.csv").read_text().splitlines()[0] == '"label","probability"'


def test_rows_may_come_from_standard_input(
    model: Path, monkeypatch: pytest.MonkeyPatch, cli: Program
) -> None:
    cli.said()
    lines = io.TextIOWrapper(io.BytesIO(b'{"text": "this is hammer 1"}\n'))
    monkeypatch.setattr(sys, "stdin", lines)
    assert cli("predict", model, "-", "--task", "tool") == 0
    assert json.loads(cli.said().out)["label"] in ("0", "1")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "The task should be one that the model answers for: fruit, tool. Found none."),
        (("--task", "nuts"), "Found `nuts`"),
        (("--task", "fruit", "--answers", "answers.xls"), "should end in .jsonl, .csv, .parquet"),
    ],
)
def test_bad_input_is_one_sentence(
    words: tuple[str, ...], said: str, model: Path, shared_folder: Path, cli: Program
) -> None:
    assert said in cli.refused("predict", model, shared_folder / "fruit" / "test.jsonl", *words)


def test_files_of_another_kind_and_folders_without_a_model_are_refused(
    model: Path, tables: Path, tmp_path: Path, cli: Program
) -> None:
    other = tables / "a" / "test.csv"
    assert "should have the columns `text`" in cli.refused(
        "predict", model, other, "--task", "fruit"
    )
    assert "should be a folder with a trained model" in cli.refused(
        "predict", model.parent / "study", other, "--task", "fruit"
    )


def test_no_label_is_a_formula_in_a_table_for_spreadsheets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Program
) -> None:
    labels = ["=1+1", "-2", "+1.5e3", "@now", "\tx", "plain", "-x", "＝1"]  # noqa: RUF001
    answers = [{"label": label, "tags": ["=1", "B"], "probability": 0.5} for label in labels]
    monkeypatch.setattr("taskmix.engine.load_model", lambda path, base=None: FakeModel(answers))
    for ending in ("csv", "jsonl", "parquet"):
        out = tmp_path / f"answers.{ending}"
        assert cli("predict", tmp_path, "x.csv", "--answers", out) == 0
    with (tmp_path / "answers.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    shown = ["'=1+1", "-2", "+1.5e3", "'@now", "'\tx", "plain", "'-x", "'＝1"]  # noqa: RUF001
    assert [row["label"] for row in rows] == shown, "numbers are no formulas"
    assert json.loads(rows[0]["tags"]) == ["=1", "B"]
    lines = (tmp_path / "answers.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["label"] for line in lines] == labels
    table = arrow_parquet.read_table(tmp_path / "answers.parquet")
    assert table.column("label").to_pylist() == labels


@dataclass
class FakeModel:
    answers: list[dict[str, Any]]

    def predict(self, *_: object, **options: object) -> list[dict[str, Any]]:
        return self.answers

    def question(self, task: str | None) -> Question:
        return Question(
            name="a", kind="classification", labels=(), inputs="text", columns=(), metric="accuracy"
        )


def points_in(path: Path) -> Path:
    """Points that are `up`, `far`, both or neither."""
    chance = random.Random(0)
    for split, count in (("train", 80), ("dev", 40)):
        lines = ["x,y,label"]
        for _ in range(count):
            x, y = chance.uniform(-1, 1), chance.uniform(-1, 1)
            labels = [word for word, said in (("up", y > 0), ("far", x > 0)) if said]
            lines.append(f"{x:.4f},{y:.4f},{'|'.join(labels) or '|'}")
        (path / "points").mkdir(parents=True, exist_ok=True)
        (path / "points" / f"{split}.csv").write_text("\n".join(lines) + "\n")
    return path


def test_label_sets_are_trained_kept_and_predicted_by_the_command_line(
    tmp_path: Path, cli: Program
) -> None:
    torch.set_num_threads(1)
    folder = points_in(tmp_path / "tasks")
    out, model = tmp_path / "study", tmp_path / "model"
    found = cli.json("train", folder, "--steps", 200, "--out", out, "--keep", model, "--json")
    assert "several labels in a cell, with `|`" in json.dumps(found)
    assert "micro_f1" in json.dumps(found)
    (tmp_path / "new.csv").write_text("x,y\n0.9,-0.9\n-0.9,-0.9\n")
    lines = cli.out("predict", model, tmp_path / "new.csv").splitlines()
    first, second = (json.loads(line) for line in lines[-2:])
    assert first["labels"] == ["far"]
    assert set(first["probabilities"]) == {"far", "up"}
    assert second["labels"] == []
    for ending in ("csv", "parquet"):
        cli.out("predict", model, tmp_path / "new.csv", "--answers", tmp_path / f"said.{ending}")
    assert arrow_parquet.read_table(tmp_path / "said.parquet")["labels"].to_pylist() == [
        ["far"],
        [],
    ]
    assert '"[""far""]"' in (tmp_path / "said.csv").read_text()

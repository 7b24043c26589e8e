from __future__ import annotations

import csv
import io
import json
import sys
from pathlib import Path

import pyarrow.parquet as arrow_parquet
import pytest

from taskmix.cli._commands import _predict
from taskmix.tasks import Question

from .running import run_cli


@pytest.fixture
def model(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A model that knows which word decides."""
    words = ("--steps", "60", "--out", tmp_path / "study", "--keep", tmp_path / "model", "--json")
    assert run_cli(monkeypatch, "train", folder, *words) == 0
    return tmp_path / "model"


def test_each_row_is_answered_for_by_the_task_that_a_column_names(
    model: Path,
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    tasks = sorted(path.name for path in folder.iterdir() if path.is_dir())[:2]
    texts = [json.loads(line) for line in (folder / tasks[0] / "test.jsonl").open()][:3]
    rows = [{**row, "about": task} for row in texts for task in tasks]
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    capsys.readouterr()
    assert run_cli(monkeypatch, "predict", model, path, "--task-column", "about", "--json") == 0
    found = json.loads(capsys.readouterr().out)["rows"]
    alone = {}
    for task in tasks:
        assert run_cli(monkeypatch, "predict", model, path, "--task", task, "--json") == 0
        alone[task] = json.loads(capsys.readouterr().out)["rows"]
    expected = [alone[row["about"]][place] for place, row in enumerate(rows)]
    assert [each["label"] for each in found] == [each["label"] for each in expected]
    assert run_cli(monkeypatch, "predict", model, path, "--task-column", "about") == 0
    assert "the tasks of the rows" in capsys.readouterr().err
    both = ("--task", tasks[0], "--task-column", "about")
    assert run_cli(monkeypatch, "predict", model, path, *both) == 2
    assert "one of the two" in capsys.readouterr().err


def test_answers_come_as_lines_as_one_object_and_as_files(
    model: Path,
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    capsys.readouterr()
    rows = folder / "fruit" / "test.jsonl"
    assert run_cli(monkeypatch, "predict", model, rows, "--task", "fruit") == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(lines) == 12
    assert set(lines[0]) == {"label", "probability"}

    assert run_cli(monkeypatch, "predict", model, rows, "--task", "fruit", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["task"], found["kind"]) == ("fruit", "classification")
    assert found["rows"] == lines

    for ending in ("jsonl", "csv", "parquet"):
        out = tmp_path / f"answers.{ending}"
        assert (
            run_cli(monkeypatch, "predict", model, rows, "--task", "fruit", "--answers", out) == 0
        )
    capsys.readouterr()
    again = ("predict", model, rows, "--task", "fruit", "--answers", out)
    before = out.read_bytes()
    assert run_cli(monkeypatch, *again) == 2, "it may be anybody's file"
    assert "replace it with --overwrite" in " ".join(capsys.readouterr().err.split())
    assert out.read_bytes() == before
    assert run_cli(monkeypatch, *again, "--overwrite") == 0
    assert [json.loads(line) for line in (tmp_path / "answers.jsonl").open()] == lines
    assert arrow_parquet.read_table(tmp_path / "answers.parquet").to_pylist() == lines
    assert (tmp_path / "answers.csv").read_text().splitlines()[0] == '"label","probability"'


def test_rows_may_come_from_standard_input(
    model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    lines = io.TextIOWrapper(io.BytesIO(b'{"text": "this is hammer 1"}\n'))
    monkeypatch.setattr(sys, "stdin", lines)
    assert run_cli(monkeypatch, "predict", model, "-", "--task", "tool") == 0
    assert json.loads(capsys.readouterr().out)["label"] in ("0", "1")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "The task should be one that the model answers for: fruit, tool. Found none."),
        (("--task", "nuts"), "Found `nuts`"),
        (("--task", "fruit", "--answers", "answers.xls"), "should end in .jsonl, .csv, .parquet"),
    ],
)
def test_bad_input_is_one_sentence(
    words: tuple[str, ...],
    said: str,
    model: Path,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run_cli(monkeypatch, "predict", model, folder / "fruit" / "test.jsonl", *words) == 2
    assert said in capsys.readouterr().err


def test_files_of_another_kind_and_folders_without_a_model_are_refused(
    model: Path,
    tables: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    other = tables / "a" / "test.csv"
    assert run_cli(monkeypatch, "predict", model, other, "--task", "fruit") == 2
    assert "should have the columns `text`" in capsys.readouterr().err
    assert run_cli(monkeypatch, "predict", tmp_path / "study", other, "--task", "fruit") == 2
    assert "should be a folder with a trained model" in capsys.readouterr().err


def test_no_label_is_a_formula_in_a_table_for_spreadsheets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    labels = ["=1+1", "-2", "+1.5e3", "@now", "\tx", "plain", "-x", "＝1"]  # noqa: RUF001
    answers = [{"label": label, "tags": ["=1", "B"], "probability": 0.5} for label in labels]
    monkeypatch.setattr(_predict, "_answers", lambda *_, **options: answers)
    monkeypatch.setattr("taskmix.engine.load_model", lambda path, base=None: FakeModel())
    for ending in ("csv", "jsonl", "parquet"):
        out = tmp_path / f"answers.{ending}"
        assert run_cli(monkeypatch, "predict", tmp_path, "x.csv", "--answers", out) == 0
    with (tmp_path / "answers.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    shown = ["'=1+1", "-2", "+1.5e3", "'@now", "'\tx", "plain", "'-x", "'＝1"]  # noqa: RUF001
    assert [row["label"] for row in rows] == shown, "numbers are no formulas"
    assert json.loads(rows[0]["tags"]) == ["=1", "B"]
    lines = (tmp_path / "answers.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["label"] for line in lines] == labels
    table = arrow_parquet.read_table(tmp_path / "answers.parquet")
    assert table.column("label").to_pylist() == labels


class FakeModel:
    def question(self, task: str | None) -> Question:
        return Question(
            name="a", kind="classification", labels=(), inputs="text", columns=(), metric="accuracy"
        )

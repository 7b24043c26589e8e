"""`taskmix.advise` on frames: the same options as the command's, and answers as frames."""

from __future__ import annotations

import inspect
import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import TensorDataset

import taskmix
from taskmix.adviser import Budget, parse_time
from taskmix.cli import run_command
from taskmix.engine import GivenTasks
from taskmix.errors import OptionError
from taskmix.tasks import digits_tasks

QUICK: dict[str, Any] = {"budget": "100-steps", "steps": 10, "quiet": True}
OPTIONS: dict[str, Any] = {"task_column": "product", "label": "category"}

# Options of `taskmix advise` that are no keyword of `taskmix.advise`, and why.
ONLY_TYPED = {
    "tasks": "it is `settings`, because the tasks themselves are the first argument",
    "json": "what is returned has everything that is printed",
    "engine": "an `executor` is given",
    "address": "an `executor` is given",
    "store": "an `executor` is given",
    "tensorboard": "an `executor` is given, whose observers listen",
    "mlflow": "an `executor` is given, whose observers listen",
    "wandb": "an `executor` is given, whose observers listen",
}
# Keywords of `taskmix.advise` that are no option of the command, and why.
ONLY_PYTHON = {
    "settings": "the command's word is --tasks, because --settings would say less",
    "collate": "a function cannot be typed",
    "executor": "the command makes one of --engine, --workers and --address",
    "quiet": "the command has --json",
}


def columns(count: int = 240) -> dict[str, Any]:
    generator = np.random.default_rng(0)
    amount = generator.normal(size=count)
    return {
        "product": ["loan", "card", "bank"] * (count // 3),
        "amount": amount,
        "channel": generator.choice(["web", "phone"], count),
        "category": np.where(amount > 0, "fraud", "other"),
    }


def test_the_command_and_the_function_have_the_same_names(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["taskmix", "advise", "--help"])
    with pytest.raises(SystemExit):
        run_command()
    options = re.findall(r"^  --([a-z-]+)", capsys.readouterr().out, flags=re.MULTILINE)
    typed = {option.replace("-", "_") for option in options}
    known = set(inspect.signature(taskmix.advise).parameters) - {"tasks"}
    assert typed - {"tasks"} - known <= set(ONLY_TYPED)
    assert known - typed <= set(ONLY_PYTHON)
    reading = set(inspect.signature(taskmix.load_tasks).parameters)
    same = {"task_column", "split_column", "label", "text", "features", "ignore", "kind", "metric"}
    assert {*same, "separator", "strict", "settings", "cache"} <= reading & known


@pytest.fixture(scope="module")
def advised(tmp_path_factory: pytest.TempPathFactory) -> taskmix.Advised:
    out = tmp_path_factory.mktemp("frames") / "advice"
    return taskmix.advise(columns(), out=out, **OPTIONS, **QUICK)


def test_a_frame_is_advised_on_and_a_frame_is_answered_for(advised: taskmix.Advised) -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    assert set(advised.plan().targets) == {"loan", "card", "bank"}
    frame = pandas.DataFrame(columns(), index=range(500, 740))
    found = advised.predict(frame, task_column="product")
    joined = frame.join(found.to_pandas())
    assert joined["label"].notna().all()
    assert set(joined["label"]) <= {"fraud", "other"}
    alone = advised.predict(frame[frame["product"] == "card"], "card")
    assert alone == [found[place] for place in range(1, 240, 3)]


def test_all_kinds_of_rows_get_the_same_answers(advised: taskmix.Advised, tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet

    given = {name: cells[:6] for name, cells in columns().items() if name != "category"}
    expected = advised.predict(given, "card")
    table = pa.table(given)
    pa.parquet.write_table(table, tmp_path / "rows.parquet")
    assert advised.predict(table.to_pylist(), "card") == expected
    assert advised.predict(tmp_path / "rows.parquet", "card") == expected
    assert taskmix.load_model(advised.study.path).predict(table, "card") == expected
    polars = pytest.importorskip("polars", reason="polars is not installed")
    assert advised.predict(polars.DataFrame(given), "card") == expected


def test_probabilities_of_all_classes_agree_with_the_answer(advised: taskmix.Advised) -> None:
    rows = {name: cells[:6] for name, cells in columns().items()}
    shares = advised.model.probabilities(rows, "card")
    assert shares.shape == (6, 2)
    found = advised.predict(rows, "card")
    assert shares.max(axis=1).tolist() == pytest.approx([each["probability"] for each in found])
    assert [advised.model.question("card").labels[place] for place in shares.argmax(axis=1)] == [
        each["label"] for each in found
    ]


def test_results_are_rows_for_a_frame(advised: taskmix.Advised) -> None:
    rows = advised.rows()
    assert sum(row["chosen"] for row in rows) == 1
    assert {row["candidate"] for row in rows} == {row.name for row in advised.document.candidates}
    plan = advised.plan()
    assert sum(row["share"] for row in plan.rows()) == pytest.approx(1.0)
    assert {row["task"] for row in plan.rows() if row["scored"]} == set(plan.targets)
    assert plan.to_json() + "\n" == (advised.study.path / "plan.json").read_text()


def test_a_task_column_and_a_task_are_one_too_many(advised: taskmix.Advised) -> None:
    with pytest.raises(OptionError, match="one of the two"):
        advised.predict(columns(), "card", task_column="product")
    with pytest.raises(OptionError, match="Found `other`"):
        advised.predict({**columns(), "product": ["other"] * 240}, task_column="product")


def test_numbers_are_seconds() -> None:
    assert Budget.parse(60) == Budget.parse("60s") == Budget(seconds=60.0)
    assert Budget.parse(1.5).seconds == 1.5
    assert parse_time(90) == 90.0
    for wrong in (0, -5, True, float("inf"), float("nan")):
        with pytest.raises(OptionError, match="should be"):
            Budget.parse(wrong)
        with pytest.raises(OptionError, match="should be"):
            parse_time(wrong)


def test_options_of_reading_go_with_rows_alone(tmp_path: Path) -> None:
    tasks = digits_tasks().select(("parity", "half"))
    with pytest.raises(OptionError, match="`label` should go with a folder or a frame"):
        taskmix.advise(tasks, label="x", out=tmp_path / "out", **QUICK)
    dataset = TensorDataset(torch.randn(40, 4), torch.arange(40) % 2)
    with pytest.raises(OptionError, match="`task_column` should go with columns"):
        taskmix.advise(
            {"a": dataset},
            model=torch.nn.Linear(4, 2),
            task_column="x",
            out=tmp_path / "out",
            **QUICK,
        )
    assert not (tmp_path / "out").exists()


def test_a_data_set_for_one_s_own_model_needs_no_dev(tmp_path: Path) -> None:
    inputs = torch.randn(60, 4, generator=torch.Generator().manual_seed(0))
    dataset = TensorDataset(inputs, (inputs[:, 0] > 0).long())
    advised = taskmix.advise(
        {"a": dataset, "b": dataset}, model=torch.nn.Linear(4, 4), out=tmp_path / "out", **QUICK
    )
    assert len(advised.predict(inputs[:3], "b")) == 3


def test_tasks_in_memory_travel_to_another_process_as_files() -> None:
    tasks = digits_tasks().select(("parity", "half"))
    source = GivenTasks.of(tasks)
    data = pickle.dumps(source)
    assert len(data) < 10_000  # rows are not in it
    found = pickle.loads(data)
    assert found == source
    loaded = found.load()
    assert loaded.content == tasks.content
    assert loaded.names == tasks.names
    assert loaded["parity"].reading == tasks["parity"].reading
    assert pickle.dumps(source) == data  # and they are written once


@pytest.mark.slow
def test_frames_are_trained_on_by_several_processes(tmp_path: Path) -> None:
    one = taskmix.advise(columns(), out=tmp_path / "one", **OPTIONS, **QUICK)
    two = taskmix.advise(columns(), out=tmp_path / "two", workers=2, **OPTIONS, **QUICK)
    assert one.plan().parts == two.plan().parts

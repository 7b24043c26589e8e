"""From a file with several labels a row to answers of a kept model, by the command line."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pyarrow.parquet as parquet
import pytest
import torch

from .running import run_cli


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def folder_of(path: Path) -> Path:
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
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def call(*words: object) -> str:
        assert run_cli(monkeypatch, *map(str, words)) == 0
        return capsys.readouterr().out

    folder = folder_of(tmp_path / "tasks")
    out, model = tmp_path / "study", tmp_path / "model"
    found = json.loads(
        call("train", folder, "--steps", 200, "--out", out, "--keep", model, "--json")
    )
    assert "several labels in a cell, with `|`" in json.dumps(found)
    assert "micro_f1" in json.dumps(found)
    (tmp_path / "new.csv").write_text("x,y\n0.9,-0.9\n-0.9,-0.9\n")
    lines = call("predict", model, tmp_path / "new.csv").splitlines()
    first, second = (json.loads(line) for line in lines[-2:])
    assert first["labels"] == ["far"]
    assert set(first["probabilities"]) == {"far", "up"}
    assert second["labels"] == []
    for ending in ("csv", "parquet"):
        call("predict", model, tmp_path / "new.csv", "--answers", tmp_path / f"said.{ending}")
    assert parquet.read_table(tmp_path / "said.parquet")["labels"].to_pylist() == [["far"], []]
    assert '"[""far""]"' in (tmp_path / "said.csv").read_text()

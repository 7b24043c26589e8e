"""Losses go to their own tasks when `accelerate launch` starts two processes, counted in one launch."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("transformers")
pytest.importorskip("accelerate", reason="the Trainer needs it")


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    script = Path(__file__).with_name("launched_losses.py")
    launch = ["accelerate.commands.launch", "--multi_gpu", "--num_processes", "2"]
    more = [
        "--num_machines",
        "1",
        "--mixed_precision",
        "no",
        "--dynamo_backend",
        "no",
        "--main_process_port",
        "0",
    ]
    folder = tmp_path_factory.mktemp("launched")
    done = subprocess.run(
        [sys.executable, "-m", *launch, *more, str(script), str(folder)],
        capture_output=True,
        text=True,
        timeout=300,
        env=os.environ | {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""},
    )
    assert (folder / "found.json").exists(), done.stderr[-3000:]
    answer: dict[str, Any] = json.loads((folder / "found.json").read_text())
    return answer


def test_every_loss_of_a_loop_with_accelerate_goes_to_its_task(found: dict[str, Any]) -> None:
    assert found["own loop"] == [40, 40]
    assert found["workers"] == [40, 40]


def test_batches_cut_up_over_processes_count_once(found: dict[str, Any]) -> None:
    assert found["split batches"] == [40, 40]


def test_all_processes_learn_the_same_and_one_writes(found: dict[str, Any]) -> None:
    assert found["learned"]
    assert found["in step"]
    assert found["rows of each process"] == [40, 0]


def test_every_loss_of_a_trainer_on_two_processes_goes_to_its_task(found: dict[str, Any]) -> None:
    assert found["trainer"] == [48, 48]


def test_a_trainer_on_two_processes_resumes_exactly(found: dict[str, Any]) -> None:
    assert found["resumed"] == [32, 32]
    assert found["resumed exactly"]


def test_the_loss_of_a_causal_model_is_each_batch_s_own_mean(found: dict[str, Any]) -> None:
    assert found["causal"] == [[10, 10], [10, 10]]


def test_every_loss_of_a_stream_goes_to_its_task_and_all_learn_the_same(
    found: dict[str, Any],
) -> None:
    assert found["streams"] == [80, 80]
    assert found["streams in step"]


def test_processes_that_draw_differently_are_refused(found: dict[str, Any]) -> None:
    assert "Every process should make the same draws" in found["apart"]

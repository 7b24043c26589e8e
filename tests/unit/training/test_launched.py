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


EXPECTED = {
    "own loop": [40, 40],  # losses that are their task's, of all
    "workers": [40, 40],
    "split batches": [40, 40],  # batches that are cut up over processes count once
    "learned": True,
    "in step": True,
    "rows of each process": [40, 0],  # one writes
    "trainer": [48, 48],
    "resumed": [32, 32],
    "resumed exactly": True,
    "causal": [[10, 10], [10, 10]],  # each batch's own mean
    "streams": [80, 80],
    "streams in step": True,
}


def test_every_loss_goes_to_its_task_and_all_processes_learn_the_same(
    found: dict[str, Any],
) -> None:
    assert {name: found[name] for name in EXPECTED} == EXPECTED


def test_processes_that_draw_differently_are_refused(found: dict[str, Any]) -> None:
    assert "Every process should make the same draws" in found["apart"]
